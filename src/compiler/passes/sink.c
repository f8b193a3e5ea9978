/* Loads that are thrown away (docs/semantics.md): real kernels load first and select afterwards, so that the
 * address of the unselected side may be outside the array. A load all of whose uses are selects (or phis on
 * an edge, or in a block that a branch may pass by) is executed only where one of them takes it.
 *
 * Requires: the entry with everything inlined, in SSA form. Maintains: values; only fewer loads are executed.
 *
 *   v = load p                      c = …  (moved up if its inputs are known here)
 *   …                               br c, load, rest
 *   c = …                    →      load: v = load p; br rest
 *   r = select c, v, 0              rest: v' = phi [v, load], [poison, block]
 */
#include "compiler/analysis/flow.h"
#include "compiler/fold.h"

#include <string.h>

/* No memory, no trap. */
static bool is_plain(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFNeg:
    case LLVMFPExt:
    case LLVMFPTrunc:
    case LLVMBitCast:
    case LLVMSIToFP:
    case LLVMUIToFP:
    case LLVMFreeze:
        return true;
    default:
        return fold_is_arithmetic(i);
    }
}

/* Not by 0 or -1, by which a division may trap. */
static bool divides_safely(LLVMValueRef i) {
    uint64_t divisor;
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMFDiv:
    case LLVMFRem:
        return true;
    case LLVMUDiv:
    case LLVMURem:
    case LLVMSDiv:
    case LLVMSRem:
        return is_constant_integer(LLVMGetOperand(i, 1), &divisor) && divisor != 0 &&
               LLVMConstIntGetSExtValue(LLVMGetOperand(i, 1)) != -1;
    default:
        return false;
    }
}

/* Whether it is an intrinsic that may be computed anywhere, such as llvm.fma or llvm.copysign. */
static bool is_speculatable(LLVMValueRef i) {
    if (strncmp(called_name(i), "llvm.", 5) != 0) return false;
    unsigned kind = LLVMGetEnumAttributeKindForName("speculatable", 12);
    return LLVMGetEnumAttributeAtIndex(LLVMGetCalledValue(i), (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                       kind) != NULL;
}

/* What a loaded value may pass through on its way to the select: the optimiser moves what is done to either
 * side of a select into its arms. A comparison's arms are bits, and the select a logical and, or or. */
static bool is_passage(LLVMValueRef i) {
    return is_plain(i) || LLVMIsAFCmpInst(i) || LLVMIsAICmpInst(i) || divides_safely(i) || is_speculatable(i);
}

#define MAX_CONDITIONS 8
#define MAX_NESTED 4

/* A select that takes a value, and further ones that take what comes of it: operands of selects, with the arm
 * the value stands in. */
struct taking {
    LLVMValueRef user, condition[MAX_NESTED];
    bool when_true[MAX_NESTED];
    int nested;
};

/* The ways on which a value is taken. */
struct demand {
    struct taking taking[MAX_CONDITIONS];
    int count;
};

/* Whether the select takes the value by its condition; then that is added. */
static bool add_condition(struct taking *t, LLVMValueRef select, LLVMValueRef value) {
    LLVMValueRef condition = LLVMGetOperand(select, 0);
    bool in_true = LLVMGetOperand(select, 1) == value, in_false = LLVMGetOperand(select, 2) == value;
    if (condition == value || in_true == in_false || t->nested == MAX_NESTED ||
        LLVMGetTypeKind(LLVMTypeOf(condition)) != LLVMIntegerTypeKind)
        return false;
    t->condition[t->nested] = condition;
    t->when_true[t->nested++] = in_true;
    return true;
}

/* `a && b ? v : w` may stand as two selects: what the first takes the second may throw away. */
static void follow_outwards(struct taking *t) {
    LLVMValueRef value = t->user;
    for (int steps = 0; steps < 8; steps++) {
        LLVMUseRef use = LLVMGetFirstUse(value);
        LLVMValueRef user = use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;
        if (!user || !LLVMIsAInstruction(user)) return;
        if (!is_passage(user) && !(LLVMIsASelectInst(user) && add_condition(t, user, value))) return;
        value = user;
    }
}

static bool collect(LLVMValueRef value, struct demand *demand, int depth) {
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsASelectInst(user)) {
            if (demand->count == MAX_CONDITIONS) return false;
            struct taking *t = &demand->taking[demand->count++];
            *t = (struct taking){.user = user};
            if (!add_condition(t, user, value)) return false;
            follow_outwards(t);
        } else if (depth < 4 && LLVMIsAInstruction(user) && is_passage(user)) {
            if (!collect(user, demand, depth + 1)) return false;
        } else {
            return false;
        }
    }
    return demand->count > 0;
}

