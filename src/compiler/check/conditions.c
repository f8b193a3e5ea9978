/* Advice on comparisons of the user's code that are never true: the ranges of thread positions and sizes rule
 * them out in every grid. Only comparisons that a branch or a select depends on count. The pass looks for
 * them in a copy of the module, in which everything is inlined and nothing is known of the launch. It then
 * adds a call to the entry for each, which reports it to the checker.
 *
 * Requires: the module as clang wrote it. */
#include "compiler/bounds/bounds.h"
#include "compiler/check/check.h"
#include "compiler/analysis/predicate.h"

#include <inttypes.h>
#include <llvm-c/DebugInfo.h>
#include <stdio.h>

/* ---- Predicates, and names of positions and sizes. */

/* Whether the predicate holds for no x and y of these ranges, which are of signed numbers. */
static bool never_holds(LLVMIntPredicate predicate, struct value_range x, struct value_range y) {
    bool positive = x.low >= 0 && y.low >= 0;
    switch (predicate) {
    case LLVMIntEQ:
        return x.high < y.low || y.high < x.low;
    case LLVMIntNE:
        return x.low == x.high && y.low == y.high && x.low == y.low;
    case LLVMIntULT:
        return positive && x.low >= y.high;
    case LLVMIntSLT:
        return x.low >= y.high;
    case LLVMIntULE:
        return positive && x.low > y.high;
    case LLVMIntSLE:
        return x.low > y.high;
    default: /* greater */
        return never_holds(predicate_turned(predicate), y, x);
    }
}

/* The call for a position or a size that a value was extended or truncated from; NULL: it is another value,
 * or bits may be lost on the way. Positions in a grid and its sizes need 32 bits, others at most 16. */
static LLVMValueRef number_of_thread(LLVMValueRef value) {
    unsigned width = 64;
    for (; LLVMIsAZExtInst(value) || LLVMIsATruncInst(value); value = LLVMGetOperand(value, 0)) {
        unsigned own = LLVMGetIntTypeWidth(LLVMTypeOf(value));
        if (own < width) width = own;
    }
    enum intrinsic intrinsic = intrinsic_of(value);
    bool of_grid = intrinsic == INTRINSIC_THREAD_POSITION || intrinsic == INTRINSIC_THREADGROUP_POSITION ||
                   intrinsic == INTRINSIC_GRID_THREADS || intrinsic == INTRINSIC_GRID_GROUPS;
    return intrinsic != INTRINSIC_NONE && width >= (of_grid ? 32 : 16) ? value : NULL;
}

