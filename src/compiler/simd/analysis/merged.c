/* A value that all ways to a block compute alike, from values that were there before them, is computed in the
 * block: LLVM's elimination of partial redundancies leaves phis such as
 *
 *   left:  a = zext me          right: b = zext me          join: phi [a, left], [b, right]
 *
 * in front of addresses. Where lanes come by both ways, a phi's lanes would have nothing to do with each
 * other; zext me has neighbours.
 *
 * Requires: the entry in SSA form. Maintains: values. An operand that all predecessors of a block see
 * dominates the block. */
#include "compiler/fold.h"
#include "compiler/simd/simd.h"

static bool is_alike(LLVMValueRef a, LLVMValueRef b) {
    int count = LLVMGetNumOperands(a);
    if (!LLVMIsAInstruction(b) || LLVMGetInstructionOpcode(a) != LLVMGetInstructionOpcode(b) ||
        count != LLVMGetNumOperands(b) || LLVMTypeOf(a) != LLVMTypeOf(b))
        return false;
    if (LLVMIsAGetElementPtrInst(a) && LLVMGetGEPSourceElementType(a) != LLVMGetGEPSourceElementType(b))
        return false;
    for (int i = 0; i < count; i++)
        if (LLVMGetOperand(a, (unsigned)i) != LLVMGetOperand(b, (unsigned)i)) return false;
    return true;
}

static bool is_computed_alike(LLVMValueRef phi) {
    LLVMValueRef first = LLVMGetIncomingValue(phi, 0);
    if (!LLVMIsAInstruction(first) || !(fold_is_arithmetic(first) || LLVMIsAGetElementPtrInst(first)))
        return false;
    for (int i = 0; i < LLVMGetNumOperands(first); i++)
        if (LLVMGetOperand(first, (unsigned)i) == phi) return false;
    for (unsigned i = 1; i < LLVMCountIncoming(phi); i++)
        if (!is_alike(first, LLVMGetIncomingValue(phi, i))) return false;
    return true;
}

static void compute_here(struct unit *unit, LLVMValueRef phi) {
    LLVMValueRef place = phi, copy = LLVMInstructionClone(LLVMGetIncomingValue(phi, 0));
    while (LLVMIsAPHINode(place)) place = LLVMGetNextInstruction(place);
    copy_drop_promises(copy); /* they may hold on one of the ways only */
    LLVMPositionBuilderBefore(unit->builder, place);
    LLVMInsertIntoBuilder(unit->builder, copy);
    LLVMReplaceAllUsesWith(phi, copy);
    LLVMInstructionEraseFromParent(phi);
}

smelt_status pass_simd_merged(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    for (LLVMValueRef phi = LLVMGetFirstInstruction(block), next; phi && LLVMIsAPHINode(phi); phi = next) {
        next = LLVMGetNextInstruction(phi);
        if (is_computed_alike(phi)) compute_here(unit, phi);
    }
    return SMELT_OK;
}
