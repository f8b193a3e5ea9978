/* Speculation (speculation.c) at edges: comparisons of positions with bounds, whose result differs between
 * lanes only in gangs that lie across an edge. The other gangs run code without masks and without gathers.
 *
 * Guards end the kernel for some threads, before any effect. They are speculated on in threads that compute a
 * tile: these have many accesses, and masks would take registers. So they are in short kernels, whose masks
 * cost as much as the rest, or far more where the target has no masked access (access.c): pixels of three
 * bytes took 24 times as long with AVX2. Other threads gain little for twice the code.
 *
 * Conditions on which threads access several elements, or fewer at the end, are treated alike.
 *
 * Conditions of loads: `if (x + k < width) sum += image[x + k];`
 *
 * Minima and maxima of a position and a bound that addresses are computed from: away from the edge, all lanes
 * have the position, so that neighbours load neighbours. `image[clamp(x + k, 0, width - 1)]` */
#include "compiler/analysis/predicate.h"
#include "compiler/simd/simd.h"

#include <string.h>

/* ---- What holds for all lanes. */

static bool is_signed(LLVMIntPredicate predicate) {
    return predicate >= LLVMIntSGT;
}

static bool is_below(LLVMIntPredicate predicate) {
    return predicate == LLVMIntULT || predicate == LLVMIntULE || predicate == LLVMIntSLT ||
           predicate == LLVMIntSLE;
}

/* i1: the comparison of an affine number with a scalar of its type holds for all lanes, also for those that
 * are off. May be false where it does. */
static LLVMValueRef all_hold(struct simd *s, LLVMValueRef number, LLVMIntPredicate predicate,
                             LLVMValueRef bound) {
    LLVMBuilderRef b = s->unit->builder;
    if (predicate == LLVMIntEQ) return LLVMConstNull(simd_i1(s)); /* its lanes differ */
    if (predicate == LLVMIntNE)
        return LLVMBuildOr(b, all_hold(s, number, LLVMIntULT, bound), all_hold(s, number, LLVMIntUGT, bound),
                           "");
    LLVMValueRef first = scalar_of(s, number);
    LLVMTypeRef type = LLVMTypeOf(first);
    const int64_t *offsets = shape_offsets(s, shape_of(s, number));
    int64_t low = 0, high = 0;
    for (int i = 0; i < s->lanes; i++) {
        if (offsets[i] < low) low = offsets[i];
        if (offsets[i] > high) high = offsets[i];
    }
    LLVMValueRef lowest = LLVMBuildAdd(b, first, LLVMConstInt(type, (uint64_t)low, true), "");
    LLVMValueRef highest = LLVMBuildAdd(b, first, LLVMConstInt(type, (uint64_t)high, true), "");
    /* Neither end wraps around. */
    LLVMIntPredicate order = is_signed(predicate) ? LLVMIntSLE : LLVMIntULE;
    LLVMValueRef straight = LLVMBuildAnd(b, LLVMBuildICmp(b, order, lowest, first, ""),
                                         LLVMBuildICmp(b, order, first, highest, ""), "");
    LLVMValueRef worst = LLVMBuildICmp(b, predicate, is_below(predicate) ? highest : lowest, bound, "");
    return LLVMBuildAnd(b, straight, worst, "all_hold");
}

/* ---- Conditions. */

#define MOST_CONDITIONS 4 /* levels of and, or, … in one condition */

static bool is_affine_integer(struct simd *s, LLVMValueRef value) {
    return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMIntegerTypeKind && shape_width(value) > 1 &&
           shape_of(s, value) > SHAPE_UNIFORM;
}

static bool compares_position(struct simd *s, LLVMValueRef comparison) {
    LLVMValueRef left = LLVMGetOperand(comparison, 0), right = LLVMGetOperand(comparison, 1);
    return (is_affine_integer(s, left) && shape_of(s, right) == SHAPE_UNIFORM) ||
           (is_affine_integer(s, right) && shape_of(s, left) == SHAPE_UNIFORM);
}

