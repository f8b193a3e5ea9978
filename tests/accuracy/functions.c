/* The table of functions. Bars of the precise forms are this project's; allowances are those of the Metal
 * Shading Language specification's table of single-precision accuracy under fast math, from memory: they have
 * not been compared with its text. */
#include "functions.h"

#include "../prelude/support.h"
#include "reference.h"

#include <math.h>

/* ---- Allowances. */
static double ulps(double count, double expected) {
    return count * fmax(ulp_of(SMELT_FLOAT32, expected), 0x1p-149);
}
static double flushed(double expected) { /* subnormal results may be 0 */
    return fabs(expected) < 0x1p-125 ? 0x1p-125 : 0;
}
static double allow_exp(double x, double y, double expected) {
    (void)y;
    return ulps(3 + floor(fabs(2 * x)), expected) + flushed(expected);
}
static double allow_exp10(double x, double y, double expected) { /* exp2(x * log2(10)) */
    (void)y;
    return ulps(4 + floor(fabs(2 * x * M_LN10 / M_LN2)), expected) + flushed(expected);
}
static double allow_log(double x, double y, double expected) {
    (void)y;
    return x >= 0.5 && x <= 2 ? 0x1p-21 : x < 0x1p-126 ? INFINITY : ulps(3, expected);
}
static double allow_log2(double x, double y, double expected) {
    (void)y;
    return x >= 0.5 && x <= 2 ? 0x1p-22 : x < 0x1p-126 ? INFINITY : ulps(3, expected);
}
static double allow_log10(double x, double y, double expected) { /* log2(x) * log10(2) */
    (void)y;
    return x >= 0.5 && x <= 2 ? 0x1p-22 * M_LN2 / M_LN10 + ulps(1, expected)
           : x < 0x1p-126     ? INFINITY
                              : ulps(5, expected);
}
static double allow_sin(double x, double y, double expected) {
    (void)y, (void)expected;
    return fabs(x) <= M_PI ? 0x1p-13 : INFINITY;
}
static double allow_tan(double x, double y, double expected) { /* sin(x) * (1 / cos(x)) */
    (void)y;
    return fabs(x) <= M_PI ? 0x1p-13 * (1 + expected * expected) : INFINITY;
}
static double allow_pow(double x, double y, double expected) { /* exp2(y * log2(x)) */
    double a = fabs(x), l = log2(a), t = y * l;
    if (!(a >= 0x1p-126) || !isfinite(t)) return INFINITY;
    /* The exponent's error: the logarithm's, times y, and the product's rounding. */
    double exponent = fabs(y) * allow_log2(a, 0, l) + ulps(0.5, t);
    double relative = expected == 0 ? 0 : expm1(exponent * M_LN2);
    return fabs(expected) * relative + allow_exp(t, 0, expected);
}
static double allow_fmod(double x, double y,
                         double expected) { /* x - y * trunc(x / y), where that means something */
    return fabs(x / y) < 0x1p23 && fabs(y) >= 0x1p-126 && fabs(y) <= 0x1p126 ? ulps(0, expected) : INFINITY;
}
static double allow_rsqrt(double x, double y, double expected) {
    (void)x, (void)y;
    return ulps(2, expected);
}
static double allow_sqrt(double x, double y, double expected) {
    (void)x, (void)y;
    return ulps(2.5, expected);
}
static double allow_divide(double x, double y, double expected) {
    (void)x;
    return fabs(y) >= 0x1p-126 && fabs(y) <= 0x1p126 ? ulps(2.5, expected) + flushed(expected) : INFINITY;
}
static double allow_reciprocal(double x, double y, double expected) {
    (void)y;
    return fabs(x) >= 0x1p-126 && fabs(x) <= 0x1p126 ? ulps(1, expected) + flushed(expected) : INFINITY;
}

/* ---- The table. */
#define ROW(name_, text_, arguments_, reference_, bar_, ...) \
    {.name = name_,                                          \
     .text = text_,                                          \
     .reference = ref_##reference_,                          \
     .arguments = arguments_,                                \
     .bar = bar_,                                            \
     __VA_ARGS__}
#define ONE(name, reference, bar, ...) ROW(#name, "@" #name "(x)", 1, reference, bar, __VA_ARGS__)
#define TWO(name, reference, bar, ...) ROW(#name, "@" #name "(x, y)", 2, reference, bar, __VA_ARGS__)
#define THREE(name, reference, bar, ...) ROW(#name, "@" #name "(x, y, z)", 3, reference, bar, __VA_ARGS__)
#define SINE .allow = allow_sin, .least = 1000, .allowed = "2^-13 absolute, abs(x) ≤ π"
#define EXPONENTIAL .allow = allow_exp, .least = 3, .allowed = "3 + ⌊2 abs(x)⌋"
#define POWER .allow = allow_pow, .least = 3, .allowed = "of exp2(y log2(x))"

