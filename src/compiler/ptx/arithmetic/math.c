/* Fast forms of functions become the GPU's own approximations, and divisions of math mode fast, too. What
 * docs/accuracy.md allows fast forms is kept, by the errors that PTX's description of its instructions
 * states:
 *
 *  exp2   2 ULP; results below the smallest normal number are 0        allowed 3 + ⌊2|x|⌋ ULP
 *  exp    the same of x log2(e), whose rounding adds |x| ULP           allowed 3 + ⌊2|x|⌋ ULP
 *  log2   2^-22 absolute in [0.5, 2], else 2 ULP; subnormals as 0      allowed the same, else 3 ULP
 *  log10  of log2 by log10(2)                                          allowed so
 *  sin, cos  2^-20.5 absolute, behind a reduction to [-π, π]           allowed 2^-13 absolute
 *  rsqrt  2^-22.9 relative, 2 ULP                                      allowed 2 ULP
 *  x / y  2 ULP                                                        allowed 2.5 ULP
 *
 * exp10, pow and powr are made of exp2 and log2 and follow. log stays as it is: of log2 by ln(2) it would be
 * off by 3.09 ULP (measured on an H200), and 3 are allowed. Precise forms keep the bits of a CPU: copysign
 * and rsqrt are shorter ways to the same, and so is tanh's rough_divide (docs/accuracy.md). */
#include "compiler/float_function.h"
#include "compiler/ptx/ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static LLVMTypeRef type_float(struct unit *unit) {
    return LLVMFloatTypeInContext(unit->context);
}

static LLVMValueRef constant(struct unit *unit, double value) {
    return LLVMConstReal(type_float(unit), value);
}

static LLVMValueRef times(struct unit *unit, LLVMValueRef x, double factor) {
    return LLVMBuildFMul(unit->builder, x, constant(unit, factor), "");
}

static LLVMValueRef fused(struct unit *unit, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z) {
    return build_intrinsic(unit, "llvm.fma", type_float(unit), (LLVMValueRef[]){x, y, z}, 3);
}

static LLVMValueRef build_exp2(struct unit *unit, LLVMValueRef *x) {
    return build_function(unit, "llvm.nvvm.ex2.approx.ftz.f", x, 1);
}
static LLVMValueRef build_exp(struct unit *unit, LLVMValueRef *x) {
    LLVMValueRef scaled = times(unit, *x, 0x1.715476p0);
    return build_exp2(unit, &scaled);
}
static LLVMValueRef build_log2(struct unit *unit, LLVMValueRef *x) {
    return build_function(unit, "llvm.nvvm.lg2.approx.ftz.f", x, 1);
}
static LLVMValueRef build_log10(struct unit *unit, LLVMValueRef *x) {
    return times(unit, build_log2(unit, x), 0x1.344136p-2);
}
static LLVMValueRef build_rsqrt(struct unit *unit, LLVMValueRef *x) {
    return build_function(unit, "llvm.nvvm.rsqrt.approx.f", x, 1);
}

/* The same steps as on a CPU (prelude/smelt_float_basic.h), but y is the GPU's approximation, off by at most
 * 2^-22.9 of itself: the result is right to 2^-66 before its one rounding. Where x is 0, infinite or NaN, e
 * is NaN and y is right: with any small positive number instead of e, the result is y. */
static LLVMValueRef build_exact_rsqrt(struct unit *unit, LLVMValueRef *x) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef tiny = LLVMBuildFCmp(b, LLVMRealOLT, *x, constant(unit, 0x1p-100), "");
    LLVMValueRef v = LLVMBuildSelect(b, tiny, times(unit, *x, 0x1p48), *x, "");
    LLVMValueRef y = build_function(unit, "llvm.nvvm.rsqrt.approx.ftz.f", &v, 1);
    LLVMValueRef h = LLVMBuildFMul(b, v, y, ""), minus_h = LLVMBuildFNeg(b, h, "");
    LLVMValueRef low = fused(unit, v, y, minus_h);
    LLVMValueRef rest = fused(unit, minus_h, y, constant(unit, 1));
    LLVMValueRef bounds[2] = {fused(unit, LLVMBuildFNeg(b, low, ""), y, rest), constant(unit, 0x1p-10)};
    LLVMValueRef e = build_intrinsic(unit, "llvm.minnum", type_float(unit), bounds, 2);
    LLVMValueRef factor = fused(unit, e, constant(unit, 0.375), constant(unit, 0.5));
    LLVMValueRef better = fused(unit, LLVMBuildFMul(b, y, e, ""), factor, y);
    return LLVMBuildSelect(b, tiny, times(unit, better, 0x1p24), better, "");
}

