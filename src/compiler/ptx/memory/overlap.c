/* Loops that fill tiles in threadgroup memory and multiply them load the next round's elements before they
 * multiply:
 *
 *     for (…) { tile[…] = a[…];  barrier;  products of tile;  barrier; }
 *
 * becomes
 *
 *     next = a[…];  for (…) { tile[…] = next;  barrier;  if (another round) next = a[…];  products;  barrier;
 * }
 *
 * so that the products hide the time that device memory takes. Nothing that has run before the loop, or that
 * runs in it, may write to device memory, and the elements' addresses follow from the loop's counters.
 *
 * Requires: the module lowered, accesses joined and aligned (align.c, words.c). Maintains: what threads load,
 * and from where. */
#include "compiler/analysis/flow.h"
#include "compiler/ptx/coarsen/coarse.h"
#include "compiler/ptx/memory/align.h"

#include <string.h>

#define MOST_LOADS 16
#define MOST_BYTES 64 /* of a thread's loads: they take registers while the products run */
#define MOST_COPIES 256
#define MOST_DEPTH 64 /* of an address's computation */

/* Values of the loop and their copies for one round. */
struct copies {
    LLVMValueRef of[MOST_COPIES], copy[MOST_COPIES];
    int count;
};

enum round { FIRST_ROUND, THIS_ROUND, NEXT_ROUND, ROUNDS };

/* A loop of one block. */
struct overlap {
    struct unit *unit;
    const struct flow *flow;
    LLVMBasicBlockRef block, before;
    LLVMValueRef barrier;
    LLVMValueRef loads[MOST_LOADS];
    int count;
    struct copies copies[ROUNDS];
};

/* ---- What a block does. */

static bool calls(LLVMValueRef instruction, const char *prefix) {
    size_t length = 0;
    LLVMValueRef callee = LLVMIsACallInst(instruction) ? LLVMGetCalledValue(instruction) : NULL;
    const char *name = callee && LLVMIsAFunction(callee) ? LLVMGetValueName2(callee, &length) : "";
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_barrier(LLVMValueRef instruction) {
    return calls(instruction, "llvm.nvvm.barrier0");
}

/* Whether it may write to memory that other threads see, other than that of the threadgroup. */
static bool may_write(struct unit *unit, LLVMValueRef i) {
    if (LLVMIsAStoreInst(i))
        return LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 1))) != PTX_SHARED;
    if (LLVMIsALoadInst(i) || LLVMIsATerminatorInst(i) || LLVMIsAPHINode(i) || LLVMIsAAllocaInst(i))
        return false;
    if (ptx_assembly_text(i))
        return LLVMGetInlineAsmHasSideEffects(LLVMGetCalledValue(i)) && !ptx_is_load(i) && !wide_is_load(i);
    return !coarse_is_pure(unit, i) && !is_barrier(i) && !calls(i, "llvm.nvvm.bar.warp.sync") &&
           !calls(i, "llvm.nvvm.shfl.sync");
}

static bool writes(struct unit *unit, LLVMBasicBlockRef block) {
    FOR_EACH_INSTRUCTION(i, block) {
        if (may_write(unit, i)) return true;
    }
    return false;
}

/* Of the loop, and of what may have run before it. */
static bool is_written_before(struct overlap *o, struct arena *arena) {
    bool *reaches = arena_alloc(arena, (size_t)o->flow->block_count * sizeof *reaches);
    if (!reaches) return true;
    for (int i = 0; i < o->flow->block_count; i++) reaches[i] = o->flow->blocks[i].block == o->block;
    flow_spread(o->flow, reaches);
    for (int i = 0; i < o->flow->block_count; i++)
        if (reaches[i] && writes(o->unit, o->flow->blocks[i].block)) return true;
    return false;
}

/* ---- Which loads. */

static bool is_of_loop(const struct overlap *o, LLVMValueRef value) {
    return LLVMIsAInstruction(value) && LLVMGetInstructionParent(value) == o->block;
}