static bool is_join(LLVMValueRef i) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    return opcode == LLVMAnd || opcode == LLVMOr || opcode == LLVMXor || opcode == LLVMSelect;
}

/* Whether all lanes share the value without speculation on it. */
static bool is_shared(struct simd *s, LLVMValueRef i) {
    return shape_of(s, i) == SHAPE_UNIFORM && !(LLVMIsAInstruction(i) && value_of(s, i)->speculated);
}

/* Whether the condition consists of comparisons of positions, which are integers whose lanes are constants
 * apart, with bounds that all lanes share. Other conditions may well differ between neighbours. A condition
 * that an earlier step of the analysis has speculated on is looked at again: its operands may vary by now. */
static bool compares_positions(struct simd *s, LLVMValueRef i, int depth) {
    if (is_shared(s, i)) return true;
    if (!LLVMIsAInstruction(i)) return false;
    if (LLVMIsAICmpInst(i)) return compares_position(s, i);
    if ((!is_join(i) && !LLVMIsAFreezeInst(i)) || depth == MOST_CONDITIONS) return false;
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        if (!compares_positions(s, LLVMGetOperand(i, (unsigned)o), depth + 1)) return false;
    return true;
}

/* i1 each: the condition certainly holds in all lanes; in none. */
struct truth {
    LLVMValueRef all, none;
};

static struct truth truth_of_comparison(struct simd *s, LLVMValueRef i) {
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(i);
    LLVMValueRef number = LLVMGetOperand(i, 0), bound = LLVMGetOperand(i, 1);
    if (!is_affine_integer(s, number)) {
        LLVMValueRef other = number;
        number = bound;
        bound = other;
        predicate = predicate_turned(predicate);
    }
    bound = scalar_of(s, bound);
    return (struct truth){all_hold(s, number, predicate, bound),
                          all_hold(s, number, predicate_negated(predicate), bound)};
}

static struct truth truth_of(struct simd *s, LLVMValueRef i) {
    LLVMBuilderRef b = s->unit->builder;
    if (is_shared(s, i)) { /* the condition itself has no scalar yet */
        LLVMValueRef same = scalar_of(s, i);
        return (struct truth){same, LLVMBuildNot(b, same, "")};
    }
    if (LLVMIsAICmpInst(i)) return truth_of_comparison(s, i);
    if (LLVMIsAFreezeInst(i)) {
        struct truth frozen = truth_of(s, LLVMGetOperand(i, 0));
        return (struct truth){LLVMBuildFreeze(b, frozen.all, ""), LLVMBuildFreeze(b, frozen.none, "")};
    }
    struct truth x = truth_of(s, LLVMGetOperand(i, 0)), y = truth_of(s, LLVMGetOperand(i, 1));
    LLVMValueRef all = LLVMBuildAnd(b, x.all, y.all, ""), none = LLVMBuildAnd(b, x.none, y.none, "");
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMAnd:
        return (struct truth){all, LLVMBuildOr(b, x.none, y.none, "")};
    case LLVMOr:
        return (struct truth){LLVMBuildOr(b, x.all, y.all, ""), none};
    case LLVMXor: {
        LLVMValueRef one = LLVMBuildAnd(b, x.all, y.none, ""), other = LLVMBuildAnd(b, x.none, y.all, "");
        return (struct truth){LLVMBuildOr(b, one, other, ""), LLVMBuildOr(b, all, none, "")};
    }
    default: { /* select x, y, z */
        struct truth z = truth_of(s, LLVMGetOperand(i, 2));
        LLVMValueRef chosen = LLVMBuildSelect(b, x.none, z.all, all, ""),
                     refused = LLVMBuildSelect(b, x.none, z.none, LLVMBuildAnd(b, x.all, y.none, ""), "");
        return (struct truth){LLVMBuildOr(b, chosen, LLVMBuildAnd(b, y.all, z.all, ""), ""),
                              LLVMBuildOr(b, refused, LLVMBuildAnd(b, y.none, z.none, ""), "")};
    }
    }
}

