/* The size of a gang's code in machine instructions, estimated from its IR, against the budget. */
#include "compiler/budget.h"
#include "compiler/simd/simd.h"

/* Conversions of half take a dozen instructions per register on CPUs without an instruction for them: with
 * 128 bits. */
static bool converts_half(LLVMValueRef i) {
    LLVMOpcode opcode = LLVMGetInstructionOpcode(i);
    if (opcode != LLVMFPExt && opcode != LLVMFPTrunc) return false;
    LLVMTypeRef type = LLVMTypeOf(opcode == LLVMFPExt ? LLVMGetOperand(i, 0) : i);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) == LLVMHalfTypeKind;
}

/* Bits of a lane's integer, or 0. */
static unsigned lane_bits(LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return 0;
    type = LLVMGetElementType(type);
    return LLVMGetTypeKind(type) == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(type) : 0;
}

/* Roughly the number of machine instructions for a product. Products of 128 bits are computed lane by lane,
 * those of 64 bits from three products of halves. One instruction per register is enough on CPUs with
 * registers of 512 bits, and for numbers of at most 32 bits, which nuw and nsw together suggest. */
static uint64_t size_of_product(const struct simd *s, LLVMValueRef product, unsigned bits) {
    if (bits > 64) return 6 * (uint64_t)LLVMGetVectorSize(LLVMTypeOf(product));
    bool narrow = LLVMGetNUW(product) && LLVMGetNSW(product);
    return narrow || s->vector_bits == 512 ? 2 : 14;
}

/* Roughly the number of machine instructions. Vectors of 64-bit integers take two registers, so each
 * operation on them takes two instructions: much of the code in arithmetic on large numbers. */
static uint64_t size_of(const struct simd *s, LLVMValueRef i) {
    if (s->vector_bits == 128 && converts_half(i)) return 13;
    unsigned bits = lane_bits(i);
    if (bits >= 64 && LLVMGetInstructionOpcode(i) == LLVMMul) return size_of_product(s, i, bits);
    return bits >= 64 || (LLVMGetNumOperands(i) > 0 && lane_bits(LLVMGetOperand(i, 0)) >= 64) ? 2 : 1;
}

/* Code that ends the launch, because a test has failed. */
static bool is_failure(LLVMBasicBlockRef block) {
    return LLVMIsAUnreachableInst(LLVMGetBasicBlockTerminator(block)) != NULL;
}

smelt_status simd_check_size(struct simd *s, enum budget budget) {
    uint64_t size = 0;
    FOR_EACH_BLOCK(block, s->unit->entry) {
        if (is_failure(block)) continue;
        FOR_EACH_INSTRUCTION(i, block) size += size_of(s, i);
    }
    return budget_check(s->unit, budget, size);
}