/* Whether it follows from the counters of the loop, and from their values in the next round. */
static bool follows(const struct overlap *o, LLVMValueRef value, bool next, int depth) {
    if (!is_of_loop(o, value)) return true;
    if (depth == 0) return false;
    if (LLVMIsAPHINode(value)) return !next || follows(o, phi_incoming(value, o->block), false, depth - 1);
    if (!coarse_is_pure(o->unit, value) || LLVMIsACallInst(value)) return false;
    for (int i = 0; i < LLVMGetNumOperands(value); i++)
        if (!follows(o, LLVMGetOperand(value, (unsigned)i), next, depth - 1)) return false;
    return true;
}

static bool is_taken(const struct overlap *o, LLVMValueRef i) {
    return LLVMIsALoadInst(i) && !LLVMGetVolatile(i) && LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic &&
           LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0))) == PTX_GLOBAL &&
           wide_load_if_exists(o->unit, i) && is_of_loop(o, LLVMGetOperand(i, 0)) &&
           follows(o, LLVMGetOperand(i, 0), false, MOST_DEPTH) &&
           follows(o, LLVMGetOperand(i, 0), true, MOST_DEPTH);
}

/* Whether a value goes to threadgroup memory as it is, whole. */
static bool is_copied(const struct overlap *o, LLVMValueRef load) {
    LLVMUseRef use = LLVMGetFirstUse(load);
    LLVMValueRef store = use && !LLVMGetNextUse(use) ? LLVMGetUser(use) : NULL;
    return store && LLVMIsAStoreInst(store) && LLVMGetOperand(store, 0) == load && is_of_loop(o, store);
}

static bool loads_from_device(LLVMValueRef i) {
    if (!LLVMIsALoadInst(i)) return ptx_is_load(i) || wide_is_load(i);
    return LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0))) != PTX_SHARED;
}

/* The loads before the last barrier that products follow, if the tile is a copy: where a thread computes what
 * it stores, as it does with quantised weights, its registers are needed for that. */
static bool collect(struct overlap *o) {
    LLVMValueRef barrier = NULL;
    uint64_t bytes = 0;
    o->barrier = NULL;
    o->count = 0;
    FOR_EACH_INSTRUCTION(i, o->block) {
        if (is_barrier(i)) barrier = i;
        if (ptx_is_product(i)) o->barrier = barrier;
    }
    if (!o->barrier) return false;
    FOR_EACH_INSTRUCTION(i, o->block) {
        if (i == o->barrier) break;
        if (!loads_from_device(i)) continue;
        if (!is_taken(o, i) || !is_copied(o, i) || o->count == MOST_LOADS) return false;
        bytes += LLVMABISizeOfType(o->unit->layout, LLVMTypeOf(i));
        o->loads[o->count++] = i;
    }
    return o->count && bytes <= MOST_BYTES;
}

/* A loop of one block, entered from one other, whose exit follows from its counters. */
static bool find_shape(struct overlap *o, int loop) {
    const struct flow_loop *l = &o->flow->loops[loop];
    const struct flow_block *header = &o->flow->blocks[l->header];
    if (l->latch_count != 1 || l->latches[0] != l->header || header->predecessor_count != 2) return false;
    o->block = header->block;
    int other = header->predecessors[header->predecessors[0] == l->header];
    o->before = o->flow->blocks[other].block;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(o->block);
    return LLVMIsABranchInst(branch) && LLVMIsConditional(branch) &&
           LLVMIsABranchInst(LLVMGetBasicBlockTerminator(o->before)) &&
           follows(o, LLVMGetCondition(branch), false, MOST_DEPTH);
}

/* ---- The code. */