static bool is_ordered(LLVMValueRef comparison) {
    LLVMIntPredicate predicate = LLVMGetICmpPredicate(comparison);
    return predicate != LLVMIntEQ && predicate != LLVMIntNE;
}

/* The first comparison of a position in the condition, if all of them ask for an order; else NULL. */
static LLVMValueRef first_order(struct simd *s, LLVMValueRef i) {
    if (is_shared(s, i)) return NULL;
    if (LLVMIsAICmpInst(i)) return is_ordered(i) ? i : NULL;
    LLVMValueRef first = NULL;
    for (int o = 0; o < LLVMGetNumOperands(i); o++) {
        LLVMValueRef operand = LLVMGetOperand(i, (unsigned)o);
        LLVMValueRef found = first_order(s, operand);
        if (!found && !is_shared(s, operand)) return NULL;
        if (!first) first = found;
    }
    return first;
}

LLVMValueRef edges_bound(struct simd *s, LLVMValueRef condition) {
    if (shape_of(s, condition) != SHAPE_VARYING || !compares_positions(s, condition, 0)) return NULL;
    LLVMValueRef order = first_order(s, condition);
    if (!order) return NULL;
    return LLVMGetOperand(order, is_affine_integer(s, LLVMGetOperand(order, 0)) ? 1 : 0);
}

LLVMValueRef edges_all_agree(struct simd *s, LLVMValueRef condition, bool holds) {
    struct truth truth = truth_of(s, condition);
    return holds ? truth.all : truth.none;
}

/* ---- Guards. */

/* Whether the block only ends the kernel. */
static bool is_end(LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i != end; i = LLVMGetNextInstruction(i))
        if (!LLVMIsAPHINode(i) && intrinsic_of(i) != INTRINSIC_THREAD_RETURN) return false;
    bool goes_on = LLVMIsABranchInst(end) && !LLVMIsConditional(end);
    return LLVMIsAReturnInst(end) ||
           (goes_on && LLVMIsAReturnInst(LLVMGetFirstInstruction(LLVMGetSuccessor(end, 0))));
}

/* The condition of the branch at the end of the block if one target only ends the kernel and no effects
 * precede it; otherwise NULL. *on: the other target. */
static LLVMValueRef leaving_condition(struct simd *s, LLVMBasicBlockRef block, LLVMBasicBlockRef *on) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end) || !effects_follow(s, end)) return NULL;
    bool first = is_end(LLVMGetSuccessor(end, 0));
    if (!first && !is_end(LLVMGetSuccessor(end, 1))) return NULL;
    *on = LLVMGetSuccessor(end, first ? 1 : 0);
    return LLVMGetCondition(end);
}

/* Where the block's paths meet again if all lanes agree whether they pass a block in between, such as one of
 * tests (bounds.c); otherwise NULL. */
static LLVMBasicBlockRef past_detour(struct simd *s, LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (!LLVMIsABranchInst(end) || !LLVMIsConditional(end) || !is_shared(s, LLVMGetCondition(end)))
        return NULL;
    for (unsigned n = 0; n < 2; n++) {
        LLVMBasicBlockRef detour = LLVMGetSuccessor(end, n), after = LLVMGetSuccessor(end, 1 - n);
        const struct path_block *path = &s->paths.blocks[simd_place(s, detour)];
        bool joins = path->predecessor_count == 1 && path->successor_count == 1 &&
                     s->blocks[path->successors[0]].original == after;
        if (joins && s->paths.blocks[simd_place(s, after)].predecessor_count == 2) return after;
    }
    return NULL;
}

#define FEW_ACCESSES 3