static bool comes_before(LLVMValueRef a, LLVMValueRef b) {
    for (LLVMValueRef i = a; i; i = LLVMGetNextInstruction(i))
        if (i == b) return true;
    return false;
}

static bool is_hoistable(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMICmp:
    case LLVMFCmp:
    case LLVMSelect:
        return true;
    case LLVMCall:
        /* Rounding, saturating conversion and the like: no memory, no trap. */
        return strncmp(called_name(i), "llvm.", 5) == 0 && LLVMGetNumOperands(i) <= 4 &&
               LLVMGetTypeKind(LLVMTypeOf(i)) != LLVMVoidTypeKind &&
               (strstr(called_name(i), "fpto") || strstr(called_name(i), "floor") ||
                strstr(called_name(i), "min") || strstr(called_name(i), "max") ||
                strstr(called_name(i), "abs") || strstr(called_name(i), "rint"));
    default:
        return is_plain(i);
    }
}

/* Whether `value` is known before `place`, or can be computed there: then its computation moves up. Two
 * rounds: first only a look (`move` false), so that nothing moves in vain. */
static bool available(const struct flow *flow, LLVMValueRef value, LLVMValueRef place, bool move, int depth) {
    if (!LLVMIsAInstruction(value)) return true;
    LLVMBasicBlockRef block = LLVMGetInstructionParent(value), here = LLVMGetInstructionParent(place);
    int theirs = flow_index(flow, block), own = flow_index(flow, here);
    if (theirs < 0 || own < 0) return false;
    bool before =
        block == here ? value != place && comes_before(value, place) : flow_dominates(flow, theirs, own);
    if (before) return true;
    /* From a block that is reached only by way of this one: the optimiser puts conditions next to their use.
     */
    bool after = block == here || flow_dominates(flow, own, theirs);
    if (!after || value == place || depth > 24 || !is_hoistable(value)) return false;
    int operands = LLVMGetNumOperands(value) - (LLVMIsACallInst(value) ? 1 : 0);
    for (int o = 0; o < operands; o++)
        if (!available(flow, LLVMGetOperand(value, (unsigned)o), place, move, depth + 1)) return false;
    if (move) {
        LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(value)));
        LLVMInstructionRemoveFromParent(value);
        LLVMPositionBuilderBefore(builder, place);
        build_kept(builder, value);
        LLVMDisposeBuilder(builder);
    }
    return true;
}

static bool may_write(LLVMValueRef i) {
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMStore:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
    case LLVMFence:
        return true;
    case LLVMCall: {
        const char *name = called_name(i);
        enum intrinsic_kind kind = intrinsic_traits(intrinsic_of(i))->kind;
        bool pure = kind != NOT_INTRINSIC && kind != OF_BARRIER;
        bool intrinsic = strncmp(name, "llvm.", 5) == 0 && strncmp(name, "llvm.mem", 8) != 0;
        return !pure && !intrinsic;
    }
    default:
        return false;
    }
}

#define MAX_MOVED 12

/* A load and what its value passes through in its own block, in order. */
struct moved {
    LLVMValueRef instruction[MAX_MOVED];
    int count;
};

static bool uses_moved(LLVMValueRef i, const struct moved *moved) {
    for (int o = 0; o < LLVMGetNumOperands(i); o++)
        for (int m = 0; m < moved->count; m++)
            if (LLVMGetOperand(i, (unsigned)o) == moved->instruction[m]) return true;
    return false;
}

/* The passages between a load and `end` of the same block (NULL: the block's). */
static bool find_moved(LLVMValueRef load, LLVMValueRef end, struct moved *moved) {
    *moved = (struct moved){.instruction = {load}, .count = 1};
    for (LLVMValueRef i = LLVMGetNextInstruction(load); i && i != end; i = LLVMGetNextInstruction(i)) {
        if (may_write(i)) return false;
        if (!uses_moved(i, moved)) continue;
        if (!is_passage(i) || moved->count == MAX_MOVED) return false;
        moved->instruction[moved->count++] = i;
    }
    return true;
}

static void move_before(const struct moved *moved, LLVMValueRef place) {
    LLVMBuilderRef builder =
        LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(moved->instruction[0])));
    for (int m = 0; m < moved->count; m++) {
        LLVMInstructionRemoveFromParent(moved->instruction[m]);
        LLVMPositionBuilderBefore(builder, place);
        build_kept(builder, moved->instruction[m]);
    }
    LLVMDisposeBuilder(builder);
}