static LLVMValueRef build_sqrt(struct unit *unit, LLVMValueRef *x) {
    return build_function(unit, "llvm.nvvm.sqrt.approx.f", x, 1);
}

/* x minus the nearest multiple of 2π, subtracted in two parts. */
static LLVMValueRef reduce(struct unit *unit, LLVMValueRef x) {
    LLVMValueRef turns = times(unit, x, 0x1.45f306p-3);
    LLVMValueRef whole = build_intrinsic(unit, "llvm.rint", type_float(unit), &turns, 1);
    LLVMValueRef rest = fused(unit, whole, constant(unit, -0x1.921fb6p2), x);
    return fused(unit, whole, constant(unit, 0x1.777a5cp-23), rest);
}
static LLVMValueRef build_sin(struct unit *unit, LLVMValueRef *x) {
    LLVMValueRef rest = reduce(unit, *x);
    return build_function(unit, "llvm.nvvm.sin.approx.ftz.f", &rest, 1);
}
static LLVMValueRef build_cos(struct unit *unit, LLVMValueRef *x) {
    LLVMValueRef rest = reduce(unit, *x);
    return build_function(unit, "llvm.nvvm.cos.approx.ftz.f", &rest, 1);
}

/* One step on the quotient; the hardware's division does one on 1 / y as well, after it has tested the
 * operands. */
static LLVMValueRef build_rough_divide(struct unit *unit, LLVMValueRef *x) {
    LLVMValueRef inverse = build_function(unit, "llvm.nvvm.rcp.approx.ftz.f", &x[1], 1);
    LLVMValueRef quotient = LLVMBuildFMul(unit->builder, x[0], inverse, "");
    LLVMValueRef rest = fused(unit, LLVMBuildFNeg(unit->builder, x[1], ""), quotient, x[0]);
    return fused(unit, inverse, rest, quotient);
}

/* 1 / y is off by at most 2^-23 where y is from 1 to 2, and so by at most y * 2^-23 of itself. The product is
 * off by less than 4 units in its last place, and by half a unit more after its rounding. */
static LLVMValueRef build_rougher_divide(struct unit *unit, LLVMValueRef *x) {
    LLVMValueRef inverse = build_function(unit, "llvm.nvvm.rcp.approx.ftz.f", &x[1], 1);
    return LLVMBuildFMul(unit->builder, x[0], inverse, "");
}

/* One instruction of bits instead of a test of the sign. */
static LLVMValueRef build_copysign(struct unit *unit, LLVMValueRef *x) {
    LLVMTypeRef word = LLVMInt32TypeInContext(unit->context);
    LLVMValueRef bits[2];
    for (int i = 0; i < 2; i++)
        bits[i] =
            LLVMBuildAnd(unit->builder, LLVMBuildBitCast(unit->builder, x[i], word, ""),
                         LLVMConstInt(word, i ? UINT32_C(0x80000000) : UINT32_C(0x7fffffff), false), "");
    return LLVMBuildBitCast(unit->builder, LLVMBuildOr(unit->builder, bits[0], bits[1], ""), type_float(unit),
                            "");
}

/* Functions of prelude/smelt_float_*.h of one or two floats to a float. fmax and fmin are not among them: of
 * two zeros, a GPU's max returns the positive one, the CPU engines the first. */
static const struct form {
    const char *name;
    unsigned arguments;
    LLVMValueRef (*build)(struct unit *unit, LLVMValueRef *x);
} forms[] = {
    {"fast_exp2", 1, build_exp2},
    {"fast_exp", 1, build_exp},
    {"fast_log2", 1, build_log2},
    {"fast_sin", 1, build_sin},
    {"fast_cos", 1, build_cos},
    {"fast_log10", 1, build_log10},
    {"fast_rsqrt", 1, build_rsqrt},
    {"fast_sqrt", 1, build_sqrt},
    {"rsqrt", 1, build_exact_rsqrt},
    {"copysign", 2, build_copysign},
    {"rough_divide", 2, build_rough_divide},
    {"rougher_divide", 2, build_rougher_divide},
};

