/* Selects between two compared floats keep the sign of zero: x < 0 ? 0 : x is -0 for -0. LLVM 19 makes
 * max.f32 of it, which takes -0 for less than +0, except if the comparison is true for equal numbers. So the
 * opposite comparison is used if both may be zero and the instruction would give the other one.
 *
 * Requires: the module in its final form, before code generation. */
#include "compiler/ptx/ptx.h"

#include <math.h>

/* One operand of the comparison: a known number, or not. */
static bool is_known(LLVMValueRef value, double *number) {
    LLVMBool lost;
    if (!LLVMIsAConstantFP(value)) return false;
    *number = LLVMConstRealGetDouble(value, &lost);
    return true;
}

static LLVMRealPredicate opposite(LLVMRealPredicate predicate) {
    switch (predicate) {
    case LLVMRealOGT:
        return LLVMRealULE;
    case LLVMRealOLT:
        return LLVMRealUGE;
    case LLVMRealUGT:
        return LLVMRealOLE;
    case LLVMRealULT:
        return LLVMRealOGE;
    default:
        return LLVMRealPredicateFalse;
    }
}

/* For zeros of either sign, the instruction gives the same as the select: `otherwise`, as they are equal. */
static bool gives_the_same(LLVMValueRef then, LLVMValueRef otherwise, bool is_maximum) {
    double number;
    if (is_known(then, &number) && number != 0) return true;
    return is_known(otherwise, &number) && (number != 0 || signbit(number) == !is_maximum);
}

static LLVMValueRef without_extreme(struct unit *unit, LLVMValueRef choice) {
    LLVMValueRef comparison = LLVMGetOperand(choice, 0);
    if (!LLVMIsAFCmpInst(comparison) || LLVMGetFastMathFlags(choice) & LLVMFastMathNoSignedZeros) return NULL;
    LLVMValueRef left = LLVMGetOperand(comparison, 0), right = LLVMGetOperand(comparison, 1);
    LLVMValueRef then = LLVMGetOperand(choice, 1), otherwise = LLVMGetOperand(choice, 2);
    LLVMRealPredicate predicate = LLVMGetFCmpPredicate(comparison), other = opposite(predicate);
    bool swapped = then == right && otherwise == left;
    if (other == LLVMRealPredicateFalse || !(swapped || (then == left && otherwise == right))) return NULL;
    bool is_greater = predicate == LLVMRealOGT || predicate == LLVMRealUGT;
    if (gives_the_same(then, otherwise, is_greater != swapped)) return NULL;
    LLVMPositionBuilderBefore(unit->builder, choice);
    LLVMValueRef not = LLVMBuildFCmp(unit->builder, other, left, right, "");
    return LLVMBuildSelect(unit->builder, not, otherwise, then, "");
}

smelt_status pass_ptx_zero_signs(struct unit *unit) {
    for (LLVMValueRef function = LLVMGetFirstFunction(unit->module); function;
         function = LLVMGetNextFunction(function))
        FOR_EACH_BLOCK(block, function)
    FOR_EACH_INSTRUCTION(instruction, block) {
        LLVMValueRef choice = LLVMIsASelectInst(instruction) ? without_extreme(unit, instruction) : NULL;
        if (!choice) continue;
        LLVMReplaceAllUsesWith(instruction, choice);
        LLVMInstructionEraseFromParent(instruction);
    }
    return SMELT_OK;
}