static bool has_several_accesses(struct simd *s, LLVMBasicBlockRef block) {
    int accesses = 0;
    for (LLVMBasicBlockRef at = block; at; at = past_detour(s, at))
        FOR_EACH_INSTRUCTION(i, at) accesses += LLVMIsALoadInst(i) || LLVMIsAStoreInst(i);
    return accesses >= FEW_ACCESSES;
}

/* The condition of the branch at the end of the block if no effects precede it and a target accesses several
 * elements, as in threads of a few neighbours of which the last has fewer; otherwise NULL. Under a mask, no
 * access to them can be a whole vector. */
static LLVMValueRef parting_condition(struct simd *s, LLVMBasicBlockRef block) {
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    if (!s->parting_matters || !LLVMIsABranchInst(end) || !LLVMIsConditional(end) || !effects_follow(s, end))
        return NULL;
    for (unsigned n = 0; n < 2; n++) {
        LLVMBasicBlockRef target = LLVMGetSuccessor(end, n);
        if (s->paths.blocks[simd_place(s, target)].predecessor_count != 1) return NULL;
        if (has_several_accesses(s, target)) return LLVMGetCondition(end);
    }
    return NULL;
}

bool edges_is_aside(struct simd *s, int place) {
    for (int above = s->paths.blocks[place].dominator; above >= 0 && above < place;
         place = above, above = s->paths.blocks[place].dominator) {
        LLVMBasicBlockRef block = s->blocks[above].original;
        if (!parting_condition(s, block)) continue;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        unsigned usual = has_several_accesses(s, LLVMGetSuccessor(end, 0)) ? 0 : 1;
        return s->blocks[place].original == LLVMGetSuccessor(end, 1 - usual);
    }
    return false;
}

#define MOST_GUARDS 4 /* one after another */

static bool is_bit(LLVMValueRef i) {
    LLVMTypeRef type = LLVMTypeOf(i);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(type) == 1;
}

bool edges_all_start(struct simd *s, LLVMBasicBlockRef block) {
    for (LLVMBasicBlockRef at = s->blocks[0].original; at; at = past_detour(s, at))
        if (at == block) return true;
    return false;
}

/* Goes from the first block on past detours and one guard after another, until one is `condition` or leads to
 * `block`. */
static bool reach(struct simd *s, LLVMValueRef condition, LLVMBasicBlockRef block) {
    LLVMBasicBlockRef at = s->blocks[0].original, on;
    if (s->code->masked) return false;
    for (int n = 0; n <= MOST_GUARDS; n++, at = on) {
        for (LLVMBasicBlockRef next = at; next; next = past_detour(s, next)) {
            if (n > 0 && next == block) return true;
            at = next;
        }
        LLVMValueRef guard = leaving_condition(s, at, &on), parting = guard ? NULL : parting_condition(s, at);
        if (parting) return parting == condition && compares_positions(s, parting, 0);
        if (!guard || !s->guards_matter || n == MOST_GUARDS || !compares_positions(s, guard, 0)) return false;
        if (guard == condition) return true;
        if (s->paths.blocks[simd_place(s, on)].predecessor_count != 1) return false;
    }
    return false;
}

/* Whether the value is a guard: it decides whether the kernel ends, or which elements it accesses, in the
 * first block or right after other guards. */
static bool is_guard(struct simd *s, LLVMValueRef i) {
    return is_bit(i) && reach(s, i, NULL);
}

bool edges_guard_block(struct simd *s, LLVMBasicBlockRef block) {
    return reach(s, NULL, block);
}

/* ---- Conditions of loads. */

static bool has_loads(LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block)
    if (LLVMIsALoadInst(i)) return true;
    return false;
}

/* The block's only successor if it loads and has one predecessor; otherwise NULL. */
static LLVMBasicBlockRef after_loads(struct simd *s, LLVMBasicBlockRef block) {
    const struct path_block *path = &s->paths.blocks[simd_place(s, block)];
    if (path->predecessor_count != 1 || path->successor_count != 1 || !has_loads(block)) return NULL;
    return s->blocks[path->successors[0]].original;
}

