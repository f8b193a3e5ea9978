/* What one thread of a group computes from its place: integers, and addresses in threadgroup memory. */
#include "compiler/cpu/thread_value.h"
#include "compiler/fold.h"

#define MAX_DEPTH 24 /* of an expression */
#define PHI_DEPTH 8  /* that a phi counts for: up to three are in one another */

static bool position_of(LLVMValueRef call, const struct thread_place *thread, uint64_t *value) {
    enum intrinsic intrinsic = intrinsic_of(call);
    uint64_t d;
    if (intrinsic == INTRINSIC_POSITION_IN_THREADGROUP && is_constant_integer(LLVMGetOperand(call, 0), &d) &&
        d < 3)
        *value = thread->position[d];
    else if (intrinsic == INTRINSIC_THREAD_INDEX)
        *value = thread->index;
    else if (intrinsic == INTRINSIC_LANE)
        *value = thread->index % 32;
    else if (intrinsic == INTRINSIC_SIMDGROUP)
        *value = thread->index / 32;
    else
        return false;
    return true;
}

/* The constant that a counter of a loop begins with, if it only grows by a constant. */
static bool counter_begin(LLVMValueRef phi, uint64_t *value) {
    if (LLVMCountIncoming(phi) != 2) return false;
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef next = LLVMGetIncomingValue(phi, 1 - i);
        bool grows = LLVMIsAInstruction(next) && LLVMGetInstructionOpcode(next) == LLVMAdd &&
                     LLVMGetOperand(next, 0) == phi && LLVMIsAConstantInt(LLVMGetOperand(next, 1)) &&
                     LLVMConstIntGetSExtValue(LLVMGetOperand(next, 1)) > 0;
        if (grows && is_constant_integer(LLVMGetIncomingValue(phi, i), value)) return true;
    }
    return false;
}

static bool evaluate(LLVMValueRef index, const struct thread_place *thread, int depth, uint64_t *value);

/* A value that all ways to a block compute alike. */
static bool evaluate_phi(LLVMValueRef phi, const struct thread_place *thread, int depth, uint64_t *value) {
    unsigned count = LLVMCountIncoming(phi);
    if (depth + PHI_DEPTH > MAX_DEPTH ||
        !evaluate(LLVMGetIncomingValue(phi, 0), thread, depth + PHI_DEPTH, value))
        return false;
    for (unsigned i = 1; i < count; i++) {
        uint64_t other;
        if (!evaluate(LLVMGetIncomingValue(phi, i), thread, depth + PHI_DEPTH, &other) || other != *value)
            return false;
    }
    return true;
}

static bool evaluate(LLVMValueRef index, const struct thread_place *thread, int depth, uint64_t *value) {
    LLVMTypeRef type = LLVMTypeOf(index);
    uint64_t a, b;
    if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(type) > 64) return false;
    if (is_constant_integer(index, value)) return true;
    if (!LLVMIsAInstruction(index) || depth == MAX_DEPTH || (thread->steps && !*thread->steps)) return false;
    if (thread->steps) --*thread->steps;
    if (LLVMIsAPHINode(index))
        return (thread->first_round && counter_begin(index, value)) ||
               evaluate_phi(index, thread, depth, value);
    if (LLVMIsACallInst(index)) return position_of(index, thread, value);
    if (LLVMGetNumOperands(index) < 1 || !evaluate(LLVMGetOperand(index, 0), thread, depth + 1, &a))
        return false;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(index);
    bool cast = opcode == LLVMZExt || opcode == LLVMTrunc;
    if (cast)
        *value = a;
    else if (LLVMGetNumOperands(index) != 2 || !evaluate(LLVMGetOperand(index, 1), thread, depth + 1, &b) ||
             !fold_integers(index, a, b, value))
        return false;
    *value = fold_cut(type, *value);
    return true;
}

bool thread_value(LLVMValueRef integer, const struct thread_place *thread, uint64_t *value) {
    return evaluate(integer, thread, 0, value);
}

struct thread_place thread_place_of(const uint32_t size[3], uint32_t index) {
    return (struct thread_place){
        .position = {index % size[0], index / size[0] % size[1], index / size[0] / size[1]}, .index = index};
}

/* ---- The offset of an address. */

bool thread_address_is_computed(LLVMValueRef value) {
    return LLVMIsAGetElementPtrInst(value) ||
           (LLVMIsAConstantExpr(value) && LLVMGetConstOpcode(value) == LLVMGetElementPtr);
}

static bool step_into(struct unit *unit, LLVMTypeRef *type, uint64_t index, uint64_t *offset) {
    switch (LLVMGetTypeKind(*type)) {
    case LLVMStructTypeKind:
        *offset += LLVMOffsetOfElement(unit->layout, *type, (unsigned)index);
        *type = LLVMStructGetTypeAtIndex(*type, (unsigned)index);
        return true;
    case LLVMArrayTypeKind:
        *type = LLVMGetElementType(*type);
        *offset += index * LLVMABISizeOfType(unit->layout, *type);
        return true;
    default:
        return false;
    }
}

bool thread_offset(struct unit *unit, LLVMValueRef address, LLVMValueRef root,
                   const struct thread_place *thread, uint64_t *offset) {
    if (address == root) return true;
    if (!thread_address_is_computed(address)) return false;
    LLVMTypeRef type = LLVMGetGEPSourceElementType(address);
    uint64_t index;
    for (int i = 1; i < LLVMGetNumOperands(address); i++) {
        LLVMValueRef operand = LLVMGetOperand(address, (unsigned)i);
        if (!evaluate(operand, thread, 0, &index)) return false;
        if (LLVMGetIntTypeWidth(LLVMTypeOf(operand)) < 64) return false;
        if (i == 1)
            *offset += index * LLVMABISizeOfType(unit->layout, type);
        else if (!step_into(unit, &type, index, offset))
            return false;
    }
    return thread_offset(unit, LLVMGetOperand(address, 0), root, thread, offset);
}