/* Copies what a value follows from, at the builder's place, with the counters' values in a round. */
static LLVMValueRef copy_of(struct overlap *o, LLVMValueRef value, enum round round) {
    struct copies *known = &o->copies[round];
    if (!is_of_loop(o, value)) return value;
    if (LLVMIsAPHINode(value)) {
        if (round == FIRST_ROUND) return phi_incoming(value, o->before);
        return round == THIS_ROUND ? value : copy_of(o, phi_incoming(value, o->block), THIS_ROUND);
    }
    for (int i = 0; i < known->count; i++)
        if (known->of[i] == value) return known->copy[i];
    LLVMValueRef copy = LLVMInstructionClone(value);
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(value); i++)
        LLVMSetOperand(copy, i, copy_of(o, LLVMGetOperand(value, i), round));
    LLVMInsertIntoBuilder(o->unit->builder, copy);
    if (known->count < MOST_COPIES) {
        known->of[known->count] = value;
        known->copy[known->count++] = copy;
    }
    return copy;
}

/* The loads' values in the first round, at the end of `before`, which leads to the loop alone. */
static void load_first(struct overlap *o, LLVMValueRef *values) {
    LLVMPositionBuilderBefore(o->unit->builder, LLVMGetBasicBlockTerminator(o->before));
    for (int i = 0; i < o->count; i++) values[i] = copy_of(o, o->loads[i], FIRST_ROUND);
}

/* … in the next one, behind the barrier, if there is one. */
static void load_next(struct overlap *o, LLVMValueRef *values) {
    struct unit *unit = o->unit;
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef branch = LLVMGetBasicBlockTerminator(o->block);
    LLVMPositionBuilderBefore(b, LLVMGetNextInstruction(o->barrier));
    LLVMValueRef more = copy_of(o, LLVMGetCondition(branch), THIS_ROUND);
    if (LLVMGetSuccessor(branch, 0) != o->block) more = LLVMBuildNot(b, more, "");
    for (int i = 0; i < o->count; i++) {
        LLVMValueRef load = copy_of(o, o->loads[i], NEXT_ROUND);
        values[i] = wide_load_if(unit, load, more);
        LLVMInstructionEraseFromParent(load);
    }
}

static void change(struct overlap *o) {
    LLVMBuilderRef b = o->unit->builder;
    LLVMValueRef first[MOST_LOADS], next[MOST_LOADS];
    LLVMValueRef end = LLVMGetBasicBlockTerminator(o->before);
    for (unsigned s = 0; s < LLVMGetNumSuccessors(end) && LLVMIsConditional(end); s++) {
        if (LLVMGetSuccessor(end, s) != o->block) continue;
        o->before = flow_split_edge(o->unit, o->before, s);
        break;
    }
    load_first(o, first);
    load_next(o, next);
    LLVMBasicBlockRef blocks[2] = {o->before, o->block};
    for (int i = 0; i < o->count; i++) {
        LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(o->block));
        LLVMValueRef values[2] = {first[i], next[i]};
        LLVMValueRef phi = LLVMBuildPhi(b, LLVMTypeOf(o->loads[i]), "");
        LLVMAddIncoming(phi, values, blocks, 2);
        LLVMReplaceAllUsesWith(o->loads[i], phi);
        LLVMInstructionEraseFromParent(o->loads[i]);
    }
}

static smelt_status overlap_loops(struct overlap *o, struct arena *arena, bool *changed) {
    for (int loop = 0; loop < o->flow->loop_count; loop++) {
        memset(o->copies, 0, sizeof o->copies);
        if (!find_shape(o, loop) || !collect(o) || is_written_before(o, arena)) continue;
        change(o);
        *changed = true;
        TRY(ptx_note(o->unit, "%d load%s of a tile's next round %s begun before the products", o->count,
                     o->count == 1 ? "" : "s", o->count == 1 ? "is" : "are"));
    }
    return SMELT_OK;
}

smelt_status pass_ptx_overlap(struct unit *unit) {
    struct arena arena = {0};
    struct flow flow;
    bool changed = false;
    smelt_status status;
    struct overlap *o = flow_begin(unit, &arena, &flow, sizeof *o, &status);
    if (o && !flow.irreducible) {
        *o = (struct overlap){.unit = unit, .flow = &flow};
        status = overlap_loops(o, &arena, &changed);
    }
    arena_free(&arena);
    return status == SMELT_OK && changed ? ptx_run_passes(unit, "function(early-cse,adce)") : status;
}
