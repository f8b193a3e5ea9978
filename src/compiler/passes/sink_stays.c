/* Loads that stay where they are, though they may be thrown away (sink.c): of constant memory, in whose block
 * another load of the same object lies behind them, such as one of a later field of a structure of
 * parameters. They are inside, then, and cost less than a branch. A guard that compares a position with each
 * of two fields would otherwise depend on that branch, so that no gang could be known to be within both
 * (edges.c).
 *
 * The other load may be thrown away, too. It is then moved, and this one is looked at again. */
#include "compiler/pass.h"

#define CONSTANT_SPACE 6

/* The pointer's object, and the constant that is added to its address. False: a variable is. */
static bool find_offset(struct unit *unit, LLVMValueRef pointer, LLVMValueRef *object, uint64_t *offset) {
    *offset = 0;
    while (LLVMIsAGetElementPtrInst(pointer)) {
        LLVMTypeRef type = LLVMGetGEPSourceElementType(pointer);
        for (int n = 1; n < LLVMGetNumOperands(pointer); n++) {
            uint64_t index;
            bool field = n > 1 && LLVMGetTypeKind(type) == LLVMStructTypeKind;
            if (!is_constant_integer(LLVMGetOperand(pointer, (unsigned)n), &index)) return false;
            if (field) *offset += LLVMOffsetOfElement(unit->layout, type, (unsigned)index);
            if (n > 1 && !field && LLVMGetTypeKind(type) != LLVMArrayTypeKind) return false;
            if (n > 1)
                type = field ? LLVMStructGetTypeAtIndex(type, (unsigned)index) : LLVMGetElementType(type);
            if (!field) *offset += index * LLVMABISizeOfType(unit->layout, type);
        }
        pointer = LLVMGetOperand(pointer, 0);
    }
    *object = pointer;
    return *offset < UINT32_MAX;
}

bool sink_stays(struct unit *unit, LLVMValueRef load) {
    LLVMValueRef object, other;
    uint64_t offset, behind;
    if (!unit->target->calls_runtime || !LLVMIsALoadInst(load) ||
        LLVMGetPointerAddressSpace(LLVMTypeOf(LLVMGetOperand(load, 0))) != CONSTANT_SPACE ||
        !find_offset(unit, LLVMGetOperand(load, 0), &object, &offset))
        return false;
    uint64_t end = offset + LLVMABISizeOfType(unit->layout, LLVMTypeOf(load));
    FOR_EACH_INSTRUCTION(i, LLVMGetInstructionParent(load)) {
        if (LLVMIsALoadInst(i) && i != load && find_offset(unit, LLVMGetOperand(i, 0), &other, &behind) &&
            other == object && behind + LLVMABISizeOfType(unit->layout, LLVMTypeOf(i)) >= end &&
            behind > offset)
            return true;
    }
    return false;
}