/* If the conditions cannot come up to the load, the load may go down to the first select of the same block,
 * with what its value passes through. */
static bool move_down(LLVMValueRef load, const struct demand *demand) {
    LLVMValueRef first = NULL;
    for (LLVMValueRef i = LLVMGetNextInstruction(load); i && !first; i = LLVMGetNextInstruction(i))
        for (int d = 0; d < demand->count && !first; d++)
            if (demand->taking[d].user == i) first = i;
    struct moved moved;
    if (!first || !find_moved(load, first, &moved)) return false;
    move_before(&moved, first);
    return true;
}

/* Freeze: a branch on poison would be undefined where the select on it was not. */
static LLVMValueRef is_taken(struct unit *unit, const struct taking *t) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef all = NULL;
    for (int n = 0; n < t->nested; n++) {
        LLVMValueRef condition = LLVMBuildFreeze(b, t->condition[n], "");
        if (!t->when_true[n]) condition = LLVMBuildNot(b, condition, "");
        all = all ? LLVMBuildAnd(b, all, condition, "") : condition;
    }
    return all;
}

static LLVMValueRef any_demand(struct unit *unit, const struct demand *demand) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef any = NULL;
    for (int i = 0; i < demand->count; i++) {
        LLVMValueRef taken = is_taken(unit, &demand->taking[i]);
        any = any ? LLVMBuildOr(b, any, taken, "") : taken;
    }
    return any;
}

static void guard_load(struct unit *unit, LLVMValueRef load, const struct demand *demand) {
    LLVMBuilderRef b = unit->builder;
    LLVMBasicBlockRef before = LLVMGetInstructionParent(load);
    LLVMPositionBuilderBefore(b, load);
    LLVMValueRef condition = any_demand(unit, demand);
    LLVMValueRef behind = LLVMGetNextInstruction(load);
    LLVMBasicBlockRef rest = flow_split_block(unit, behind);
    LLVMBasicBlockRef taken =
        LLVMAppendBasicBlockInContext(unit->context, LLVMGetBasicBlockParent(before), "wanted");
    LLVMMoveBasicBlockAfter(taken, before);
    LLVMInstructionEraseFromParent(LLVMGetBasicBlockTerminator(before));
    LLVMInstructionRemoveFromParent(load);
    LLVMPositionBuilderAtEnd(b, before);
    LLVMBuildCondBr(b, condition, taken, rest);
    LLVMPositionBuilder(b, rest, LLVMGetFirstInstruction(rest));
    LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(load), "thrown_away");
    LLVMReplaceAllUsesWith(load, phi);
    LLVMPositionBuilderAtEnd(b, taken);
    build_kept(b, load);
    LLVMBuildBr(b, rest);
    /* Not poison: it must stay harmless in selects that do not take it, also after they are turned into
     * arithmetic. */
    LLVMValueRef values[2] = {load, LLVMConstNull(LLVMTypeOf(load))};
    LLVMBasicBlockRef blocks[2] = {taken, before};
    LLVMAddIncoming(phi, values, blocks, 2);
}

static bool is_private(LLVMValueRef address) {
    while (LLVMIsAGetElementPtrInst(address) || LLVMIsAAddrSpaceCastInst(address))
        address = LLVMGetOperand(address, 0);
    return LLVMIsAAllocaInst(address) || LLVMIsAGlobalVariable(address);
}

/* Moves them up to the load. Of the nested ones those that cannot move are left out: more is loaded then. */
static bool move_conditions(const struct flow *flow, struct taking *t, LLVMValueRef load) {
    int kept = 0;
    for (int n = 0; n < t->nested; n++) {
        if (!available(flow, t->condition[n], load, false, 0)) continue;
        (void)available(flow, t->condition[n], load, true, 0);
        t->condition[kept] = t->condition[n];
        t->when_true[kept++] = t->when_true[n];
    }
    t->nested = kept;
    return kept > 0;
}

#define MAX_BETWEEN 16

/* Whether nothing writes on any way from the end of one block to the beginning of another, which it
 * dominates; false also if the second is in a loop that the first is not in. */
