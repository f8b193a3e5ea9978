/* Integer division of lanes. No CPU has it for vectors, and LLVM would divide lane by lane.
 *
 * - By a constant: LLVM multiplies.
 * - By a uniform value: a multiplier is computed once, in scalar code that cannot trap and so may be hoisted
 *   out of loops; a chunk costs multiplications and shifts.
 * - By a varying value: through float or double, whose quotients are exact enough (see real_quotient).
 * - 64 bits: as 32 bits if the values allow; otherwise lane by lane. A dividend of 32 bits is enough: the
 *   quotient by a larger divisor is 0. Other operands are tested at run time.
 *
 * Requires: compiler/passes/guard.c made divisors of active lanes safe. Those of inactive lanes may be 0: no
 * instruction here traps for them, and their results are arbitrary. */
#include "compiler/simd/arithmetic/arithmetic.h"

struct division {
    struct simd *s;
    LLVMValueRef original;
    LLVMTypeRef type; /* of one lane */
    unsigned width;
    bool is_signed, remainder;
    int chunk;
    LLVMValueRef divisor; /* uniform, if uniform_divisor() found one */
};

static LLVMTypeRef wide_type(LLVMTypeRef element, LLVMValueRef like) {
    return LLVMVectorType(element, LLVMGetVectorSize(LLVMTypeOf(like)));
}

/* A constant in the type of a scalar or of a vector's lanes. */
static LLVMValueRef constant_like(struct simd *s, LLVMValueRef like, uint64_t value) {
    LLVMTypeRef type = LLVMTypeOf(like);
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind) return LLVMConstInt(type, value, false);
    return lanes_splat(s, LLVMConstInt(LLVMGetElementType(type), value, false), (int)LLVMGetVectorSize(type));
}

/* value ^ sign - sign, where sign is 0 or -1. */
static LLVMValueRef with_sign(struct simd *s, LLVMValueRef value, LLVMValueRef sign) {
    LLVMBuilderRef b = s->unit->builder;
    return LLVMBuildSub(b, LLVMBuildXor(b, value, sign, ""), sign, "");
}

static LLVMValueRef sign_of(struct simd *s, LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind) type = LLVMGetElementType(type);
    return LLVMBuildAShr(s->unit->builder, value, constant_like(s, value, LLVMGetIntTypeWidth(type) - 1), "");
}

/* The magnitude of the smallest number has no positive counterpart, but is right as an unsigned number. */
static LLVMValueRef magnitude_of(struct simd *s, LLVMValueRef value) {
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef arguments[2] = {value, LLVMConstInt(simd_i1(s), 0, false)};
    return simd_intrinsic(s, "llvm.abs", &type, 1, arguments, 2);
}

/* ---- Multipliers. Granlund and Montgomery, Division by Invariant Integers using Multiplication, 1994,
 * theorem 4.2: let l = ceil(log2 d) and 2^(N+l) <= m d <= 2^(N+l) + 2^l; then floor(n / d) = floor(m n /
 * 2^(N+l)) for all 0 <= n < 2^N. m = ceil(2^(N+l) / d) will do: m d exceeds 2^(N+l) by less than d <= 2^l.
 *
 * With N = 31 m has 32 bits, and n = 2^31 is divided rightly, too: with e = m d - 2^(31+l), m n / 2^(31+l) =
 * n / d + (e / d) (n / 2^(31+l)), where the last term is below 1 / d if e < 2^l, and e = d = 2^l cannot be.
 * With N = 32 m has 33 bits: the upper one is 1 and is added apart. */

#define SHORT_LIMIT (1ull << 31) /* the largest n for which the short factor is right */

struct multiplier {
    LLVMValueRef factor; /* i64: m, or m - 2^32 */
    LLVMValueRef l;      /* i32 */
    bool long_factor;    /* N = 32 */
};

/* Only through double: divisions of integers would not be hoisted. X = 2^(N+l) and d are exact in double, the
 * quotient is below 2^33 and its error below 2^-20: rounded down, it is floor(X / d), or ceil(X / d) if X / d
 * is that close below it. k d modulo 2^64 tells which: |k d - X| < d. */
