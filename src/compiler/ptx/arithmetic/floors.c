/* Comparisons of floats whose result is known, because the float is at least, or at most, as great as a
 * constant, or NaN. The square root, its reciprocal and logarithms scale their argument first if it is tiny;
 * a sum of squares and 0.0001 never is. The exponential limits its argument; a negative one is not too great:
 *
 *     rsqrt(dot(d, d) + 1e-4f)    exp(-d * d)    exp(x - max(x, y))
 *
 * Requires: the module lowered and cleaned. Maintains: what the code does. */
#include "compiler/ptx/arithmetic/ranges.h"

#include <math.h>

#define DEEPEST 8

/* What the comparison of a float with a constant gives: 1 or 0; -1: unknown. */
static int known_result(LLVMValueRef comparison) {
    LLVMBool lost;
    LLVMValueRef number = LLVMGetOperand(comparison, 0), constant = LLVMGetOperand(comparison, 1);
    LLVMTypeRef type = LLVMTypeOf(number);
    if (!LLVMIsAConstantFP(constant) || LLVMGetTypeKind(type) != LLVMFloatTypeKind) return -1;
    LLVMRealPredicate predicate = LLVMGetFCmpPredicate(comparison);
    bool less = predicate == LLVMRealOLT || predicate == LLVMRealUGE;
    bool less_or_equal = predicate == LLVMRealOLE || predicate == LLVMRealUGT;
    bool greater = predicate == LLVMRealOGT || predicate == LLVMRealULE;
    bool greater_or_equal = predicate == LLVMRealOGE || predicate == LLVMRealULT;
    if (!less && !less_or_equal && !greater && !greater_or_equal) return -1;
    double limit = LLVMConstRealGetDouble(constant, &lost);
    struct range range = ptx_range_of(number, DEEPEST);
    /* Whether the ordered comparison is false for all of the range. */
    bool never = less            ? range.low >= limit
                 : less_or_equal ? range.low > limit
                 : greater       ? range.high <= limit
                                 : range.high < limit;
    if (!never) return -1;
    return predicate == LLVMRealUGE || predicate == LLVMRealUGT || predicate == LLVMRealULE ||
           predicate == LLVMRealULT;
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
