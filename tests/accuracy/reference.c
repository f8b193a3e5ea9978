/* References in double: loops over glibc's functions, which the compiler turns into calls of glibc's vector
 * forms (libmvec, at most 4 ULP of double) if there are any: at most 2^-27 ULP of float. */
#include "reference.h"

#include "../prelude/support.h"

#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define VECTOR_FORM __attribute__((simd("notinbranch"), const))
#define EVERY_WIDTH \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3")))
extern VECTOR_FORM double acos(double), acosh(double), asin(double), asinh(double), atan(double);
extern VECTOR_FORM double atanh(double), cos(double), cosh(double), exp(double), exp2(double), exp10(double);
extern VECTOR_FORM double log(double), log2(double), log10(double), sin(double), sinh(double), tan(double);
extern VECTOR_FORM double tanh(double), atan2(double, double), pow(double, double);
#else
#define EVERY_WIDTH
double exp10(double);
#endif

/* One element's result from x, y and z. */
#define REFERENCE(name, arity, expression)                                                          \
    EVERY_WIDTH void ref_##name(smelt_dtype dtype, const double *const *arguments, double *results, \
                                int64_t count) {                                                    \
        const double *restrict xs = arguments[0], *restrict ys = arguments[arity > 1 ? 1 : 0];      \
        const double *restrict zs = arguments[arity > 2 ? 2 : 0];                                   \
        double *restrict out = results;                                                             \
        (void)dtype;                                                                                \
        for (int64_t i = 0; i < count; i++) {                                                       \
            double x = xs[i], y = ys[i], z = zs[i];                                                 \
            (void)y, (void)z;                                                                       \
            out[i] = (expression);                                                                  \
        }                                                                                           \
    }

double rounded_to(smelt_dtype dtype, double value) {
    uint32_t place = 0;
    store(dtype, &place, 0, value);
    return number(dtype, &place, 0);
}

REFERENCE(acos, 1, acos(x))
REFERENCE(acosh, 1, acosh(x))
REFERENCE(asin, 1, asin(x))
REFERENCE(asinh, 1, asinh(x))
REFERENCE(atan, 1, atan(x))
REFERENCE(atanh, 1, atanh(x))
REFERENCE(cos, 1, cos(x))
REFERENCE(cosh, 1, cosh(x))
REFERENCE(exp, 1, exp(x))
REFERENCE(exp2, 1, exp2(x))
REFERENCE(exp10, 1, exp10(x))
REFERENCE(log, 1, log(x))
REFERENCE(log2, 1, log2(x))
REFERENCE(log10, 1, log10(x))
REFERENCE(rsqrt, 1, 1 / sqrt(x))
REFERENCE(sin, 1, sin(x))
REFERENCE(sinh, 1, sinh(x))
REFERENCE(sqrt, 1, sqrt(x))
REFERENCE(tan, 1, tan(x))
REFERENCE(tanh, 1, tanh(x))
REFERENCE(fabs, 1, fabs(x))
REFERENCE(ceil, 1, ceil(x))
REFERENCE(floor, 1, floor(x))
REFERENCE(rint, 1, rint(x))
REFERENCE(round, 1, round(x))
REFERENCE(trunc, 1, trunc(x))
REFERENCE(reciprocal, 1, 1 / x)

/* sin(pi x) or cos(pi x): the reduction is exact. */
static inline double sine_of_turns(double x, bool cosine) {
    double n = rint(2 * x), t = x - n / 2, quarter = n / 4, q = n - 4 * floor(quarter) + (cosine ? 1 : 0);
    double s = sin(M_PI * t), c = cos(M_PI * t);
    bool even = q == 0 || q == 2 || q == 4;
    double y = even ? s : c;
    y = q == 2 || q == 3 ? -y : y;
    y = even && t == 0 ? copysign(0, cosine ? 1 : x) : y;
    return fabs(x) < INFINITY ? y : NAN;
}
REFERENCE(sinpi, 1, sine_of_turns(x, false))
REFERENCE(cospi, 1, sine_of_turns(x, true))
REFERENCE(tanpi, 1, sine_of_turns(x, false) / sine_of_turns(x, true))

