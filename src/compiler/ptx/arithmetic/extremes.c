/* The greater or smaller one of two floats in three instructions, or in one.
 *
 *     x < y || isnan(x) ? y : x
 *
 * are two comparisons and two selects. max.f32 differs only where the two are equal, which two zeros of
 * different signs are. There the result is x. Two NaN give the hardware's own NaN.
 *
 *     x > 89.0f ? 89.0f : x      x > 0.0f ? x : 0.0f
 *
 * are min.NaN.f32 and max.f32. These order -0 below +0, so they are used only where they give the same zero
 * as the select.
 *
 * Requires: the module in its final form. Maintains: what the code does, except for the bits of a NaN. */
#include "compiler/ptx/ptx.h"

#include <math.h>

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

int ptx_extreme_of(LLVMValueRef select, LLVMValueRef *x, LLVMValueRef *y) {
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

/* A select between `x` and a constant by their comparison. */
struct limit {
    bool greater;    /* it is the greater one of both */
    bool equal_is_x; /* of numbers that compare equal, it is x */
    bool nan_is_x;
};

static bool is_plain_constant(LLVMValueRef value) {
    LLVMBool lost;
    if (!LLVMIsAConstantFP(value)) return false;
    double number = LLVMConstRealGetDouble(value, &lost);
    return !isnan(number);
}

/* `x_first`: x is the result where the comparison holds. */
static bool limit_by(LLVMRealPredicate predicate, bool x_first, struct limit *limit) {
    bool unordered = predicate >= LLVMRealUGT && predicate <= LLVMRealULE;
    if (unordered) predicate -= LLVMRealUGT - LLVMRealOGT;
    if (predicate < LLVMRealOGT || predicate > LLVMRealOLE) return false;
    bool equal = predicate == LLVMRealOGE || predicate == LLVMRealOLE;
    bool greater = predicate == LLVMRealOGT || predicate == LLVMRealOGE;
    *limit = (struct limit){greater == x_first, equal == x_first, unordered == x_first};
    return true;
}

/* Whether the instruction gives the zero that the select gives, where x is the other one. */
static bool agrees_about_zeros(const struct limit *limit, LLVMValueRef constant) {
    LLVMBool lost;
    double number = LLVMConstRealGetDouble(constant, &lost);
    if (number != 0) return true;
    bool constant_wins = limit->greater == !signbit(number);
    return constant_wins != limit->equal_is_x;
}

/* The instruction that does what the select does; NULL: none. */
static LLVMValueRef limited(struct unit *unit, LLVMValueRef select) {
    LLVMValueRef comparison = LLVMGetOperand(select, 0), yes = LLVMGetOperand(select, 1);
    LLVMValueRef no = LLVMGetOperand(select, 2);
    if (!LLVMIsAFCmpInst(comparison)) return NULL;
    LLVMValueRef x = LLVMGetOperand(comparison, 0), constant = LLVMGetOperand(comparison, 1);
    bool x_first = yes == x && no == constant;
    struct limit limit;
    if (!is_plain_constant(constant) || !(x_first || (yes == constant && no == x)) ||
        !limit_by(LLVMGetFCmpPredicate(comparison), x_first, &limit) || !agrees_about_zeros(&limit, constant))
        return NULL;
    const char *name = limit.nan_is_x  ? limit.greater ? "llvm.maximum" : "llvm.minimum"
                       : limit.greater ? "llvm.maxnum"
                                       : "llvm.minnum";
    LLVMPositionBuilderBefore(unit->builder, select);
    return build_intrinsic(unit, name, LLVMTypeOf(select), (LLVMValueRef[]){x, constant}, 2);
}

/* … in three instructions; NULL: it is not an extreme. */
static LLVMValueRef greater_or_smaller(struct unit *unit, LLVMValueRef select) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef numbers[2];
    int extreme = ptx_extreme_of(select, &numbers[0], &numbers[1]);
    if (!extreme) return NULL;
    LLVMPositionBuilderBefore(b, select);
    LLVMValueRef equal = LLVMBuildFCmp(b, LLVMRealOEQ, numbers[0], numbers[1], "");
    LLVMValueRef value =
        build_intrinsic(unit, extreme > 0 ? "llvm.maxnum" : "llvm.minnum", LLVMTypeOf(select), numbers, 2);
    return LLVMBuildSelect(b, equal, numbers[0], value, "");
}

smelt_status pass_ptx_extremes(struct unit *unit) {
    LLVMTypeRef type = LLVMFloatTypeInContext(unit->context);
    int found = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(select, block) {
        if (!LLVMIsASelectInst(select) || LLVMTypeOf(select) != type) continue;
        LLVMValueRef value = limited(unit, select);
        if (!value) value = greater_or_smaller(unit, select);
        if (!value) continue;
        LLVMReplaceAllUsesWith(select, value);
        LLVMInstructionEraseFromParent(select);
        found++;
    }
    return found ? ptx_run_passes(unit, "function(adce)") : SMELT_OK;
}
