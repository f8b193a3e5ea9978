/* Loads from Metal's constant address space are marked as invariant: nothing writes there while a kernel
 * runs. The optimiser then keeps a size that the kernel reads from an argument in a register, and moves it
 * out of loops.
 *
 * Requires: functions inlined, address spaces known where they can be. */
#include "compiler/pass.h"

#define CONSTANT_SPACE 6

static void mark(struct unit *unit, LLVMValueRef load) {
    LLVMContextRef context = unit->context;
    LLVMSetMetadata(load, LLVMGetMDKindIDInContext(context, "invariant.load", 14),
                    LLVMMetadataAsValue(context, LLVMMDNodeInContext2(context, NULL, 0)));
}

smelt_status pass_invariant(struct unit *unit) {
    if (!unit->target->holds_constants) return SMELT_OK;
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f))
        FOR_EACH_BLOCK(block, f)
    FOR_EACH_INSTRUCTION(i, block) {
        if (!LLVMIsALoadInst(i) || LLVMGetVolatile(i) || LLVMGetOrdering(i) != LLVMAtomicOrderingNotAtomic)
            continue;
        if (LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(i, 0))) == CONSTANT_SPACE) mark(unit, i);
    }
    return SMELT_OK;
}