const struct function accuracy_functions[] = {
    ONE(acos, acos, 4),
    ONE(acosh, acosh, 4),
    ONE(asin, asin, 4),
    ONE(asinh, asinh, 4),
    ONE(atan, atan, 4),
    ONE(atanh, atanh, 4),
    ONE(cos, cos, 2, SINE),
    ONE(cosh, cosh, 4),
    ONE(cospi, cospi, 4),
    ONE(exp, exp, 2, EXPONENTIAL),
    ONE(exp2, exp2, 2, EXPONENTIAL),
    ONE(exp10, exp10, 2, .allow = allow_exp10, .least = 4, .allowed = "of exp2(x log2(10))"),
    ONE(log, log, 2, .allow = allow_log, .least = 3, .allowed = "3; 2^-21 absolute in [0.5, 2]"),
    ONE(log2, log2, 2, .allow = allow_log2, .least = 3, .allowed = "3; 2^-22 absolute in [0.5, 2]"),
    ONE(log10, log10, 2, .allow = allow_log10, .least = 4, .allowed = "of log2(x) log10(2)"),
    ONE(rsqrt, rsqrt, 0.51, .allow = allow_rsqrt, .least = 2, .allowed = "2"),
    ONE(sin, sin, 2, SINE),
    ONE(sinh, sinh, 4),
    ONE(sinpi, sinpi, 4),
    ONE(sqrt, sqrt, 0.5, .allow = allow_sqrt, .least = 2, .allowed = "of x rsqrt(x)"),
    ONE(tan, tan, 4, .allow = allow_tan, .least = 100, .allowed = "of sin(x) / cos(x)"),
    ONE(tanh, tanh, 4),
    ONE(tanpi, tanpi, 4, .any_zero = true),
    ROW("sincos, sine", "@sincos(x, second)", 1, sin, 2, SINE),
    ROW("sincos, cosine", "(@sincos(x, second), second)", 1, cos, 2, SINE),
    ONE(abs, fabs, 0),
    ONE(fabs, fabs, 0),
    ONE(ceil, ceil, 0),
    ONE(floor, floor, 0),
    ONE(fract, fract, 0.5),
    ONE(rint, rint, 0),
    ONE(round, round, 0),
    ONE(trunc, trunc, 0),
    ONE(saturate, saturate, 0, .any_zero = true),
    ONE(sign, sign, 0),
    ROW("modf, fraction", "@modf(x, second)", 1, modf_fraction, 0),
    ROW("modf, whole", "(@modf(x, second), second)", 1, trunc, 0),
    ROW("frexp, fraction", "@frexp(x, exponent)", 1, frexp_fraction, 0),
    ROW("frexp, exponent", "(T)(@frexp(x, exponent), exponent)", 1, frexp_exponent, 0,
        .vector = "V((@frexp(x, exponent), exponent))"),
    ROW("ilogb", "(T)@ilogb(x)", 1, ilogb, 0.5, .vector = "V(@ilogb(x))"),
    ROW("1 / x", "(T)1 / x", 1, reciprocal, 0.5, .operation = true, .allow = allow_reciprocal, .least = 1,
        .allowed = "1, 2^-126 ≤ abs(x) ≤ 2^126"),

    TWO(atan2, atan2, 4),
    TWO(pow, pow, 4, POWER),
    TWO(powr, powr, 4, POWER),
    TWO(divide, divide, 0.5),
    TWO(copysign, copysign, 0),
    TWO(fdim, fdim, 0.5),
    TWO(fmod, fmod, 0, .allow = allow_fmod, .least = 0,
        .allowed = "of x - y trunc(x / y): 0 for abs(x / y) < 2^23"),
    TWO(nextafter, nextafter, 0),
    TWO(step, step, 0),
    TWO(fmax, fmax, 0, .any_zero = true),
    TWO(fmin, fmin, 0, .any_zero = true),
    TWO(max, fmax, 0, .any_zero = true),
    TWO(min, fmin, 0, .any_zero = true),
    ROW("ldexp", "@ldexp(x, (int)y)", 2, ldexp, 0.5, .vector = "@ldexp(x, int_of(y))"),
    ROW("x + y", "x + y", 2, add, 0.5, .operation = true),
    ROW("x - y", "x - y", 2, subtract, 0.5, .operation = true),
    ROW("x * y", "x * y", 2, multiply, 0.5, .operation = true),
    ROW("x / y", "x / y", 2, divide, 0.5, .operation = true, .allow = allow_divide, .least = 2.5,
        .allowed = "2.5, 2^-126 ≤ abs(y) ≤ 2^126"),

    THREE(fma, fma, 0.5),
    THREE(clamp, clamp, 0, .any_zero = true),
    THREE(mix, mix, 0),
    THREE(smoothstep, smoothstep, 0),
    THREE(fmax3, fmax3, 0, .any_zero = true),
    THREE(fmin3, fmin3, 0, .any_zero = true),
    THREE(fmedian3, median3, 0, .any_zero = true),
    THREE(max3, fmax3, 0, .any_zero = true),
    THREE(min3, fmin3, 0, .any_zero = true),
    THREE(median3, median3, 0, .any_zero = true),
};
const int accuracy_function_count = (int)(sizeof accuracy_functions / sizeof accuracy_functions[0]);
