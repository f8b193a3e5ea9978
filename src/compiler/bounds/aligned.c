/* Tests that addresses have the alignment that the hardware needs. */
#include "compiler/bounds/bounds.h"

/* The size of a number, or of a vector's elements: a vector that is not aligned is accessed element by
 * element. */
static uint64_t element_bytes(struct bounds *b, LLVMTypeRef type) {
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    return LLVMABISizeOfType(b->unit->layout, type);
}

/* Whether the array that an address is computed from begins at a multiple of `bytes`. Launches make sure that
 * an argument begins at a multiple of its elements' size. */
static bool begins_aligned(struct bounds *b, LLVMValueRef root, uint64_t bytes) {
    const struct image *image = &b->unit->result->image;
    uint64_t slot;
    if (LLVMIsAGlobalVariable(root)) return LLVMGetAlignment(root) >= bytes;
    if (intrinsic_of(root) == INTRINSIC_THREADGROUP_ADDRESS) return true; /* a multiple of 16 */
    if (intrinsic_of(root) != INTRINSIC_BUFFER_ADDRESS ||
        !is_constant_integer(LLVMGetOperand(root, 0), &slot))
        return false;
    for (int i = 0; i < image->binding_count; i++)
        if (image->bindings[i].kind == BINDING_BUFFER && image->bindings[i].index == (int32_t)slot)
            return image->bindings[i].size >= (int32_t)bytes;
    return false;
}

static bool is_proven(struct bounds *b, LLVMValueRef address, uint64_t bytes) {
    struct place place = bounds_place(b->unit, address);
    return begins_aligned(b, place.root, bytes) && place.constant % (int64_t)bytes == 0 &&
           (!place.index || place.scale % (int64_t)bytes == 0);
}

static void test(struct bounds *b, LLVMValueRef instruction, LLVMValueRef address, LLVMTypeRef type,
                 bool writes) {
    LLVMBuilderRef builder = b->unit->builder;
    uint64_t bytes = element_bytes(b, type);
    struct array_object object = bounds_object(b, address);
    if (bytes < 2 || (bytes & (bytes - 1)) || object.kind == ACCESS_PRIVATE || is_proven(b, address, bytes))
        return;
    struct tested_access access = {
        .instruction = instruction, .bytes = LLVMStoreSizeOfType(b->unit->layout, type), .writes = writes};
    LLVMPositionBuilderBefore(builder, instruction);
    LLVMValueRef arguments[ALIGNED_OPERANDS] = {[ALIGNED_ADDRESS] = address,
                                                [ALIGNED_BYTES] = bounds_i64(b, bytes),
                                                [ALIGNED_SITES] = bounds_sites(b, &object, &access, 0)};
    bounds_intrinsic(b, INTRINSIC_ALIGNED, LLVMVoidTypeInContext(b->unit->context), arguments,
                     ALIGNED_OPERANDS);
}

void bounds_test_alignment(struct bounds *b, int block) {
    FOR_EACH_INSTRUCTION(i, b->flow.blocks[block].block) {
        if (LLVMIsALoadInst(i))
            test(b, i, LLVMGetOperand(i, 0), LLVMTypeOf(i), false);
        else if (LLVMIsAStoreInst(i))
            test(b, i, LLVMGetOperand(i, 1), LLVMTypeOf(LLVMGetOperand(i, 0)), true);
        else if (LLVMIsAAtomicRMWInst(i) || LLVMIsAAtomicCmpXchgInst(i))
            test(b, i, LLVMGetOperand(i, 0), LLVMTypeOf(LLVMGetOperand(i, 1)), true);
    }
}
