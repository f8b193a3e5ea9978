/* Loops that are written for a part of the gang after another: all rounds for some chunks, then all rounds
 * for the next. A tile of sums that a thread carries around a loop may fit the registers for one chunk,
 * though not for all chunks at once. Then each multiply-add would load its sum and store it.
 *
 * This holds for loops of one block that all lanes run equally often, in which no lane meets another.
 * Elements that differ between lanes must be in threadgroup memory: parts of rows in device memory would come
 * from farther away for the second part.
 *
 * Requires: the analysis. */
#include "compiler/simd/matrix/matrix.h"
#include "compiler/simd/matrix/tiles.h"

#include <string.h>

static bool is_access_alone(struct simd *s, LLVMValueRef i) {
    bool load = LLVMIsALoadInst(i) != NULL;
    LLVMValueRef address = LLVMGetOperand(i, load ? 0 : 1);
    bool uniform = shape_of(s, address) == SHAPE_UNIFORM;
    if (LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic || LLVMGetVolatile(i) || (uniform && !load))
        return false;
    return uniform || private_is(s, address) ||
           LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == THREADGROUP_SPACE;
}

bool simd_is_alone(struct simd *s, LLVMValueRef i) {
    const char *name = called_name(i);
    switch (LLVMGetInstructionOpcode(i)) {
    case LLVMLoad:
    case LLVMStore:
        return is_access_alone(s, i);
    case LLVMCall:
        if (intrinsic_of(i) == INTRINSIC_INSIDE) return true; /* each part tests for itself */
        return strncmp(name, "llvm.", 5) == 0 && strncmp(name, "llvm.mem", 8) != 0;
    case LLVMAlloca:
    case LLVMFence:
    case LLVMAtomicRMW:
    case LLVMAtomicCmpXchg:
        return false;
    default:
        return !matrix_of(s, i);
    }
}

int simd_carried_registers(struct simd *s, LLVMBasicBlockRef block) {
    uint64_t bits = 0;
    FOR_EACH_INSTRUCTION(phi, block) {
        if (!LLVMIsAPHINode(phi)) break;
        if (shape_of(s, phi) != SHAPE_VARYING || piece_is(s, phi)) continue;
        uint64_t own = LLVMSizeOfTypeInBits(s->unit->layout, LLVMTypeOf(phi));
        bits += (own > 32 ? own : 32) * (uint64_t)s->chunk_lanes;
    }
    return (int)((bits + (uint64_t)s->vector_bits - 1) / (uint64_t)s->vector_bits);
}

/* The only block that leads to the loop from outside; -1: there are several. */
static int block_before(struct simd *s, int place) {
    int before = -1;
    LLVMValueRef block = LLVMBasicBlockAsValue(s->blocks[place].original);
    for (LLVMUseRef use = LLVMGetFirstUse(block); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (!LLVMIsAInstruction(user)) return -1;
        LLVMBasicBlockRef from = LLVMGetInstructionParent(user);
        if (from == s->blocks[place].original || LLVMIsAPHINode(user)) continue;
        if (before >= 0 && before != simd_place(s, from)) return -1;
        before = simd_place(s, from);
    }
    return before;
}

bool simd_can_be_in_parts(struct simd *s, int place, bool (*suits)(struct simd *s, LLVMValueRef instruction),
                          int *before) {
    const struct path_block *block = &s->paths.blocks[place];
    LLVMValueRef end = LLVMGetBasicBlockTerminator(s->blocks[place].original);
    *before = block_before(s, place);
    if (s->unit->form != FORM_BEST || s->code->masked || block->loop < 0 || *before < 0 || block->divergent ||
        s->blocks[place].mask_of != 0 || s->blocks[*before].mask_of != 0 ||
        s->blocks[*before].returns != s->blocks[place].returns)
        return false;
    const struct path_loop *loop = &s->paths.loops[block->loop];
    if (loop->header != place || loop->last != place || loop->divergent || !LLVMIsABranchInst(end) ||
        !LLVMIsConditional(end))
        return false;
    for (unsigned n = 0; n < 2; n++) {
        int to = simd_place(s, LLVMGetSuccessor(end, n));
        if (s->blocks[to].mask_of != 0 || s->blocks[to].returns != s->blocks[place].returns) return false;
    }
    FOR_EACH_INSTRUCTION(i, s->blocks[place].original) {
        if (!suits(s, i)) return false;
    }
    return true;
}

int simd_part_chunks(struct simd *s, int place, int *before) {
    int registers = s->registers, own = simd_carried_registers(s, s->blocks[place].original);
    int chunks = s->chunk_count, from;
    if (!own || own > registers || own * chunks <= registers - 4 ||
        !simd_can_be_in_parts(s, place, simd_is_alone, &from))
        return chunks;
    if (s->chunk_lanes == 1 && tile_suits(s, s->blocks[place].original)) return chunks;
    while (chunks > 1 && (own * chunks > registers - 4 || s->chunk_count % chunks)) chunks--;
    *before = from;
    return chunks;
}
