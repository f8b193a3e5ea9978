/* The references of the measured functions: glibc's double functions, and formulas over them. */
#ifndef SMELT_TESTS_ACCURACY_REFERENCE_H
#define SMELT_TESTS_ACCURACY_REFERENCE_H

#include "functions.h"

/* Declared for every name of the list below: ref_acos, ref_acosh … */
// clang-format off
#define ACCURACY_REFERENCES(X) \
    X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atanh) X(cos) X(cosh) X(cospi) X(exp) X(exp2) \
    X(exp10) X(log) X(log2) X(log10) X(rsqrt) X(sin) X(sinh) X(sinpi) X(sqrt) X(tan) X(tanh) \
    X(tanpi) X(fabs) X(ceil) X(floor) X(fract) X(rint) X(round) X(trunc) X(saturate) X(sign) \
    X(modf_fraction) X(frexp_fraction) X(frexp_exponent) X(ilogb) X(reciprocal) X(atan2) X(pow) \
    X(powr) X(add) X(subtract) X(multiply) X(divide) X(copysign) X(fdim) X(fmod) X(nextafter) \
    X(step) X(fmax) X(fmin) X(ldexp) X(fma) X(clamp) X(mix) X(smoothstep) X(fmax3) X(fmin3) \
    X(median3)
// clang-format on
#define DECLARE(name) reference_function ref_##name;
ACCURACY_REFERENCES(DECLARE)
#undef DECLARE

/* `value` rounded to the dtype once, as double. */
double rounded_to(smelt_dtype dtype, double value);

#endif
