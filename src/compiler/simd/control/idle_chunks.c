/* Loops that often run for the gang's first lanes alone: 256 threads share 64 rows or columns
 * (`for (row = thread; row < rows; row += threads)`), and each goes through its own in a loop inside. Such a
 * loop is written twice, for the first quarter of the chunks and for all. Before it, the code looks whether a
 * lane beyond the quarter is on.
 *
 * This holds for loops of one block under a mask that all lanes run equally often, in gangs of several
 * simdgroups. Chunks that are off have no part in what the others compute, as no lane meets another.
 *
 * Requires: the analysis. */
#include "compiler/simd/control/control.h"
#include "compiler/simd/matrix/matrix.h"

#include <string.h>

/* ---- Which loops. */

static bool is_by_chunks(struct simd *s, LLVMValueRef i) {
    if (LLVMIsALoadInst(i) || LLVMIsAStoreInst(i))
        return LLVMGetOrdering(i) == LLVMAtomicOrderingNotAtomic && !LLVMGetVolatile(i);
    return simd_is_alone(s, i);
}

/* The chunks of a quarter of the gang, at least those of a simdgroup. */
static int first_chunks(struct simd *s) {
    int quarter = s->chunk_count / 4, least = chunks_of_simdgroup(s);
    return quarter > least ? quarter : least;
}

static bool is_loop_by_itself(struct simd *s, int place) {
    const struct path_block *block = &s->paths.blocks[place];
    LLVMValueRef end = LLVMGetBasicBlockTerminator(s->blocks[place].original);
    if (block->loop < 0 || block->divergent || !LLVMIsABranchInst(end) || !LLVMIsConditional(end))
        return false;
    const struct path_loop *loop = &s->paths.loops[block->loop];
    return loop->header == place && loop->last == place && !loop->divergent;
}

/* Whether the mask is another block's, and known before the block's head. */
static bool has_mask_before(const struct simd *s, int place) {
    int owner = s->blocks[place].mask_of;
    return owner > 0 && owner != place && s->blocks[owner].mask_slots;
}

/* Whether what all chunks carry around the loop fits the registers. Otherwise it lies in memory, and a second
 * copy of the loop costs the first one more than it gains: LLVM places those values for both. */
static bool fits(struct simd *s, int place) {
    int own = simd_carried_registers(s, s->blocks[place].original);
    return own * s->chunk_count <= s->registers - 4;
}

static bool suits(struct simd *s, int place) {
    if (s->unit->form != FORM_BEST || s->brief || s->turns || s->chunk_lanes == 1 || s->first_chunk > 0 ||
        s->end_chunk < s->chunk_count || first_chunks(s) == s->chunk_count || !is_loop_by_itself(s, place) ||
        !has_mask_before(s, place) || !simd_is_skipped(s, place) || !fits(s, place))
        return false;
    bool varies = false;
    FOR_EACH_INSTRUCTION(i, s->blocks[place].original) {
        if (!is_by_chunks(s, i)) return false;
        varies |= shape_of(s, i) == SHAPE_VARYING;
    }
    return varies;
}

/* ---- What blocks.c asks for. */

int control_few_chunks(struct simd *s, int place) {
    if (!suits(s, place)) return s->chunk_count;
    simd_remark(s, LLVMGetBasicBlockTerminator(s->blocks[place].original),
                "loop: where lanes of only the first %d of %d vectors are on, separate code runs for these",
                first_chunks(s), s->chunk_count);
    return first_chunks(s);
}

void control_ask_for_few(struct simd *s, int place, int chunks, LLVMBasicBlockRef few,
                         LLVMBasicBlockRef all) {
    LLVMBuilderRef b = s->unit->builder;
    const struct block *owner = &s->blocks[s->blocks[place].mask_of];
    LLVMValueRef *slots = owner->held_slots ? owner->held_slots : owner->mask_slots;
    LLVMValueRef masks[GANG_MAX_LANES];
    int count = 0;
    for (int c = chunks; c < s->chunk_count; c++)
        masks[count++] = LLVMBuildLoad2(b, mask_type(s), slots[c], "");
    LLVMBuildCondBr(b, mask_any(s, masks, count), all, few);
}
