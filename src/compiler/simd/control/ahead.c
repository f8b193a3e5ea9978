/* In loops whose rounds begin with a reduction over a simdgroup and a long computation from it, as of the
 * exponentials of attention, each round computes the next round's reduction before it uses its own. Otherwise
 * the processor waits for the reduction, and then for the computation.
 *
 *   do { s = sum(k[i]); use(s); i = next; } while (goes_on);
 *
 *   s = sum(k[i]);
 *   do { ahead = sum(k[goes_on ? next : i]); use(s); s = ahead; i = next; } while (goes_on);
 *
 * The last round computes its own reduction again, so it loads nothing that the loop does not. The loop is
 * one block that does not write memory.
 *
 * Requires: the gang's code, with reductions marked by ahead_mark. */
#include "compiler/simd/simd.h"

#include <llvm-c/DebugInfo.h>

/* An exponential takes 20 steps. */
#define LONG_CHAIN 16
/* Limits of the time to compile. */
#define MOST_COPIED 512
#define MOST_BLOCK 2048
#define MOST_COUNTERS 8

struct slice {
    LLVMValueRef values[MOST_COPIED], copies[MOST_COPIED];
    int count;
};

struct ahead {
    struct unit *unit;
    LLVMBasicBlockRef block;
    LLVMValueRef counters[MOST_COUNTERS], at[MOST_COUNTERS]; /* phis, and their values in a copy */
    int counter_count;
    struct slice control;    /* whether there is a next round, and the counters in it */
    struct slice reductions; /* all that marked reductions are computed from */
};

static unsigned mark_of(LLVMContextRef context) {
    static const char name[] = "smelt.reduction";
    return LLVMGetMDKindIDInContext(context, name, sizeof name - 1);
}

void ahead_mark(struct unit *unit, LLVMValueRef reduction) {
    if (!LLVMIsAInstruction(reduction)) return;
    LLVMMetadataRef node = LLVMMDNodeInContext2(unit->context, NULL, 0);
    LLVMSetMetadata(reduction, mark_of(unit->context), LLVMMetadataAsValue(unit->context, node));
}

static bool is_marked(const struct ahead *a, LLVMValueRef i) {
    return LLVMGetMetadata(i, mark_of(a->unit->context)) != NULL;
}

/* ---- What is computed from what. */

static bool computes(LLVMValueRef i) {
    if (LLVMIsACallInst(i)) {
        unsigned kind = LLVMGetEnumAttributeKindForName("memory", 6);
        LLVMValueRef function = LLVMGetCalledValue(i);
        LLVMAttributeRef memory =
            LLVMIsAFunction(function)
                ? LLVMGetEnumAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, kind)
                : NULL;
        return memory && LLVMGetEnumAttributeValue(memory) == 0;
    }
    return LLVMIsABinaryOperator(i) || LLVMIsAUnaryOperator(i) || LLVMIsACmpInst(i) || LLVMIsASelectInst(i) ||
           LLVMIsACastInst(i) || LLVMIsAFreezeInst(i) || LLVMIsAGetElementPtrInst(i) ||
           LLVMIsAShuffleVectorInst(i) || LLVMIsAExtractElementInst(i) || LLVMIsAInsertElementInst(i);
}

static bool loads(LLVMValueRef i) {
    return LLVMIsALoadInst(i) && !LLVMGetVolatile(i) && LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic;
}

static bool is_inside(const struct ahead *a, LLVMValueRef value) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionParent(value) == a->block;
}

static int find(LLVMValueRef const *values, int count, LLVMValueRef value) {
    for (int i = 0; i < count; i++)
        if (values[i] == value) return i;
    return -1;
}

/* Adds the value and what it is computed from. False: that includes phis other than counters, loads unless
 * `memory`, or too much. */
static bool collect(const struct ahead *a, struct slice *slice, LLVMValueRef value, bool memory) {
    if (!is_inside(a, value)) return true;
    if (LLVMIsAPHINode(value)) return find(a->counters, a->counter_count, value) >= 0;
    if (find(slice->values, slice->count, value) >= 0) return true;
    if (slice->count == MOST_COPIED || !(computes(value) || (memory && loads(value)))) return false;
    slice->values[slice->count++] = value;
    for (int o = 0; o < LLVMGetNumOperands(value); o++)
        if (!collect(a, slice, LLVMGetOperand(value, (unsigned)o), memory)) return false;
    return true;
}