static struct multiplier make_multiplier(struct simd *s, LLVMValueRef divisor, bool long_factor) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef i32 = type_i32(s->unit), i64 = type_i64(s->unit);
    LLVMTypeRef real = LLVMDoubleTypeInContext(s->unit->context);
    LLVMValueRef arguments[2] = {LLVMBuildSub(b, divisor, simd_i32(s, 1), ""),
                                 LLVMConstInt(simd_i1(s), 0, false)};
    LLVMValueRef zeros = simd_intrinsic(s, "llvm.ctlz", &i32, 1, arguments, 2);
    LLVMValueRef l = LLVMBuildSub(b, simd_i32(s, 32), zeros, "");
    LLVMValueRef wide_l = LLVMBuildZExt(b, l, i64, "");
    unsigned bits = long_factor ? 32 : 31;
    LLVMValueRef exponent = LLVMBuildAdd(b, wide_l, LLVMConstInt(i64, 1023 + bits, false), "");
    LLVMValueRef power =
        LLVMBuildBitCast(b, LLVMBuildShl(b, exponent, LLVMConstInt(i64, 52, false), ""), real, "");
    LLVMValueRef quotient = LLVMBuildFDiv(b, power, LLVMBuildUIToFP(b, divisor, real, ""), "");
    LLVMValueRef near = LLVMBuildFPToSI(b, quotient, i64, "");
    LLVMValueRef exact = LLVMBuildShl(b, LLVMConstInt(i64, 1ull << bits, false), wide_l, "");
    LLVMValueRef product = LLVMBuildMul(b, near, LLVMBuildZExt(b, divisor, i64, ""), "");
    LLVMValueRef excess = LLVMBuildSub(b, product, exact, "");
    LLVMValueRef below = LLVMBuildICmp(b, LLVMIntSLT, excess, LLVMConstNull(i64), "");
    LLVMValueRef factor = LLVMBuildAdd(b, near, LLVMBuildZExt(b, below, i64, ""), "");
    if (long_factor) factor = LLVMBuildSub(b, factor, LLVMConstInt(i64, 1ull << 32, false), "");
    return (struct multiplier){.factor = factor, .l = l, .long_factor = long_factor};
}

/* (a m) >> shift of every lane: the product has 64 bits, the result 32. Even and odd lanes are multiplied
 * separately, as x86 does, and are frozen, since poison in one lane of a pair would be poison in both. */
static LLVMValueRef multiply_shift(struct simd *s, LLVMValueRef a, LLVMValueRef factor, LLVMValueRef shift) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef i64 = type_i64(s->unit), type = LLVMTypeOf(a);
    int lanes = (int)LLVMGetVectorSize(type);
    if (lanes == 1) {
        LLVMValueRef wide = LLVMBuildZExt(b, a, wide_type(i64, a), "");
        wide = LLVMBuildMul(b, wide, lanes_splat(s, factor, 1), "");
        return LLVMBuildTrunc(b, LLVMBuildLShr(b, wide, lanes_splat(s, shift, 1), ""), type, "");
    }
    a = LLVMBuildFreeze(b, a, "");
    LLVMValueRef pairs = LLVMBuildBitCast(b, a, LLVMVectorType(i64, (unsigned)lanes / 2), "");
    LLVMValueRef shifts = lanes_splat(s, shift, lanes / 2);
    /* The mask next to the multiplication tells the code generator that 32 bits suffice: it keeps the mask
     * there even if the factor is computed outside a loop. The cast prevents a scalar mask. */
    LLVMValueRef low_factor = LLVMBuildTrunc(b, factor, type_i32(s->unit), "");
    LLVMValueRef factors = LLVMBuildBitCast(b, lanes_splat(s, low_factor, lanes), LLVMTypeOf(pairs), "");
    factors = LLVMBuildAnd(b, factors, constant_like(s, pairs, 0xffffffff), "");
    LLVMValueRef thirty_two = constant_like(s, pairs, 32);
    LLVMValueRef even = LLVMBuildAnd(b, pairs, constant_like(s, pairs, 0xffffffff), "");
    LLVMValueRef odd = LLVMBuildLShr(b, pairs, thirty_two, "");
    even = LLVMBuildLShr(b, LLVMBuildMul(b, even, factors, ""), shifts, "");
    odd = LLVMBuildLShr(b, LLVMBuildMul(b, odd, factors, ""), shifts, "");
    odd = LLVMBuildShl(b, odd, thirty_two, "");
    return LLVMBuildBitCast(b, LLVMBuildOr(b, even, odd, ""), type, "");
}

