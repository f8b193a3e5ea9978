/* The greater or smaller one of two floats in three instructions.
 *
 *     x < y || isnan(x) ? y : x
 *
 * are two comparisons and two selects. max.f32 differs only where the two are equal, which two zeros of
 * different signs are. There the result is x. Two NaN give the hardware's own NaN.
 *
 * Requires: the module in its final form. Maintains: what the code does, except for the bits of a NaN. */
#include "compiler/ptx/ptx.h"

/* The number that an instruction tests for NaN; NULL: it does something else. */
static LLVMValueRef tested_for_nan(LLVMValueRef test) {
    if (!LLVMIsAFCmpInst(test) || LLVMGetFCmpPredicate(test) != LLVMRealUNO) return NULL;
    LLVMValueRef number = LLVMGetOperand(test, 0), other = LLVMGetOperand(test, 1);
    return other == number || LLVMIsAConstantFP(other) ? number : NULL;
}

/* Of a comparison that is false for NaN: 1, the left one is less; -1, it is greater; 0, neither. */
static int order_of(LLVMValueRef comparison) {
    if (!LLVMIsAFCmpInst(comparison)) return 0;
    LLVMRealPredicate predicate = LLVMGetFCmpPredicate(comparison);
    return predicate == LLVMRealOLT ? 1 : predicate == LLVMRealOGT ? -1 : 0;
}

/* What the select `(x < y) | isnan(x) ? y : x` computes: 1, the greater one; -1, the smaller one; 0,
 * something else. */
static int extreme_of(LLVMValueRef select, LLVMValueRef *x, LLVMValueRef *y) {
    LLVMValueRef either = LLVMGetOperand(select, 0);
    if (!LLVMIsABinaryOperator(either) || LLVMGetInstructionOpcode(either) != LLVMOr) return 0;
    *y = LLVMGetOperand(select, 1);
    *x = LLVMGetOperand(select, 2);
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef comparison = LLVMGetOperand(either, i);
        int order = order_of(comparison);
        if (!order || tested_for_nan(LLVMGetOperand(either, 1 - i)) != *x) continue;
        LLVMValueRef left = LLVMGetOperand(comparison, 0), right = LLVMGetOperand(comparison, 1);
        if (left == *x && right == *y) return order;
        if (left == *y && right == *x) return -order;
    }
    return 0;
}

smelt_status pass_ptx_extremes(struct unit *unit) {
    LLVMBuilderRef b = unit->builder;
    LLVMTypeRef type = LLVMFloatTypeInContext(unit->context);
    int found = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(select, block) {
        LLVMValueRef numbers[2];
        if (!LLVMIsASelectInst(select) || LLVMTypeOf(select) != type) continue;
        int extreme = extreme_of(select, &numbers[0], &numbers[1]);
        if (!extreme) continue;
        LLVMPositionBuilderBefore(b, select);
        LLVMValueRef equal = LLVMBuildFCmp(b, LLVMRealOEQ, numbers[0], numbers[1], "");
        LLVMValueRef value =
            build_intrinsic(unit, extreme > 0 ? "llvm.maxnum" : "llvm.minnum", type, numbers, 2);
        LLVMReplaceAllUsesWith(select, LLVMBuildSelect(b, equal, numbers[0], value, ""));
        LLVMInstructionEraseFromParent(select);
        found++;
    }
    return found ? ptx_run_passes(unit, "function(adce)") : SMELT_OK;
}
