/* Comparisons of floats whose result is known, because the float is at least as great as a constant, or NaN.
 * The square root, its reciprocal and logarithms scale their argument first if it is tiny; a sum of squares
 * and 0.0001 never is:
 *
 *     rsqrt(dot(d, d) + 1e-4f)
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "compiler/ptx/ptx.h"

#include <math.h>
#include <string.h>

#define DEEPEST 8

static double floor_of(LLVMValueRef value, int depth);

static double least(double a, double b) {
    return a < b ? a : b;
}

static double greatest(double a, double b) {
    return a > b ? a : b;
}

/* Rounding keeps the order, so a rounded product is at least the rounded product of floors. */
static double floor_of_product(LLVMValueRef a, LLVMValueRef b, int depth) {
    if (a == b) return 0;
    double first = floor_of(a, depth), second = floor_of(b, depth);
    return first < 0 || second < 0 ? -INFINITY : (double)(float)(first * second);
}

/* Of two numbers of which neither is negative: a rounded sum is at least the greater floor. */
static double floor_of_sum(double first, double second) {
    return first < 0 || second < 0 ? -INFINITY : greatest(first, second);
}

/* A maximum is its other operand where one is NaN. */
static double floor_of_maximum(LLVMValueRef a, LLVMValueRef b, int depth) {
    double first = floor_of(a, depth), second = floor_of(b, depth), both = least(first, second);
    if (LLVMIsAConstantFP(a)) both = greatest(both, first);
    return LLVMIsAConstantFP(b) ? greatest(both, second) : both;
}

static double floor_of_call(LLVMValueRef call, int depth) {
    const char *name = called_name(call);
    LLVMValueRef first = LLVMGetNumOperands(call) > 1 ? LLVMGetOperand(call, 0) : NULL;
    if (strcmp(name, "llvm.fabs.f32") == 0) return 0;
    if (strcmp(name, "llvm.sqrt.f32") == 0) return 0;
    if (strcmp(name, "llvm.maxnum.f32") == 0) return floor_of_maximum(first, LLVMGetOperand(call, 1), depth);
    if (strcmp(name, "llvm.minnum.f32") == 0)
        return least(floor_of(first, depth), floor_of(LLVMGetOperand(call, 1), depth));
    if (strcmp(name, "llvm.fma.f32") != 0) return -INFINITY;
    return floor_of_sum(floor_of_product(first, LLVMGetOperand(call, 1), depth),
                        floor_of(LLVMGetOperand(call, 2), depth));
}

/* A number that a float does not fall below unless it is NaN. */
static double floor_of(LLVMValueRef value, int depth) {
    LLVMBool lost;
    if (LLVMIsAConstantFP(value)) {
        double number = LLVMConstRealGetDouble(value, &lost);
        return isnan(number) ? -INFINITY : number;
    }
    if (depth == 0 || !LLVMIsAInstruction(value)) return -INFINITY;
    LLVMValueRef first = LLVMGetNumOperands(value) ? LLVMGetOperand(value, 0) : NULL;
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMFMul:
        return floor_of_product(first, LLVMGetOperand(value, 1), depth - 1);
    case LLVMFAdd:
        return floor_of_sum(floor_of(first, depth - 1), floor_of(LLVMGetOperand(value, 1), depth - 1));
    case LLVMSelect:
        return least(floor_of(LLVMGetOperand(value, 1), depth - 1),
                     floor_of(LLVMGetOperand(value, 2), depth - 1));
    case LLVMUIToFP:
        return 0;
    case LLVMCall:
        return floor_of_call(value, depth - 1);
    default:
        return -INFINITY;
    }
}

/* What the comparison of a float with a constant gives: 1 or 0; -1: unknown. */
static int known_result(LLVMValueRef comparison) {
    LLVMBool lost;
    LLVMValueRef number = LLVMGetOperand(comparison, 0), constant = LLVMGetOperand(comparison, 1);
    LLVMTypeRef type = LLVMTypeOf(number);
    if (!LLVMIsAConstantFP(constant) || LLVMGetTypeKind(type) != LLVMFloatTypeKind) return -1;
    LLVMRealPredicate predicate = LLVMGetFCmpPredicate(comparison);
    bool less = predicate == LLVMRealOLT || predicate == LLVMRealUGE;
    bool less_or_equal = predicate == LLVMRealOLE || predicate == LLVMRealUGT;
    if (!less && !less_or_equal) return -1;
    double limit = LLVMConstRealGetDouble(constant, &lost), floor = floor_of(number, DEEPEST);
    if (!(less ? floor >= limit : floor > limit)) return -1;
    return predicate == LLVMRealUGE || predicate == LLVMRealUGT;
}

smelt_status pass_ptx_floors(struct unit *unit) {
    LLVMTypeRef bit = LLVMInt1TypeInContext(unit->context);
    int known = 0;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(comparison, block) {
        int result = LLVMIsAFCmpInst(comparison) ? known_result(comparison) : -1;
        if (result < 0) continue;
        LLVMReplaceAllUsesWith(comparison, LLVMConstInt(bit, (unsigned)result, false));
        LLVMInstructionEraseFromParent(comparison);
        known++;
    }
    return known ? ptx_run_passes(unit, "function(instcombine<no-verify-fixpoint>,simplifycfg,adce)")
                 : SMELT_OK;
}
