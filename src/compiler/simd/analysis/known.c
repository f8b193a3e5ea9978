/* Integers of each lane of a simdgroup that are known at compile time: those computed from the lane's number
 * and constants. */
#include "compiler/simd/lanes/lanes.h"
#include "compiler/fold.h"

#include <string.h>

#define EXPRESSION_DEPTH 8

static bool find(struct simd *s, LLVMValueRef value, int lane, int depth, uint64_t *out);

static bool known_call(struct simd *s, LLVMValueRef call, int lane, int depth, uint64_t *out) {
    const char *name = called_name(call);
    uint64_t a, b;
    if (intrinsic_of(call) == INTRINSIC_LANE) {
        *out = (uint64_t)lane;
        return true;
    }
    bool smaller = strncmp(name, "llvm.umin.", 10) == 0, greater = strncmp(name, "llvm.umax.", 10) == 0;
    if ((!smaller && !greater) || !find(s, LLVMGetOperand(call, 0), lane, depth, &a) ||
        !find(s, LLVMGetOperand(call, 1), lane, depth, &b))
        return false;
    *out = (a < b) == smaller ? a : b;
    return true;
}

static bool known_select(struct simd *s, LLVMValueRef select, int lane, int depth, uint64_t *out) {
    uint64_t condition;
    return find(s, LLVMGetOperand(select, 0), lane, depth, &condition) &&
           find(s, LLVMGetOperand(select, condition ? 1 : 2), lane, depth, out);
}

static bool find(struct simd *s, LLVMValueRef value, int lane, int depth, uint64_t *out) {
    if (LLVMGetTypeKind(LLVMTypeOf(value)) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(LLVMTypeOf(value)) > 64)
        return false;
    if (LLVMIsAConstantInt(value)) {
        *out = LLVMConstIntGetZExtValue(value);
        return true;
    }
    if (!LLVMIsAInstruction(value) || depth == 0) return false;
    uint64_t a, b;
    bool known = false;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMCall:
        known = known_call(s, value, lane, depth - 1, out);
        break;
    case LLVMSelect:
        known = known_select(s, value, lane, depth - 1, out);
        break;
    case LLVMZExt:
    case LLVMTrunc:
    case LLVMFreeze:
        known = find(s, LLVMGetOperand(value, 0), lane, depth - 1, out);
        break;
    default:
        known = LLVMIsABinaryOperator(value) || LLVMIsAICmpInst(value);
        known = known && find(s, LLVMGetOperand(value, 0), lane, depth - 1, &a) &&
                find(s, LLVMGetOperand(value, 1), lane, depth - 1, &b) && fold_integers(value, a, b, out);
    }
    if (known) *out = fold_cut(LLVMTypeOf(value), *out);
    return known;
}

bool known_in_lane(struct simd *s, LLVMValueRef value, int lane, uint64_t *out) {
    return find(s, value, lane, EXPRESSION_DEPTH, out);
}
