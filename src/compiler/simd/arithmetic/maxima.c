/* Removes tests for NaN from maxima and minima (select the other number if this one is NaN or the smaller
 * one) where this number is never NaN. The rest is one instruction of the CPU, which returns this number if
 * either is NaN. Elsewhere the test becomes a select of its own behind it: three instructions, or five for
 * the minimum and the maximum of two numbers.
 *
 *   top = -inf;  for (…) top = isnan(top) || top < x[i] ? x[i] : top;      no round makes a NaN of it
 *
 * Requires: the entry in SSA form. Maintains: values, bit for bit. */
#include "compiler/simd/simd.h"

#define MOST_VALUES 16 /* that a proof looks at */

struct proof {
    LLVMValueRef assumed[MOST_VALUES]; /* not NaN: phis in whose own values they are used */
    int count;
};

static bool is_ordered(LLVMValueRef comparison, LLVMValueRef a, LLVMValueRef b) {
    if (!LLVMIsAFCmpInst(comparison)) return false;
    LLVMRealPredicate predicate = LLVMGetFCmpPredicate(comparison);
    LLVMValueRef left = LLVMGetOperand(comparison, 0), right = LLVMGetOperand(comparison, 1);
    return predicate >= LLVMRealOEQ && predicate <= LLVMRealORD &&
           ((left == a && right == b) || (left == b && right == a));
}

static bool asks_for_nan(LLVMValueRef comparison, LLVMValueRef number) {
    if (!LLVMIsAFCmpInst(comparison) || LLVMGetFCmpPredicate(comparison) != LLVMRealUNO) return false;
    LLVMValueRef other = LLVMGetOperand(comparison, 1);
    LLVMBool lost;
    return LLVMGetOperand(comparison, 0) == number &&
           (other == number || (LLVMIsAConstantFP(other) && LLVMConstRealGetDouble(other, &lost) == 0));
}

/* Of select(isnan(number) || ordered comparison of both, other, number): the ordered comparison. NULL: it is
 * none. */
static LLVMValueRef comparison_of(LLVMValueRef select) {
    LLVMValueRef condition = LLVMGetOperand(select, 0), other = LLVMGetOperand(select, 1),
                 number = LLVMGetOperand(select, 2);
    if (!LLVMIsABinaryOperator(condition) || LLVMGetInstructionOpcode(condition) != LLVMOr) return NULL;
    for (unsigned n = 0; n < 2; n++) {
        LLVMValueRef asks = LLVMGetOperand(condition, n), compares = LLVMGetOperand(condition, 1 - n);
        if (asks_for_nan(asks, number) && is_ordered(compares, other, number)) return compares;
    }
    return NULL;
}

static bool is_never_nan(LLVMValueRef value, struct proof *proof) {
    LLVMBool lost;
    if (LLVMIsAConstantFP(value)) {
        double number = LLVMConstRealGetDouble(value, &lost);
        return number == number;
    }
    for (int i = 0; i < proof->count; i++)
        if (proof->assumed[i] == value) return true;
    if (!LLVMIsAInstruction(value) || proof->count == MOST_VALUES) return false;
    if (LLVMIsAPHINode(value)) {
        proof->assumed[proof->count++] = value;
        for (unsigned i = 0; i < LLVMCountIncoming(value); i++)
            if (!is_never_nan(LLVMGetIncomingValue(value, i), proof)) return false;
        return true;
    }
    /* The other number is taken only if an ordered comparison holds. */
    if (LLVMIsASelectInst(value))
        return (comparison_of(value) ||
                is_ordered(LLVMGetOperand(value, 0), LLVMGetOperand(value, 1), LLVMGetOperand(value, 2))) &&
               is_never_nan(LLVMGetOperand(value, 2), proof);
    return LLVMIsASIToFPInst(value) || LLVMIsAUIToFPInst(value);
}

static void remove_unused(LLVMValueRef i) {
    if (!LLVMGetFirstUse(i)) LLVMInstructionEraseFromParent(i);
}

static void ask_less(LLVMValueRef select, LLVMValueRef comparison) {
    LLVMValueRef both = LLVMGetOperand(select, 0);
    LLVMValueRef asks = LLVMGetOperand(both, LLVMGetOperand(both, 0) == comparison ? 1 : 0);
    LLVMSetOperand(select, 0, comparison);
    if (LLVMGetFirstUse(both)) return;
    LLVMInstructionEraseFromParent(both);
    remove_unused(asks);
}

/* Asks for NaN apart: the rest is the CPU's instruction again, beside which the test runs. */
static void ask_apart(struct unit *unit, LLVMValueRef select, LLVMValueRef comparison) {
    LLVMValueRef both = LLVMGetOperand(select, 0), other = LLVMGetOperand(select, 1);
    LLVMValueRef asks = LLVMGetOperand(both, LLVMGetOperand(both, 0) == comparison ? 1 : 0);
    LLVMPositionBuilderBefore(unit->builder, select);
    LLVMValueRef number = LLVMBuildSelect(unit->builder, comparison, other, LLVMGetOperand(select, 2), "");
    LLVMSetOperand(select, 0, asks);
    LLVMSetOperand(select, 2, number);
    remove_unused(both);
}

smelt_status pass_simd_maxima(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
        LLVMValueRef comparison = LLVMIsASelectInst(i) ? comparison_of(i) : NULL;
        struct proof proof = {.count = 0};
        if (!comparison) continue;
        if (is_never_nan(LLVMGetOperand(i, 2), &proof))
            ask_less(i, comparison);
        else
            ask_apart(unit, i, comparison);
    }
    return SMELT_OK;
}