/* Each position and size, the name of its attribute, and the size that it is less than. */
static const struct {
    enum intrinsic position;
    const char *name;
    enum intrinsic size;
} numbers[] = {
    {INTRINSIC_POSITION_IN_THREADGROUP, "thread_position_in_threadgroup", INTRINSIC_THREADGROUP_SIZE},
    {INTRINSIC_THREAD_POSITION, "thread_position_in_grid", INTRINSIC_GRID_THREADS},
    {INTRINSIC_THREADGROUP_POSITION, "threadgroup_position_in_grid", INTRINSIC_GRID_GROUPS},
    {INTRINSIC_THREAD_INDEX, "thread_index_in_threadgroup", INTRINSIC_NONE},
    {INTRINSIC_LANE, "thread_index_in_simdgroup", INTRINSIC_NONE},
    {INTRINSIC_SIMDGROUP, "simdgroup_index_in_threadgroup", INTRINSIC_SIMDGROUP_COUNT},
    {INTRINSIC_THREADGROUP_SIZE, "threads_per_threadgroup", INTRINSIC_NONE},
    {INTRINSIC_DISPATCH_THREADGROUP_SIZE, "dispatch_threads_per_threadgroup", INTRINSIC_NONE},
    {INTRINSIC_GRID_THREADS, "threads_per_grid", INTRINSIC_NONE},
    {INTRINSIC_GRID_GROUPS, "threadgroups_per_grid", INTRINSIC_NONE},
    {INTRINSIC_SIMDGROUP_COUNT, "simdgroups_per_threadgroup", INTRINSIC_NONE},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static int number_index(LLVMValueRef call) {
    enum intrinsic intrinsic = call ? intrinsic_of(call) : INTRINSIC_NONE;
    int i = 0;
    while (i < NUMBERS && numbers[i].position != intrinsic) i++;
    return i;
}

/* The component that a call returns; 3: the number is a scalar. */
static uint64_t component(LLVMValueRef call) {
    uint64_t d = 3;
    if (LLVMGetNumArgOperands(call) == 1) is_constant_integer(LLVMGetOperand(call, 0), &d);
    return d;
}

enum { MOST_NAME = 80 };

static bool name_number(LLVMValueRef call, char name[MOST_NAME]) {
    static const char *const components[] = {".x", ".y", ".z", ""};
    int i = number_index(call);
    if (i == NUMBERS || component(call) > 3) return false;
    snprintf(name, MOST_NAME, "%s%s", numbers[i].name, components[component(call)]);
    return true;
}

/* Whether x is a position, and y the size that it is less than. */
static bool is_below(LLVMValueRef x, LLVMValueRef y) {
    LLVMValueRef position = number_of_thread(x), size = number_of_thread(y);
    int i = number_index(position);
    return i < NUMBERS && size && numbers[i].size == intrinsic_of(size) &&
           numbers[i].size != INTRINSIC_NONE && component(position) == component(size);
}

/* ---- Whether a comparison is ever true, and why not. */

struct condition {
    struct bounds *b;
    int block;
    LLVMIntPredicate predicate;
    LLVMValueRef left, right;
};

enum { MOST_SIDE = 120, MOST_REASON = 2 * MOST_SIDE + 8 };

static bool is_below_never(const struct condition *c, char why[MOST_REASON]) {
    LLVMIntPredicate p = c->predicate;
    LLVMValueRef x = c->left, y = c->right;
    char position[MOST_NAME], size[MOST_NAME];
    if (is_below(y, x)) {
        p = predicate_turned(p);
        x = c->right;
        y = c->left;
    } else if (!is_below(x, y)) {
        return false;
    }
    bool less = p == LLVMIntULT || p == LLVMIntULE || p == LLVMIntSLT || p == LLVMIntSLE || p == LLVMIntNE;
    if (less || !name_number(number_of_thread(x), position) || !name_number(number_of_thread(y), size))
        return false;
    snprintf(why, MOST_REASON, "%s is less than %s", position, size);
    return true;
}

/* Whether the range ends where the type does: then nothing useful is known of the value. */
static bool is_whole(LLVMValueRef value, struct value_range r) {
    unsigned width = LLVMGetIntTypeWidth(LLVMTypeOf(value));
    int64_t half = width < 64 ? INT64_C(1) << (width - 1) : 0;
    return width >= 64 ? r.low == INT64_MIN || r.high == INT64_MAX : r.low <= -half || r.high >= half - 1;
}

/* Writes, for example, "thread_index_in_simdgroup is at most 31". False: it is a constant, or nothing is
 * known of the value. */
static bool explain(LLVMValueRef value, struct value_range r, char text[MOST_SIDE]) {
    char name[MOST_NAME];
    if (LLVMIsAConstantInt(value) || is_whole(value, r)) return false;
    if (!name_number(number_of_thread(value), name)) snprintf(name, sizeof name, "the value");
    if (r.low == r.high)
        snprintf(text, MOST_SIDE, "%s is %" PRId64, name, r.low);
    else if (r.low == 0)
        snprintf(text, MOST_SIDE, "%s is at most %" PRId64, name, r.high);
    else
        snprintf(text, MOST_SIDE, "%s is from %" PRId64 " to %" PRId64, name, r.low, r.high);
    return true;
}

static bool is_never(const struct condition *c, char why[MOST_REASON]) {
    if (is_below_never(c, why)) return true;
    struct value_range x = bounds_range(c->b, c->block, c->left), y = bounds_range(c->b, c->block, c->right);
    char left[MOST_SIDE], right[MOST_SIDE];
    if (!never_holds(c->predicate, x, y)) return false;
    bool of_left = explain(c->left, x, left), of_right = explain(c->right, y, right);
    snprintf(why, MOST_REASON, "%s%s%s", of_left ? left : "", of_left && of_right ? ", and " : "",
             of_right ? right : "");
    return of_left || of_right;
}

/* ---- The conditions of the copy. */

/* The comparison of the user's code that a branch or a select depends on; NULL: none. */
static LLVMValueRef comparison_of(LLVMValueRef instruction) {
    bool branches = LLVMIsABranchInst(instruction) && LLVMIsConditional(instruction);
    if (!branches && !LLVMIsASelectInst(instruction)) return NULL;
    LLVMValueRef condition = branches ? LLVMGetCondition(instruction) : LLVMGetOperand(instruction, 0);
    if (!LLVMIsAICmpInst(condition) || !lines_are_of_user(condition)) return NULL;
    bool whole = LLVMGetTypeKind(LLVMTypeOf(LLVMGetOperand(condition, 0))) == LLVMIntegerTypeKind;
    return whole ? condition : NULL;
}

/* The places of comparisons in the source, with those of inlined functions. */
struct places {
    LLVMMetadataRef *at;
    size_t count;
};

static smelt_status find_places(struct unit *copy, struct arena *arena, struct places *places) {
    size_t count = 0;
    FOR_EACH_BLOCK(block, copy->entry)
    FOR_EACH_INSTRUCTION(i, block) count += LLVMIsAICmpInst(i) != NULL;
    places->at = arena_alloc(arena, (count ? count : 1) * sizeof *places->at);
    if (!places->at) return unit_fail(copy, SMELT_ERROR_OUT_OF_MEMORY, "no memory for conditions");
    FOR_EACH_BLOCK(block, copy->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        LLVMMetadataRef at = LLVMIsAICmpInst(i) ? LLVMInstructionGetDebugLoc(i) : NULL;
        if (at) places->at[places->count++] = at;
    }
    return SMELT_OK;
}

/* Whether the comparison's line of code is there several times, in a function that is inlined in several
 * places or in instances of a template: it may be true in another of them. */
static bool is_repeated(const struct places *places, LLVMValueRef comparison) {
    LLVMMetadataRef place = LLVMInstructionGetDebugLoc(comparison), scope = LLVMDILocationGetScope(place),
                    caller = LLVMDILocationGetInlinedAt(place), file = LLVMDIScopeGetFile(scope);
    for (size_t i = 0; i < places->count; i++) {
        LLVMMetadataRef at = places->at[i];
        if (LLVMDILocationGetLine(at) != LLVMDILocationGetLine(place) ||
            LLVMDILocationGetColumn(at) != LLVMDILocationGetColumn(place))
            continue;
        LLVMMetadataRef within = LLVMDILocationGetScope(at);
        bool elsewhere = within != scope || LLVMDILocationGetInlinedAt(at) != caller;
        if (elsewhere && LLVMDIScopeGetFile(within) == file) return true;
    }
    return false;
}

static void tell(struct unit *unit, LLVMValueRef comparison, const char *why) {
    LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(unit->entry));
    while (LLVMIsAAllocaInst(first)) first = LLVMGetNextInstruction(first);
    LLVMPositionBuilderBefore(unit->builder, first);
    LLVMSetCurrentDebugLocation2(unit->builder, LLVMInstructionGetDebugLoc(comparison));
    LLVMValueRef site = check_site(unit, comparison, why);
    check_call(unit, "smelt_check_condition", LLVMVoidTypeInContext(unit->context), &site, 1, false);
    LLVMSetCurrentDebugLocation2(unit->builder, NULL);
}

