/* On CPUs without F16C (SSE2), vectors of half and float are converted by integer operations on all lanes.
 * LLVM would call a function for each lane.
 *
 * The results are those of F16C: signalling NaNs become quiet, and floats are rounded to the nearest half,
 * ties to even.
 *
 * Requires: the gang's code. Establishes: only single numbers are converted by calls. */
#include "compiler/pass.h"

#include <llvm-c/DebugInfo.h>

enum { HALF_SIGN = 0x8000, HALF_INFINITY = 0x7c00, HALF_QUIET = 0x0200, MANTISSA_SHIFT = 23 - 10 };
#define FLOAT_INFINITY 0x7f800000
#define FLOAT_QUIET 0x00400000
#define BIAS_DIFFERENCE ((127 - 15) << 23)
#define LEAST_NORMAL ((127 - 14) << 23) /* 2^-14, as a float's bits */
#define BEYOND_HALF ((127 + 16) << 23)  /* 2^16 */

struct lanes {
    struct unit *unit;
    LLVMTypeRef words, floats;
    unsigned count;
};

static LLVMValueRef all(const struct lanes *l, uint32_t value) {
    LLVMValueRef copies[64];
    for (unsigned i = 0; i < l->count; i++) copies[i] = constant_i32(l->unit, value);
    return LLVMConstVector(copies, l->count);
}

static LLVMValueRef and_with(const struct lanes *l, LLVMValueRef x, uint32_t mask) {
    return LLVMBuildAnd(l->unit->builder, x, all(l, mask), "");
}

static LLVMValueRef down_by(const struct lanes *l, LLVMValueRef x, uint32_t bits) {
    return LLVMBuildLShr(l->unit->builder, x, all(l, bits), "");
}

/* Of numbers below 2^31. */
static LLVMValueRef is_above(const struct lanes *l, LLVMValueRef x, uint32_t limit) {
    return LLVMBuildICmp(l->unit->builder, LLVMIntSGT, x, all(l, limit), "");
}

static LLVMValueRef as_float(const struct lanes *l, LLVMValueRef x) {
    return LLVMBuildBitCast(l->unit->builder, x, l->floats, "");
}

static LLVMValueRef as_word(const struct lanes *l, LLVMValueRef x) {
    return LLVMBuildBitCast(l->unit->builder, x, l->words, "");
}

static LLVMTypeRef short_vector(const struct lanes *l) {
    return LLVMVectorType(LLVMInt16TypeInContext(l->unit->context), l->count);
}

/* The exponent moves to its place. Subnormal halves get the least normal exponent, whose value is then
 * subtracted. */
static LLVMValueRef extend(const struct lanes *l, LLVMValueRef half) {
    LLVMBuilderRef b = l->unit->builder;
    const uint32_t special = (uint32_t)HALF_INFINITY << MANTISSA_SHIFT;
    LLVMValueRef h = LLVMBuildZExt(b, LLVMBuildBitCast(b, half, short_vector(l), ""), l->words, "");
    LLVMValueRef sign = LLVMBuildShl(b, and_with(l, h, HALF_SIGN), all(l, 16), "");
    LLVMValueRef x = LLVMBuildShl(b, and_with(l, h, HALF_SIGN - 1), all(l, MANTISSA_SHIFT), "");
    LLVMValueRef normal = LLVMBuildAdd(b, x, all(l, BIAS_DIFFERENCE), "");
    LLVMValueRef least = all(l, LEAST_NORMAL);
    LLVMValueRef tiny =
        as_word(l, LLVMBuildFSub(b, as_float(l, LLVMBuildAdd(b, x, least, "")), as_float(l, least), ""));
    LLVMValueRef infinite = LLVMBuildOr(b, x, all(l, FLOAT_INFINITY), "");
    LLVMValueRef nan = LLVMBuildOr(b, infinite, all(l, FLOAT_QUIET), "");
    LLVMValueRef result = LLVMBuildSelect(b, is_above(l, x, (1 << 23) - 1), normal, tiny, "");
    result = LLVMBuildSelect(b, is_above(l, x, special - 1), infinite, result, "");
    result = LLVMBuildSelect(b, is_above(l, x, special), nan, result, "");
    return as_float(l, LLVMBuildOr(b, sign, result, ""));
}