REFERENCE(saturate, 1, isnan(x) ? 0 : x < 0 ? 0 : x > 1 ? 1 : x)
REFERENCE(sign, 1, isnan(x) ? 0 : x == 0 ? x : copysign(1, x))
REFERENCE(modf_fraction, 1, copysign(isinf(x) ? 0 : x - trunc(x), x))

static double fract_of(smelt_dtype dtype, double x) {
    double most = dtype == SMELT_FLOAT32 ? 1 - 0x1p-24 : dtype == SMELT_FLOAT16 ? 1 - 0x1p-11 : 1 - 0x1p-8;
    double f = x - floor(x);
    return f > most ? most : f;
}
REFERENCE(fract, 1, fract_of(dtype, x))

static double frexp_of(double x, bool fraction) {
    int e = 0;
    double f = frexp(x, &e);
    return fraction ? f : isfinite(x) ? e : 0;
}
REFERENCE(frexp_fraction, 1, frexp_of(x, true))
REFERENCE(frexp_exponent, 1, frexp_of(x, false))
REFERENCE(ilogb, 1, x == 0 ? -2147483648.0 : isfinite(x) ? ilogb(x) : 2147483647.0)

REFERENCE(atan2, 2, atan2(x, y))
REFERENCE(pow, 2, pow(x, y))
/* x >= 0, and NaN where C's pow would return 1 instead. */
REFERENCE(powr, 2, x < 0 ? NAN : pow(x, y))
REFERENCE(add, 2, x + y)
REFERENCE(subtract, 2, x - y)
REFERENCE(multiply, 2, x *y)
REFERENCE(divide, 2, x / y)
REFERENCE(copysign, 2, copysign(x, y))
REFERENCE(fdim, 2, fdim(x, y))
REFERENCE(fmod, 2, fmod(x, y))
REFERENCE(step, 2, y < x ? 0 : 1)
REFERENCE(fmax, 2, fmax(x, y))
REFERENCE(fmin, 2, fmin(x, y))
REFERENCE(ldexp, 2, ldexp(x, isnan(y) ? 0 : (int)fmax(-2000, fmin(2000, y))))

static double nextafter_of(smelt_dtype dtype, double x, double y) {
    if (isnan(x) || isnan(y)) return NAN;
    if (x == y) return y;
    if (dtype == SMELT_FLOAT32) return nextafterf((float)x, (float)y);
    /* One step of the type; half a step below a power of two. */
    bool outward = (x < y) == (x > 0) || x == 0;
    double toward = x < y ? 1 : -1;
    if (isinf(x)) return copysign(largest(dtype), x);
    double step = ulp_of(dtype, x);
    if (!outward && ulp_of(dtype, x - copysign(step / 2, x)) < step) step /= 2;
    double next = x + toward * step;
    return fabs(next) > largest(dtype) ? copysign(INFINITY, next) : next == 0 ? copysign(0, x) : next;
}
REFERENCE(nextafter, 2, nextafter_of(dtype, x, y))

/* In long double, since the product of two floats, exact in double, may be far from the third. */
REFERENCE(fma, 3, dtype == SMELT_FLOAT32 ? (double)fmaf((float)x, (float)y, (float)z) : fma(x, y, z))
REFERENCE(clamp, 3, fmin(fmax(x, y), z))
REFERENCE(fmax3, 3, fmax(fmax(x, y), z))
REFERENCE(fmin3, 3, fmin(fmin(x, y), z))
REFERENCE(median3, 3, fmax(fmin(x, y), fmin(fmax(x, y), z)))
/* The formulas in float, as Metal's specification states them. */
REFERENCE(mix, 3, rounded_to(dtype, fmaf((float)y - (float)x, (float)z, (float)x)))
static double smoothstep_of(smelt_dtype dtype, float low, float high, float x) {
    float t = (x - low) / (high - low);
    t = fminf(fmaxf(t, 0), 1);
    return rounded_to(dtype, t * t * fmaf(-2, t, 3));
}
REFERENCE(smoothstep, 3, smoothstep_of(dtype, (float)x, (float)y, (float)z))