/* Unsigned lanes of 32 bits by a uniform divisor. */
static LLVMValueRef multiplied_quotient(struct simd *s, LLVMValueRef n, struct multiplier m) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef i64 = type_i64(s->unit);
    if (!m.long_factor) {
        LLVMValueRef shift =
            LLVMBuildAdd(b, LLVMBuildZExt(b, m.l, i64, ""), LLVMConstInt(i64, 31, false), "");
        return multiply_shift(s, n, m.factor, shift);
    }
    /* n + high would need 33 bits: half the difference is added instead, unless l is 0. */
    int lanes = (int)LLVMGetVectorSize(LLVMTypeOf(n));
    LLVMValueRef high = multiply_shift(s, n, m.factor, LLVMConstInt(i64, 32, false));
    LLVMValueRef zero = simd_i32(s, 0);
    LLVMValueRef some = LLVMBuildICmp(b, LLVMIntNE, m.l, zero, "");
    LLVMValueRef first = LLVMBuildZExt(b, some, type_i32(s->unit), "");
    LLVMValueRef second = LLVMBuildSub(b, m.l, first, "");
    LLVMValueRef rest = LLVMBuildLShr(b, LLVMBuildSub(b, n, high, ""), lanes_splat(s, first, lanes), "");
    return LLVMBuildLShr(b, LLVMBuildAdd(b, rest, high, ""), lanes_splat(s, second, lanes), "");
}

/* ---- Through floating point. Let a, b >= 0 be exact in the type, whose rounding has a relative error of at
 * most e, and q = floor(a / b). The rounded quotient is at least q, since q can be represented. It reaches
 * q + 1 only if the relative distance of a / b from there, (q + 1 - a / b) / (q + 1) >= (1 / b) / ((a + b) /
 * b) = 1 / (a + b), is at most e: 2^-53 in double, which a + b < 2^33 excludes; 2^-24 in float, which a + b <
 * 2^24 does. Rounding down then gives q. Signs are symmetric. */

static LLVMValueRef real_quotient(struct simd *s, LLVMValueRef a, LLVMValueRef b, bool is_signed,
                                  bool fits_float) {
    LLVMBuilderRef builder = s->unit->builder;
    LLVMTypeRef real =
        fits_float ? LLVMFloatTypeInContext(s->unit->context) : LLVMDoubleTypeInContext(s->unit->context);
    LLVMTypeRef type = wide_type(real, a);
    LLVMOpcode to = is_signed ? LLVMSIToFP : LLVMUIToFP, from = is_signed ? LLVMFPToSI : LLVMFPToUI;
    LLVMValueRef x = LLVMBuildCast(builder, to, a, type, ""), y = LLVMBuildCast(builder, to, b, type, "");
    return LLVMBuildCast(builder, from, LLVMBuildFDiv(builder, x, y, ""), LLVMTypeOf(a), "");
}

/* ---- 32 bits and fewer. */

/* An upper bound of this operand in lanes that hold a thread. */
static uint64_t highest(const struct division *d, unsigned operand) {
    return range_unsigned(d->s, LLVMGetOperand(d->original, operand)).high;
}

static LLVMValueRef to_32_bits(const struct division *d, LLVMValueRef value) {
    LLVMTypeRef type = type_i32(d->s->unit);
    if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind) type = wide_type(type, value);
    if (LLVMTypeOf(value) == type) return value;
    return LLVMBuildCast(d->s->unit->builder, d->is_signed ? LLVMSExt : LLVMZExt, value, type, "");
}