/* Half of a half's unit in the last place, and its lowest bit for ties, are added before the rest is cut off.
 * A sum with 0.5, whose last place is that of subnormal halves, rounds these. */
static LLVMValueRef truncate(const struct lanes *l, LLVMValueRef value) {
    LLVMBuilderRef b = l->unit->builder;
    const uint32_t half_unit = (1 << (MANTISSA_SHIFT - 1)) - 1;
    LLVMValueRef bits = as_word(l, value), x = and_with(l, bits, INT32_MAX);
    LLVMValueRef sign = and_with(l, down_by(l, bits, 16), HALF_SIGN), cut = down_by(l, x, MANTISSA_SHIFT);
    LLVMValueRef rounded = LLVMBuildAdd(b, x, all(l, half_unit - BIAS_DIFFERENCE), "");
    rounded = down_by(l, LLVMBuildAdd(b, rounded, and_with(l, cut, 1), ""), MANTISSA_SHIFT);
    LLVMValueRef one_half = all(l, 126 << 23);
    LLVMValueRef tiny = as_word(l, LLVMBuildFAdd(b, as_float(l, x), as_float(l, one_half), ""));
    tiny = LLVMBuildSub(b, tiny, one_half, "");
    LLVMValueRef infinite = all(l, HALF_INFINITY);
    LLVMValueRef nan =
        LLVMBuildOr(b, and_with(l, cut, HALF_QUIET - 1), all(l, HALF_INFINITY | HALF_QUIET), "");
    LLVMValueRef result = LLVMBuildSelect(b, is_above(l, x, LEAST_NORMAL - 1), rounded, tiny, "");
    result = LLVMBuildSelect(b, is_above(l, x, BEYOND_HALF - 1), infinite, result, "");
    result = LLVMBuildSelect(b, is_above(l, x, FLOAT_INFINITY), nan, result, "");
    return LLVMBuildTrunc(b, LLVMBuildOr(b, sign, result, ""), short_vector(l), "");
}

static bool is_vector_of(LLVMTypeRef type, LLVMTypeKind kind) {
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind && LLVMGetTypeKind(LLVMGetElementType(type)) == kind &&
           LLVMGetVectorSize(type) <= 64;
}

static void convert(struct unit *unit, LLVMValueRef i, bool extends) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef operand = LLVMGetOperand(i, 0);
    unsigned count = LLVMGetVectorSize(LLVMTypeOf(i));
    struct lanes lanes = {unit, LLVMVectorType(type_i32(unit), count),
                          LLVMVectorType(LLVMFloatTypeInContext(unit->context), count), count};
    LLVMPositionBuilderBefore(b, i);
    LLVMSetCurrentDebugLocation2(b, LLVMInstructionGetDebugLoc(i));
    LLVMValueRef result = extends ? extend(&lanes, operand) : truncate(&lanes, operand);
    LLVMReplaceAllUsesWith(i, LLVMBuildBitCast(b, result, LLVMTypeOf(i), ""));
    LLVMSetCurrentDebugLocation2(b, NULL);
    LLVMInstructionEraseFromParent(i);
}

smelt_status pass_simd_half_bits(struct unit *unit) {
    if (simd_converts_halves(unit->request->cpu, unit->request->features)) return SMELT_OK;
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(i, block) {
        if (!LLVMIsAFPExtInst(i) && !LLVMIsAFPTruncInst(i)) continue;
        bool extends = LLVMIsAFPExtInst(i) != NULL;
        LLVMTypeRef from = LLVMTypeOf(LLVMGetOperand(i, 0)), to = LLVMTypeOf(i);
        if (is_vector_of(extends ? from : to, LLVMHalfTypeKind) &&
            is_vector_of(extends ? to : from, LLVMFloatTypeKind))
            convert(unit, i, extends);
    }
    return SMELT_OK;
}