static const struct form *form_of(LLVMValueRef function) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (is_float_function(function, forms[i].name, forms[i].arguments)) return &forms[i];
    return NULL;
}

/* A new body before the old one, which then is unreachable. */
static void replace_body(struct unit *unit, LLVMValueRef function, const struct form *form) {
    LLVMBasicBlockRef old = LLVMGetEntryBasicBlock(function);
    LLVMPositionBuilderAtEnd(unit->builder, LLVMInsertBasicBlockInContext(unit->context, old, "approximate"));
    LLVMValueRef x[2];
    LLVMGetParams(function, x);
    LLVMBuildRet(unit->builder, form->build(unit, x));
}

smelt_status pass_ptx_math(struct unit *unit) {
    for (LLVMValueRef f = LLVMGetFirstFunction(unit->module); f; f = LLVMGetNextFunction(f)) {
        const struct form *form = form_of(f);
        if (form) replace_body(unit, f, form);
    }
    return SMELT_OK;
}

/* ---- Divisions. */

static bool is_division(LLVMValueRef instruction, LLVMTypeKind type) {
    return LLVMIsABinaryOperator(instruction) && LLVMGetInstructionOpcode(instruction) == LLVMFDiv &&
           LLVMGetTypeKind(LLVMTypeOf(instruction)) == type;
}

/* … of floats, where approximate functions are allowed. */
static LLVMValueRef divide_fast(struct unit *unit, LLVMValueRef *operands) {
    return ptx_assembly(unit, "div.full.f32 $0, $1, $2;", "=f,f,f", type_float(unit), operands, 2, false);
}

/* … of halfs, computed in floats, in whose range all finite quotients of halfs lie. Rounded to half, the
 * result is the exact quotient rounded once: a quotient of two numbers of 11 bits is either midway between
 * two halfs, or at least 2^-23 of itself away from there. The last step is left out if the rest is zero (the
 * quotient is exact) or a NaN (an operand or the quotient is infinite): it could change the sign of a zero,
 * or result in a NaN. */
static LLVMValueRef divide_halfs(struct unit *unit, LLVMValueRef *operands) {
    LLVMBuilderRef b = unit->builder;
    LLVMValueRef x = LLVMBuildFPExt(b, operands[0], type_float(unit), ""),
                 y = LLVMBuildFPExt(b, operands[1], type_float(unit), "");
    LLVMValueRef inverse = build_function(unit, "llvm.nvvm.rcp.approx.ftz.f", &y, 1);
    LLVMValueRef quotient = LLVMBuildFMul(b, x, inverse, "");
    LLVMValueRef rest = fused(unit, LLVMBuildFNeg(b, y, ""), quotient, x);
    LLVMValueRef better = fused(unit, inverse, rest, quotient);
    LLVMValueRef has_rest = LLVMBuildFCmp(b, LLVMRealONE, rest, constant(unit, 0), "");
    quotient = LLVMBuildSelect(b, has_rest, better, quotient, "");
    return LLVMBuildFPTrunc(b, quotient, LLVMTypeOf(operands[0]), "");
}

smelt_status pass_ptx_division(struct unit *unit) {
    FOR_EACH_BLOCK(block, unit->entry)
    FOR_EACH_INSTRUCTION(division, block) {
        bool fast = is_division(division, LLVMFloatTypeKind) &&
                    LLVMGetFastMathFlags(division) & LLVMFastMathApproxFunc;
        if (!fast && !is_division(division, LLVMHalfTypeKind)) continue;
        LLVMValueRef operands[2] = {LLVMGetOperand(division, 0), LLVMGetOperand(division, 1)};
        LLVMPositionBuilderBefore(unit->builder, division);
        LLVMReplaceAllUsesWith(division, fast ? divide_fast(unit, operands) : divide_halfs(unit, operands));
        LLVMInstructionEraseFromParent(division);
    }
    return SMELT_OK;
}
