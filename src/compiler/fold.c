#include "compiler/fold.h"

uint64_t fold_cut(LLVMTypeRef type, uint64_t bits) {
    unsigned width = LLVMGetIntTypeWidth(type);
    return width >= 64 ? bits : bits & ((UINT64_C(1) << width) - 1);
}

static int64_t signed_value(LLVMTypeRef type, uint64_t bits) {
    unsigned unused = 64 - LLVMGetIntTypeWidth(type);
    return (int64_t)(bits << unused) >> unused;
}

static bool compare(LLVMIntPredicate predicate, LLVMTypeRef type, uint64_t a, uint64_t b) {
    int64_t p = signed_value(type, a), q = signed_value(type, b);
    switch (predicate) {
    case LLVMIntEQ:
        return a == b;
    case LLVMIntNE:
        return a != b;
    case LLVMIntUGT:
        return a > b;
    case LLVMIntUGE:
        return a >= b;
    case LLVMIntULT:
        return a < b;
    case LLVMIntULE:
        return a <= b;
    case LLVMIntSGT:
        return p > q;
    case LLVMIntSGE:
        return p >= q;
    case LLVMIntSLT:
        return p < q;
    default:
        return p <= q;
    }
}

/* Shifts by the width or more and divisions by zero have no value. */
static bool combine(LLVMOpcode opcode, LLVMTypeRef type, uint64_t a, uint64_t b, uint64_t *out) {
    bool shift = opcode == LLVMShl || opcode == LLVMLShr || opcode == LLVMAShr;
    bool division = opcode == LLVMUDiv || opcode == LLVMURem;
    if ((shift && b >= LLVMGetIntTypeWidth(type)) || (division && !b)) return false;
    switch (opcode) {
    case LLVMAdd:
        *out = a + b;
        return true;
    case LLVMSub:
        *out = a - b;
        return true;
    case LLVMMul:
        *out = a * b;
        return true;
    case LLVMShl:
        *out = a << b;
        return true;
    case LLVMLShr:
        *out = a >> b;
        return true;
    case LLVMAShr:
        *out = (uint64_t)(signed_value(type, a) >> b);
        return true;
    case LLVMAnd:
        *out = a & b;
        return true;
    case LLVMOr:
        *out = a | b;
        return true;
    case LLVMXor:
        *out = a ^ b;
        return true;
    case LLVMUDiv:
        *out = a / b;
        return true;
    case LLVMURem:
        *out = a % b;
        return true;
    default:
        return false;
    }
}

bool fold_integers(LLVMValueRef instruction, uint64_t a, uint64_t b, uint64_t *out) {
    LLVMTypeRef type = LLVMTypeOf(LLVMGetOperand(instruction, 0));
    bool comparison = LLVMIsAICmpInst(instruction);
    if (comparison) *out = compare(LLVMGetICmpPredicate(instruction), type, a, b);
    if (comparison) return true;
    if (!LLVMIsABinaryOperator(instruction) ||
        !combine(LLVMGetInstructionOpcode(instruction), type, a, b, out))
        return false;
    *out = fold_cut(type, *out);
    return true;
}

bool fold_is_arithmetic(LLVMValueRef instruction) {
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMTrunc:
        return true;
    default:
        return false;
    }
}