/* Comparisons are judged by the conditions of their own block: later branches may use the same ones. */
static void judge(struct unit *unit, struct bounds *b, const struct places *places, int block) {
    FOR_EACH_INSTRUCTION(instruction, b->flow.blocks[block].block) {
        char why[MOST_REASON];
        LLVMValueRef comparison = comparison_of(instruction);
        if (!comparison) continue;
        int own = flow_index(&b->flow, LLVMGetInstructionParent(comparison));
        struct condition c = {b, own, LLVMGetICmpPredicate(comparison), LLVMGetOperand(comparison, 0),
                              LLVMGetOperand(comparison, 1)};
        if (is_never(&c, why) && !is_repeated(places, comparison)) tell(unit, comparison, why);
    }
}

/* ---- Vectors that are passed to functions as one integer. */

/* A part in its place, or several: no other bits are in it. */
static bool is_placed(LLVMValueRef value) {
    if (!LLVMIsAInstruction(value)) return false;
    if (LLVMGetInstructionOpcode(value) == LLVMOr)
        return is_placed(LLVMGetOperand(value, 0)) && is_placed(LLVMGetOperand(value, 1));
    if (LLVMGetInstructionOpcode(value) == LLVMShl) value = LLVMGetOperand(value, 0);
    return LLVMIsAZExtInst(value) != NULL;
}