/* As signed numbers if they are not negative: those conversions are cheaper. */
static LLVMValueRef narrow_varying(const struct division *d, LLVMValueRef a, LLVMValueRef b) {
    uint64_t half = 1ull << 31, sum = UINT64_MAX;
    bool is_signed = d->is_signed;
    if (d->width < 32) {
        is_signed = true;
        sum = 2ull << d->width;
    } else if (highest(d, 0) < half && highest(d, 1) < half) {
        is_signed = true;
        sum = highest(d, 0) + highest(d, 1);
    }
    return real_quotient(d->s, a, b, is_signed, sum < 1u << 24);
}

static LLVMValueRef narrow_uniform(const struct division *d, LLVMValueRef a) {
    struct simd *s = d->s;
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef divisor = to_32_bits(d, d->divisor);
    if (!d->is_signed) {
        bool long_factor = d->width == 32 && highest(d, 0) > SHORT_LIMIT;
        return multiplied_quotient(s, a, make_multiplier(s, divisor, long_factor));
    }
    struct multiplier m = make_multiplier(s, magnitude_of(s, divisor), false);
    LLVMValueRef sign = sign_of(s, LLVMBuildXor(b, a, chunk_splat(s, divisor), ""));
    return with_sign(s, multiplied_quotient(s, magnitude_of(s, a), m), sign);
}

static LLVMValueRef narrow_quotient(const struct division *d, LLVMValueRef x, LLVMValueRef y) {
    LLVMValueRef a = to_32_bits(d, x);
    LLVMValueRef quotient = d->divisor ? narrow_uniform(d, a) : narrow_varying(d, a, to_32_bits(d, y));
    if (LLVMTypeOf(quotient) == LLVMTypeOf(x)) return quotient;
    return LLVMBuildTrunc(d->s->unit->builder, quotient, LLVMTypeOf(x), "");
}

/* ---- 64 bits: of the magnitudes. */

static LLVMValueRef lane_quotient(struct simd *s, LLVMValueRef origin, LLVMValueRef *arguments) {
    (void)origin;
    return LLVMBuildUDiv(s->unit->builder, arguments[0], arguments[1], "");
}

/* i1: whether `bits` has an empty upper half in every active lane. */
static LLVMValueRef upper_halves_empty(const struct division *d, LLVMValueRef bits, LLVMValueRef mask) {
    LLVMBuilderRef b = d->s->unit->builder;
    LLVMValueRef large = LLVMBuildICmp(b, LLVMIntUGT, bits, constant_like(d->s, bits, UINT32_MAX), "");
    if (mask) large = LLVMBuildSelect(b, mask, large, LLVMConstNull(LLVMTypeOf(large)), "");
    return LLVMBuildNot(b, mask_any(d->s, &large, 1), "");
}

/* Unsigned 64-bit lanes: x, whose upper halves are empty, by y, or by the uniform `divisor` if it is not
 * NULL.
 */
static LLVMValueRef short_quotient(const struct division *d, LLVMValueRef x, LLVMValueRef y,
                                   LLVMValueRef divisor) {
    struct simd *s = d->s;
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef i32 = type_i32(s->unit), narrow = wide_type(i32, x);
    LLVMValueRef a = LLVMBuildTrunc(b, x, narrow, ""), quotient;
    if (divisor) {
        divisor = LLVMBuildTrunc(b, divisor, i32, "");
        quotient = multiplied_quotient(s, a, make_multiplier(s, divisor, highest(d, 0) > SHORT_LIMIT));
    } else {
        quotient = real_quotient(s, a, LLVMBuildTrunc(b, y, narrow, ""), false, false);
    }
    return LLVMBuildZExt(b, quotient, LLVMTypeOf(x), "");
}