static bool is_number(LLVMValueRef value) {
    LLVMTypeKind kind = LLVMGetTypeKind(LLVMTypeOf(value));
    return kind == LLVMIntegerTypeKind || kind == LLVMPointerTypeKind;
}

/* Phis whose next values are computed from such phis alone. */
static void find_counters(struct ahead *a) {
    FOR_EACH_INSTRUCTION(phi, a->block) {
        if (!LLVMIsAPHINode(phi)) break;
        if (is_number(phi) && a->counter_count < MOST_COUNTERS) a->counters[a->counter_count++] = phi;
    }
    for (int i = 0; i < a->counter_count; i++) {
        a->control.count = 0;
        if (collect(a, &a->control, phi_incoming(a->counters[i], a->block), false)) continue;
        a->counters[i] = a->counters[--a->counter_count];
        i = -1; /* others may depend on it */
    }
}

static bool find_reductions(struct ahead *a) {
    int size = 0, found = 0;
    FOR_EACH_INSTRUCTION(i, a->block) {
        if (LLVMIsAPHINode(i) || LLVMIsATerminatorInst(i)) continue;
        if (++size > MOST_BLOCK || !(computes(i) || loads(i))) return false;
        int before = a->reductions.count;
        if (!is_marked(a, i)) continue;
        if (collect(a, &a->reductions, i, true))
            found++;
        else
            a->reductions.count = before;
    }
    return found > 0;
}

/* Whether at least LONG_CHAIN instructions of the block depend on a reduction one after another. */
static bool begin_long_chain(struct ahead *a, struct arena *arena) {
    LLVMValueRef *values = arena_alloc(arena, MOST_BLOCK * sizeof *values);
    int *steps = arena_alloc(arena, MOST_BLOCK * sizeof *steps), count = 0;
    if (!values || !steps) return false;
    FOR_EACH_INSTRUCTION(i, a->block) {
        if (LLVMIsAPHINode(i) || LLVMIsATerminatorInst(i)) continue;
        int most = is_marked(a, i) && find(a->reductions.values, a->reductions.count, i) >= 0 ? 1 : 0;
        for (int o = 0; o < LLVMGetNumOperands(i) && most != 1; o++) {
            int from = find(values, count, LLVMGetOperand(i, (unsigned)o));
            if (from >= 0 && steps[from] >= most) most = steps[from] + 1;
        }
        if (most > LONG_CHAIN) return true;
        if (most) values[count] = i, steps[count++] = most;
    }
    return false;
}

/* ---- The code. */

static LLVMValueRef copied(const struct ahead *a, LLVMValueRef value) {
    int counter = find(a->counters, a->counter_count, value);
    if (counter >= 0) return a->at[counter];
    int place = find(a->reductions.values, a->reductions.count, value);
    return place >= 0 ? a->reductions.copies[place] : value;
}

/* Copies the reductions, in their order, to the builder's place. */
static void copy_reductions(struct ahead *a) {
    FOR_EACH_INSTRUCTION(i, a->block) {
        int place = find(a->reductions.values, a->reductions.count, i);
        if (place < 0) continue;
        LLVMValueRef copy = LLVMInstructionClone(i);
        for (int o = 0; o < LLVMGetNumOperands(i); o++)
            LLVMSetOperand(copy, (unsigned)o, copied(a, LLVMGetOperand(i, (unsigned)o)));
        build_kept(a->unit->builder, copy);
        a->reductions.copies[place] = copy;
    }
}

/* Moves the control to the start of the block. Returns the instruction after it. */
static LLVMValueRef lift_control(struct ahead *a) {
    LLVMValueRef place = NULL;
    FOR_EACH_INSTRUCTION(i, a->block) {
        if (LLVMIsAPHINode(i)) continue;
        if (!place) place = i;
        if (find(a->control.values, a->control.count, i) < 0) continue;
        if (i == place) {
            place = LLVMGetNextInstruction(i);
            continue;
        }
        LLVMPositionBuilderBefore(a->unit->builder, place);
        LLVMInstructionRemoveFromParent(i);
        build_kept(a->unit->builder, i);
    }
    return place;
}