/* Whether a position in a group of fewer threads than two gangs is compared: most gangs then lie across the
 * edge. */
static bool parts_most_gangs(struct simd *s, LLVMValueRef i, int depth) {
    if (LLVMIsAICmpInst(i)) {
        LLVMValueRef number = LLVMGetOperand(i, shape_of(s, LLVMGetOperand(i, 0)) == SHAPE_UNIFORM ? 1 : 0);
        return range_unsigned(s, number).high < 2 * (uint64_t)s->lanes;
    }
    bool joins = LLVMIsAInstruction(i) && (is_join(i) || LLVMIsAFreezeInst(i));
    if (!joins || depth == MOST_CONDITIONS) return false;
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        if (parts_most_gangs(s, LLVMGetOperand(i, (unsigned)o), depth + 1)) return true;
    return false;
}

static bool is_condition_of_loads(struct simd *s, LLVMValueRef i) {
    bool condition = is_join(i) || LLVMIsAFreezeInst(i) || LLVMIsAICmpInst(i);
    if (!s->edges_matter || s->code->masked || !is_bit(i) || !condition) return false;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(LLVMGetInstructionParent(i));
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch) || LLVMGetCondition(branch) != i)
        return false;
    LLVMBasicBlockRef first = LLVMGetSuccessor(branch, 0), second = LLVMGetSuccessor(branch, 1);
    bool loads = after_loads(s, first) == second || after_loads(s, second) == first;
    return loads && effects_follow(s, i) && compares_positions(s, i, 0) && !parts_most_gangs(s, i, 0);
}

/* ---- Minima and maxima. */

/* The comparison of the position with the bound that holds where the result is the position. */
static bool choosing_predicate(LLVMValueRef call, LLVMIntPredicate *predicate) {
    static const struct {
        const char *name;
        LLVMIntPredicate predicate;
    } choices[] = {{"llvm.smin.", LLVMIntSLE},
                   {"llvm.smax.", LLVMIntSGE},
                   {"llvm.umin.", LLVMIntULE},
                   {"llvm.umax.", LLVMIntUGE}};
    const char *name = LLVMIsACallInst(call) ? called_name(call) : "";
    for (size_t n = 0; n < sizeof choices / sizeof *choices; n++) {
        if (strncmp(name, choices[n].name, strlen(choices[n].name)) != 0) continue;
        *predicate = choices[n].predicate;
        return true;
    }
    return false;
}

#define STEPS_TO_ADDRESS 8

static bool reaches_address(LLVMValueRef value, int steps) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAGetElementPtrInst(user)) return true;
        bool integer = LLVMGetTypeKind(LLVMTypeOf(user)) == LLVMIntegerTypeKind && !LLVMIsAPHINode(user) &&
                       !LLVMIsAICmpInst(user);
        if (integer && steps > 0 && reaches_address(user, steps - 1)) return true;
    }
    return false;
}

bool edges_reach_address(LLVMValueRef value) {
    return reaches_address(value, STEPS_TO_ADDRESS);
}

/* Whether the value is a minimum or maximum of a position and a bound that an address is computed from. */
static bool is_choice(struct simd *s, LLVMValueRef i) {
    LLVMIntPredicate predicate;
    if (!s->edges_matter || s->code->masked || !choosing_predicate(i, &predicate)) return false;
    LLVMValueRef left = LLVMGetOperand(i, 0), right = LLVMGetOperand(i, 1);
    if (!is_affine_integer(s, left) && is_affine_integer(s, right)) {
        LLVMValueRef other = left;
        left = right;
        right = other;
    }
    return is_affine_integer(s, left) && shape_of(s, right) == SHAPE_UNIFORM && effects_follow(s, i) &&
           edges_reach_address(i);
}