/* 0 where a divisor has more than 32 bits; its lower half, which may be 0, is of no account there. */
static LLVMValueRef short_dividend_quotient(const struct division *d, LLVMValueRef x, LLVMValueRef y,
                                            LLVMValueRef divisor) {
    LLVMBuilderRef b = d->s->unit->builder;
    if (highest(d, 1) <= UINT32_MAX) return short_quotient(d, x, y, divisor);
    LLVMValueRef by = divisor ? divisor : y;
    LLVMValueRef large = LLVMBuildICmp(b, LLVMIntUGT, by, constant_like(d->s, by, UINT32_MAX), "");
    if (divisor) divisor = LLVMBuildSelect(b, large, constant_like(d->s, by, 1), by, "");
    LLVMValueRef quotient = short_quotient(d, x, y, divisor);
    return LLVMBuildSelect(b, large, LLVMConstNull(LLVMTypeOf(x)), quotient, "");
}

static LLVMValueRef wide_unsigned_quotient(const struct division *d, LLVMValueRef x, LLVMValueRef y,
                                           LLVMValueRef divisor) {
    struct simd *s = d->s;
    LLVMBuilderRef b = s->unit->builder;
    if (highest(d, 0) <= UINT32_MAX) return short_dividend_quotient(d, x, y, divisor);
    LLVMValueRef mask = mask_chunk(s, d->chunk);
    LLVMValueRef is_short = upper_halves_empty(d, LLVMBuildOr(b, x, y, ""), mask);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef fast = simd_block(s, "short_division");
    LLVMPositionBuilderAtEnd(b, fast);
    LLVMValueRef results[2];
    LLVMBasicBlockRef ends[2];
    results[0] = short_quotient(d, x, y, divisor);
    ends[0] = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef slow = simd_block(s, "long_division");
    LLVMPositionBuilderAtEnd(b, slow);
    LLVMValueRef operands[2] = {x, y};
    results[1] = lanes_each(s, d->original, mask, operands, 2, type_i64(s->unit), lane_quotient);
    ends[1] = LLVMGetInsertBlock(b);
    LLVMBasicBlockRef join = simd_block(s, "divided");
    LLVMBuildBr(b, join);
    LLVMPositionBuilderAtEnd(b, ends[0]);
    LLVMBuildBr(b, join);
    LLVMPositionBuilderAtEnd(b, before);
    LLVMBuildCondBr(b, is_short, fast, slow);
    LLVMPositionBuilderAtEnd(b, join);
    LLVMValueRef quotient = LLVMBuildPhi(b, LLVMTypeOf(x), "quotient");
    LLVMAddIncoming(quotient, results, ends, 2);
    return quotient;
}

static LLVMValueRef wide_quotient(const struct division *d, LLVMValueRef x, LLVMValueRef y) {
    struct simd *s = d->s;
    LLVMBuilderRef b = s->unit->builder;
    LLVMTypeRef type = LLVMTypeOf(x), i64 = type_i64(s->unit), wide = wide_type(i64, x);
    LLVMOpcode extend = d->is_signed ? LLVMSExt : LLVMZExt;
    LLVMValueRef divisor = d->divisor;
    if (type != wide) { /* 33 … 63 bits */
        x = LLVMBuildCast(b, extend, x, wide, "");
        y = LLVMBuildCast(b, extend, y, wide, "");
        if (divisor) divisor = LLVMBuildCast(b, extend, divisor, i64, "");
    }
    LLVMValueRef sign = NULL;
    if (d->is_signed) {
        sign = sign_of(s, LLVMBuildXor(b, x, y, ""));
        x = magnitude_of(s, x);
        y = magnitude_of(s, y);
        if (divisor) divisor = magnitude_of(s, divisor);
    }
    LLVMValueRef quotient = wide_unsigned_quotient(d, x, y, divisor);
    if (sign) quotient = with_sign(s, quotient, sign);
    return type == wide ? quotient : LLVMBuildTrunc(b, quotient, type, "");
}

/* ---- */

/* guard.c replaces a divisor y by select(unsafe, 1, y), which for signed division varies even if y does not.
 * Returns y. The select is in the division's block, so its operands may be used here. */
