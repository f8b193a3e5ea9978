/* Tests of addresses against the alignment that the hardware needs. */
#include "compiler/bounds/bounds.h"

/* Of the elements of a vector, or of a number: a vector is accessed in parts where it is not aligned. */
static uint64_t element_bytes(struct bounds *b, LLVMTypeRef type) {
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    return LLVMABISizeOfType(b->unit->layout, type);
}

/* Arrays and variables begin at multiples of their elements' size, and launches make sure of it for
 * arguments. */
static bool is_proven(struct bounds *b, LLVMValueRef address, uint64_t bytes) {
    struct place place = bounds_place(b->unit, address);
    enum intrinsic intrinsic = intrinsic_of(place.root);
    bool begins = LLVMIsAGlobalVariable(place.root) || LLVMIsAAllocaInst(place.root) ||
                  intrinsic == INTRINSIC_BUFFER_ADDRESS || intrinsic == INTRINSIC_THREADGROUP_ADDRESS;
    return begins && place.constant % (int64_t)bytes == 0 &&
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