static LLVMValueRef position_of(struct simd *s, LLVMValueRef choice) {
    return LLVMGetOperand(choice, is_affine_integer(s, LLVMGetOperand(choice, 0)) ? 0 : 1);
}

/* ---- All of them. */

int edges_shape(struct simd *s, LLVMValueRef i) {
    if (!s->speculating) return SHAPE_VARYING;
    bool choice = is_choice(s, i);
    if (!choice && !is_guard(s, i) && !is_condition_of_loads(s, i)) return SHAPE_VARYING;
    value_of(s, i)->speculated = true;
    return choice ? shape_of(s, position_of(s, i)) : SHAPE_UNIFORM;
}

bool edges_have_guard(struct simd *s) {
    for (int place = 0; place < s->paths.block_count; place++) {
        LLVMBasicBlockRef on;
        LLVMValueRef condition = leaving_condition(s, s->blocks[place].original, &on);
        if (!condition) condition = parting_condition(s, s->blocks[place].original);
        if (condition && shape_of(s, condition) == SHAPE_VARYING && is_guard(s, condition)) return true;
    }
    return false;
}

#define INSTRUCTIONS_PER_EDGE 24
#define ROUNDS 4 /* assumed of each loop */

/* Whether it is the second half of a clamp, whose first half is a choice: that varies without speculation. */
static bool is_second_choice(struct simd *s, LLVMValueRef i) {
    LLVMIntPredicate predicate;
    if (!choosing_predicate(i, &predicate)) return false;
    for (unsigned n = 0; n < 2; n++) {
        LLVMValueRef first = LLVMGetOperand(i, n), bound = LLVMGetOperand(i, 1 - n);
        if (LLVMIsACallInst(first) && is_choice(s, first) && shape_of(s, bound) == SHAPE_UNIFORM) return true;
    }
    return false;
}

bool edges_have_others(struct simd *s) {
    int edges = 0, instructions = -(int)s->unit->test_instructions;
    if (!s->edges_matter) return false;
    for (int place = 0; place < s->paths.block_count; place++)
        FOR_EACH_INSTRUCTION(i, s->blocks[place].original) {
            bool edge =
                LLVMIsACallInst(i) ? is_choice(s, i) || is_second_choice(s, i) : is_condition_of_loads(s, i);
            if (edge) edges += s->paths.blocks[place].loop >= 0 ? ROUNDS : 1;
            instructions++;
        }
    return edges > 0 && edges * INSTRUCTIONS_PER_EDGE >= instructions;
}

/* Goes on where the check holds, and otherwise to the general code. */
static void go_on_if(struct simd *s, LLVMValueRef check) {
    LLVMBasicBlockRef shared = simd_block(s, "shared");
    LLVMBuildCondBr(s->unit->builder, check, shared, s->general);
    LLVMPositionBuilderAtEnd(s->unit->builder, shared);
}

static void emit_choice(struct simd *s, LLVMValueRef i, LLVMIntPredicate predicate) {
    LLVMValueRef position = position_of(s, i);
    LLVMValueRef bound = LLVMGetOperand(i, position == LLVMGetOperand(i, 0) ? 1 : 0);
    simd_remark(s, i, "edge: gangs whose positions are all within the bound run separate code");
    go_on_if(s, all_hold(s, position, predicate, scalar_of(s, bound)));
    scalar_set(s, i, scalar_of(s, position));
}

bool emit_edge(struct simd *s, LLVMValueRef i) {
    LLVMIntPredicate predicate;
    if (choosing_predicate(i, &predicate)) {
        emit_choice(s, i, predicate);
        return true;
    }
    if (!is_bit(i)) return false;
    simd_remark(s, i, "guard: gangs whose lanes all pass it, or all fail, run separate code without masks");
    struct truth truth = truth_of(s, i);
    go_on_if(s, LLVMBuildOr(s->unit->builder, truth.all, truth.none, ""));
    scalar_set(s, i, truth.all);
    return true;
}