static bool is_quiet_between(const struct flow *flow, LLVMBasicBlockRef from, LLVMBasicBlockRef to) {
    LLVMBasicBlockRef between[MAX_BETWEEN] = {to};
    int count = 1;
    for (int i = 0; i < count; i++) {
        const struct flow_block *b = &flow->blocks[flow_index(flow, between[i])];
        for (int p = 0; p < b->predecessor_count; p++) {
            LLVMBasicBlockRef above = flow->blocks[b->predecessors[p]].block;
            if (above == to) return false;
            bool known = above == from;
            for (int k = 1; k < count && !known; k++) known = between[k] == above;
            if (known) continue;
            if (count == MAX_BETWEEN) return false;
            FOR_EACH_INSTRUCTION(instruction, above) {
                if (may_write(instruction)) return false;
            }
            between[count++] = above;
        }
    }
    return true;
}

/* The block of all selects that take a value; NULL: there are several. */
static LLVMBasicBlockRef block_of_selects(const struct demand *demand) {
    LLVMBasicBlockRef block = LLVMGetInstructionParent(demand->taking[0].user);
    for (int i = 1; i < demand->count; i++)
        if (LLVMGetInstructionParent(demand->taking[i].user) != block) return NULL;
    return block;
}

static bool is_used_in(const struct moved *moved, LLVMBasicBlockRef from, LLVMBasicBlockRef to) {
    for (int m = 0; m < moved->count; m++)
        for (LLVMUseRef use = LLVMGetFirstUse(moved->instruction[m]); use; use = LLVMGetNextUse(use)) {
            LLVMBasicBlockRef block = LLVMGetInstructionParent(LLVMGetUser(use));
            if (block != from && block != to) return false;
        }
    return true;
}

/* Otherwise it may go down to the block of its selects, past the loads that were given branches of their own
 * before. */
static bool move_to_block(const struct flow *flow, LLVMValueRef load, const struct demand *demand) {
    LLVMBasicBlockRef from = LLVMGetInstructionParent(load), to = block_of_selects(demand);
    struct moved moved;
    if (!to || to == from || flow_index(flow, from) < 0 || flow_index(flow, to) < 0 ||
        !flow_dominates(flow, flow_index(flow, from), flow_index(flow, to)) ||
        !is_quiet_between(flow, from, to) || !find_moved(load, NULL, &moved) || !is_used_in(&moved, from, to))
        return false;
    LLVMValueRef first = LLVMGetFirstInstruction(to);
    while (LLVMIsAPHINode(first)) first = LLVMGetNextInstruction(first);
    move_before(&moved, first);
    return true;
}

/* Handles one load; true if it moved or blocks changed, after which the walk starts again. */
static bool sink_one(struct unit *unit, const struct flow *flow, LLVMValueRef load) {
    if (!LLVMIsALoadInst(load) || LLVMGetVolatile(load) ||
        LLVMGetOrdering(load) != LLVMAtomicOrderingNotAtomic || is_private(LLVMGetOperand(load, 0)) ||
        LLVMGetTypeKind(LLVMTypeOf(load)) == LLVMPointerTypeKind)
        return false;
    struct demand demand = {.count = 0};
    if (!LLVMGetFirstUse(load) || !collect(load, &demand, 0)) return false;
    bool known = true;
    for (int i = 0; i < demand.count && known; i++)
        known = available(flow, demand.taking[i].condition[0], load, false, 0);
    if (!known && !move_down(load, &demand)) return move_to_block(flow, load, &demand);
    for (int i = 0; i < demand.count; i++)
        if (!move_conditions(flow, &demand.taking[i], load)) return false;
    guard_load(unit, load, &demand);
    return true;
}

/* A load used by phis on edges only goes onto that edge, if there is one such edge and nothing writes in
 * between. */
static bool sink_to_edge(struct unit *unit, LLVMValueRef load) {
    if (!LLVMIsALoadInst(load) || LLVMGetVolatile(load) ||
        LLVMGetOrdering(load) != LLVMAtomicOrderingNotAtomic || is_private(LLVMGetOperand(load, 0)))
        return false;
    LLVMUseRef use = LLVMGetFirstUse(load);
    if (!use || LLVMGetNextUse(use) || !LLVMIsAPHINode(LLVMGetUser(use))) return false;
    LLVMValueRef phi = LLVMGetUser(use);
    LLVMBasicBlockRef block = LLVMGetInstructionParent(load);
    LLVMValueRef terminator = LLVMGetBasicBlockTerminator(block);
    if (LLVMGetNumSuccessors(terminator) < 2) return false;
    int edge = -1;
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++)
        if (LLVMGetIncomingValue(phi, i) == load && LLVMGetIncomingBlock(phi, i) == block) edge = (int)i;
    if (edge < 0) return false;
    for (LLVMValueRef i = LLVMGetNextInstruction(load); i; i = LLVMGetNextInstruction(i))
        if (may_write(i)) return false;
    int successor = -1;
    for (unsigned s = 0; s < LLVMGetNumSuccessors(terminator); s++) {
        if (LLVMGetSuccessor(terminator, s) != LLVMGetInstructionParent(phi)) continue;
        if (successor >= 0) return false;
        successor = (int)s;
    }
    if (successor < 0) return false;
    LLVMBasicBlockRef middle = flow_split_edge(unit, block, (unsigned)successor);
    LLVMInstructionRemoveFromParent(load);
    LLVMPositionBuilderBefore(unit->builder, LLVMGetBasicBlockTerminator(middle));
    build_kept(unit->builder, load);
    return true;
}