static void erase_unused(struct ahead *a) {
    for (LLVMValueRef i = LLVMGetLastInstruction(a->block), before; i; i = before) {
        before = LLVMGetPreviousInstruction(i);
        if (!LLVMGetFirstUse(i) && find(a->reductions.values, a->reductions.count, i) >= 0)
            LLVMInstructionEraseFromParent(i);
    }
}

/* before: the block in front of the loop, empty. */
static void write(struct ahead *a, LLVMBasicBlockRef before) {
    LLVMBuilderRef b = a->unit->builder;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(a->block), condition = LLVMGetCondition(branch);
    bool stays = LLVMGetSuccessor(branch, 0) == a->block;
    LLVMPositionBuilderBefore(b, LLVMGetBasicBlockTerminator(before));
    for (int c = 0; c < a->counter_count; c++) a->at[c] = phi_incoming(a->counters[c], before);
    copy_reductions(a);
    LLVMValueRef first[MOST_COPIED], place = lift_control(a);
    for (int i = 0; i < a->reductions.count; i++) first[i] = a->reductions.copies[i];
    LLVMPositionBuilderBefore(b, place);
    for (int c = 0; c < a->counter_count; c++) {
        LLVMValueRef next = phi_incoming(a->counters[c], a->block), same = a->counters[c];
        a->at[c] = LLVMBuildSelect(b, condition, stays ? next : same, stays ? same : next, "");
    }
    copy_reductions(a);
    for (int i = 0; i < a->reductions.count; i++) {
        LLVMValueRef reduction = a->reductions.values[i];
        if (!is_marked(a, reduction)) continue;
        LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(a->block));
        LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(reduction), "");
        LLVMReplaceAllUsesWith(reduction, phi);
        LLVMAddIncoming(phi, (LLVMValueRef[]){first[i], a->reductions.copies[i]},
                        (LLVMBasicBlockRef[]){before, a->block}, 2);
    }
    erase_unused(a);
}

/* The only edge into the loop, as a successor of a block. */
static bool find_entry_edge(LLVMBasicBlockRef block, LLVMBasicBlockRef *from, unsigned *successor) {
    int ways = 0;
    LLVMValueRef phi = LLVMGetFirstInstruction(block);
    if (!LLVMIsAPHINode(phi) || LLVMCountIncoming(phi) != 2) return false;
    for (unsigned n = 0; n < 2; n++) {
        LLVMBasicBlockRef other = LLVMGetIncomingBlock(phi, n);
        if (other == block) continue;
        LLVMValueRef branch = LLVMGetBasicBlockTerminator(other);
        if (!LLVMIsABranchInst(branch)) return false;
        for (unsigned i = 0; i < LLVMGetNumSuccessors(branch); i++)
            if (LLVMGetSuccessor(branch, i) == block) *from = other, *successor = i, ways++;
    }
    return ways == 1;
}

static bool is_loop(LLVMBasicBlockRef block) {
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(block);
    if (!LLVMIsABranchInst(branch) || !LLVMIsConditional(branch)) return false;
    return (LLVMGetSuccessor(branch, 0) == block) != (LLVMGetSuccessor(branch, 1) == block);
}

static bool analyse(struct ahead *a) {
    a->counter_count = a->control.count = a->reductions.count = 0;
    find_counters(a);
    if (!find_reductions(a)) return false;
    a->control.count = 0;
    bool known = collect(a, &a->control, LLVMGetCondition(LLVMGetBasicBlockTerminator(a->block)), false);
    for (int c = 0; c < a->counter_count && known; c++)
        known = collect(a, &a->control, phi_incoming(a->counters[c], a->block), false);
    return known;
}

static void try_loop(struct ahead *a, struct arena *arena) {
    LLVMBasicBlockRef from = NULL;
    unsigned successor = 0;
    if (!is_loop(a->block) || !find_entry_edge(a->block, &from, &successor)) return;
    if (!analyse(a) || !begin_long_chain(a, arena)) return;
    LLVMBasicBlockRef before = flow_split_edge(a->unit, from, successor);
    if (analyse(a)) write(a, before); /* the split replaced phis */
}

smelt_status pass_simd_ahead(struct unit *unit) {
    struct arena arena = {0};
    if (unit->form != FORM_BEST || unit->result->image.quick) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry) {
        struct ahead a = {.unit = unit, .block = block};
        try_loop(&a, &arena);
    }
    arena_free(&arena);
    LLVMSetCurrentDebugLocation2(unit->builder, NULL);
    return SMELT_OK;
}