/* Of the parts that an or combines, the one of `width` bits that was shifted left by `shift`; NULL: none. */
static LLVMValueRef part_at(LLVMValueRef packed, uint64_t shift, unsigned width) {
    if (!LLVMIsAInstruction(packed)) return NULL;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(packed);
    LLVMValueRef first = LLVMGetOperand(packed, 0);
    uint64_t by = 0;
    if (opcode == LLVMOr) {
        LLVMValueRef left = part_at(first, shift, width),
                     right = part_at(LLVMGetOperand(packed, 1), shift, width);
        bool vector = is_placed(packed) && !(left && right);
        if (!vector) return NULL; /* an or of numbers */
        return left ? left : right;
    }
    if (opcode == LLVMShl) {
        if (!is_constant_integer(LLVMGetOperand(packed, 1), &by)) return NULL;
        packed = first;
    }
    if (by != shift || !LLVMIsAZExtInst(packed)) return NULL;
    LLVMValueRef part = LLVMGetOperand(packed, 0);
    return LLVMGetIntTypeWidth(LLVMTypeOf(part)) == width ? part : NULL;
}

static bool is_packed(LLVMValueRef value) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionOpcode(value) == LLVMOr;
}

/* Replaces what is cut out of such an integer by the component that was put there. */
static void unpack(LLVMValueRef entry) {
    FOR_EACH_BLOCK(block, entry)
    FOR_EACH_INSTRUCTION(cut, block) {
        uint64_t shift = 0;
        if (!LLVMIsATruncInst(cut)) continue;
        LLVMValueRef packed = LLVMGetOperand(cut, 0);
        bool shifted = LLVMIsAInstruction(packed) && LLVMGetInstructionOpcode(packed) == LLVMLShr &&
                       is_constant_integer(LLVMGetOperand(packed, 1), &shift);
        if (shifted) packed = LLVMGetOperand(packed, 0);
        LLVMValueRef part =
            is_packed(packed) ? part_at(packed, shift, LLVMGetIntTypeWidth(LLVMTypeOf(cut))) : NULL;
        if (part) LLVMReplaceAllUsesWith(cut, part);
    }
}

static smelt_status judge_copy(struct unit *unit, struct unit *copy) {
    struct bounds b = {.unit = copy};
    struct places places = {0};
    TRY(pass_declare(copy));
    TRY(run_passes(copy, "always-inline,globaldce"));
    /* Before the next passes: they remove comparisons of constants, as in one of several inlined calls. */
    smelt_status status = find_places(copy, &b.arena, &places);
    if (status == SMELT_OK) status = run_passes(copy, "function(sroa<modify-cfg>,early-cse)");
    if (status == SMELT_OK) {
        unpack(copy->entry);
        FOR_EACH_BLOCK(block, copy->entry)
        FOR_EACH_INSTRUCTION(call, block) specialise_limit(copy, call);
        status = flow_find(copy, copy->entry, &b.arena, &b.flow);
    }
    if (status == SMELT_OK) status = bounds_facts_begin(&b);
    if (status == SMELT_OK) status = bounds_loops_begin(&b);
    for (int i = 0; i < b.flow.block_count && status == SMELT_OK; i++) judge(unit, &b, &places, i);
    arena_free(&b.arena);
    return status;
}

smelt_status pass_check_conditions(struct unit *unit) {
    if (!(unit->request->shape.also & CHECK_ALSO_ADVICE)) return SMELT_OK;
    struct compile_request request = *unit->request;
    struct unit copy = *unit;
    request.shape = (struct code_shape){0};
    copy.request = &request;
    copy.module = LLVMCloneModule(unit->module);
    copy.entry = LLVMGetNamedFunction(copy.module, ENTRY_NAME);
    smelt_status status = judge_copy(unit, &copy);
    LLVMDisposeModule(copy.module);
    return status;
}