static LLVMBasicBlockRef only_predecessor(const struct flow *flow, LLVMBasicBlockRef block) {
    const struct flow_block *b = &flow->blocks[flow_index(flow, block)];
    return b->predecessor_count == 1 ? flow->blocks[b->predecessors[0]].block : NULL;
}

/* The block in which all uses of a value are; NULL: in several, or on edges. */
static LLVMBasicBlockRef only_user_block(LLVMValueRef value) {
    LLVMBasicBlockRef block = NULL;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsAPHINode(user) || (block && LLVMGetInstructionParent(user) != block)) return NULL;
        block = LLVMGetInstructionParent(user);
    }
    return block;
}

/* A load used in one block only, to which a branch may lead or not, goes there, if nothing writes in between.
 */
static bool sink_to_block(const struct flow *flow, LLVMValueRef load) {
    if (!LLVMIsALoadInst(load) || LLVMGetVolatile(load) ||
        LLVMGetOrdering(load) != LLVMAtomicOrderingNotAtomic || is_private(LLVMGetOperand(load, 0)))
        return false;
    LLVMBasicBlockRef from = LLVMGetInstructionParent(load), to = only_user_block(load);
    if (!to || to == from || flow_index(flow, to) < 0) return false;
    for (LLVMBasicBlockRef above = only_predecessor(flow, to); above != from;
         above = only_predecessor(flow, above)) {
        if (!above) return false;
        FOR_EACH_INSTRUCTION(i, above) {
            if (may_write(i)) return false;
        }
    }
    for (LLVMValueRef i = LLVMGetNextInstruction(load); i; i = LLVMGetNextInstruction(i))
        if (may_write(i)) return false;
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetTypeContext(LLVMTypeOf(load)));
    LLVMValueRef first = LLVMGetFirstInstruction(to);
    while (LLVMIsAPHINode(first)) first = LLVMGetNextInstruction(first);
    LLVMInstructionRemoveFromParent(load);
    LLVMPositionBuilderBefore(builder, first);
    build_kept(builder, load);
    LLVMDisposeBuilder(builder);
    return true;
}

/* All loads, as they stand now: a load that moves down is not met again. */
static LLVMValueRef *list_loads(struct unit *unit, struct arena *arena, int *count) {
    *count = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) *count += LLVMIsALoadInst(i) != NULL;
    LLVMValueRef *loads = arena_alloc(arena, (size_t)(*count + 1) * sizeof(LLVMValueRef));
    int n = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (loads && LLVMIsALoadInst(i)) loads[n++] = i;
    }
    return loads;
}

/* Until a load moves to another block, or gets one; *changed: whether one did. */
static smelt_status sink_next(struct unit *unit, struct arena *arena, bool *changed) {
    struct flow flow;
    int count;
    *changed = false;
    TRY(flow_find(unit, unit->entry, arena, &flow));
    LLVMValueRef *loads = list_loads(unit, arena, &count);
    if (!loads) return unit_fail(unit, SMELT_ERROR_OUT_OF_MEMORY, "no memory for the analysis");
    for (int n = 0; n < count && !*changed; n++) {
        if (sink_stays(unit, loads[n])) continue;
        *changed =
            sink_one(unit, &flow, loads[n]) || sink_to_edge(unit, loads[n]) || sink_to_block(&flow, loads[n]);
    }
    return SMELT_OK;
}

smelt_status pass_sink(struct unit *unit) {
    bool changed = true;
    smelt_status status = SMELT_OK;
    while (changed && status == SMELT_OK) {
        struct arena arena = {0};
        status = sink_next(unit, &arena, &changed);
        arena_free(&arena);
    }
    return status;
}