static LLVMValueRef guarded_divisor(struct simd *s, LLVMValueRef division) {
    LLVMValueRef y = LLVMGetOperand(division, 1), one = LLVMConstInt(LLVMTypeOf(y), 1, false);
    LLVMBasicBlockRef block = LLVMGetInstructionParent(division);
    while (LLVMIsAInstruction(y) && LLVMGetInstructionParent(y) == block && shape_of(s, y) != SHAPE_UNIFORM) {
        if (LLVMIsAFreezeInst(y))
            y = LLVMGetOperand(y, 0);
        else if (LLVMIsASelectInst(y) && LLVMGetOperand(y, 1) == one)
            y = LLVMGetOperand(y, 2);
        else if (LLVMIsASelectInst(y) && LLVMGetOperand(y, 2) == one)
            y = LLVMGetOperand(y, 1);
        else
            return NULL;
    }
    return shape_of(s, y) == SHAPE_UNIFORM ? y : NULL;
}

static LLVMValueRef quotient_of(struct division *d, LLVMValueRef x, LLVMValueRef y) {
    return d->width <= 32 ? narrow_quotient(d, x, y) : wide_quotient(d, x, y);
}

/* Where the guard replaced y by 1, the quotient by y is wrong, or divides by 0. */
static LLVMValueRef guarded_quotient(struct division *d, LLVMValueRef x, LLVMValueRef y) {
    struct simd *s = d->s;
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef one = constant_like(s, y, 1);
    LLVMValueRef unguarded = scalar_of(s, d->divisor), zero = LLVMConstNull(LLVMTypeOf(unguarded));
    d->divisor = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntEQ, unguarded, zero, ""),
                                 LLVMConstInt(LLVMTypeOf(unguarded), 1, false), unguarded, "");
    LLVMValueRef replaced = LLVMBuildICmp(b, LLVMIntEQ, y, one, "");
    return LLVMBuildSelect(b, replaced, x, quotient_of(d, x, chunk_splat(s, d->divisor)), "");
}

LLVMValueRef chunk_divide(struct simd *s, LLVMValueRef chunk, LLVMValueRef divisor, bool remainder) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMValueRef quotient = multiplied_quotient(s, chunk, make_multiplier(s, divisor, false));
    if (!remainder) return quotient;
    return LLVMBuildSub(b, chunk, LLVMBuildMul(b, quotient, chunk_splat(s, divisor), ""), "");
}

bool emit_division(struct simd *s, LLVMValueRef division, int chunk) {
    LLVMBuilderRef b = s->unit->builder;
    LLVMOpcode opcode = LLVMGetInstructionOpcode(division);
    struct division d = {.s = s,
                         .original = division,
                         .type = LLVMTypeOf(division),
                         .width = LLVMGetIntTypeWidth(LLVMTypeOf(division)),
                         .is_signed = opcode == LLVMSDiv || opcode == LLVMSRem,
                         .remainder = opcode == LLVMURem || opcode == LLVMSRem,
                         .chunk = chunk};
    if (d.width > 64) return false;
    LLVMValueRef divisor = LLVMGetOperand(division, 1);
    LLVMValueRef x = chunk_of(s, LLVMGetOperand(division, 0), chunk), y = chunk_of(s, divisor, chunk);
    LLVMValueRef result;
    uint64_t constant;
    if (is_constant_integer(divisor, &constant) && constant != 0) {
        result = LLVMBuildBinOp(b, opcode, x, y, "");
        copy_flags(division, result);
    } else {
        LLVMValueRef uniform = guarded_divisor(s, division);
        bool guarded = uniform && uniform != divisor;
        d.divisor = !uniform ? NULL : guarded ? uniform : scalar_of(s, uniform);
        result = guarded ? guarded_quotient(&d, x, y) : quotient_of(&d, x, y);
        if (d.remainder) result = LLVMBuildSub(b, x, LLVMBuildMul(b, result, y, ""), "");
    }
    chunk_set(s, division, chunk, result);
    return true;
}
