// Which of the two forms of a function metal::name is, and metal::fast:: for what has only one form.
// After all math, common and geometric functions.
#pragma once

#include "metal_common"
#include "metal_geometric"
#include "metal_math"

#define __SMELT_ONE_FORM(X)                                                                                  \
  X(acos) X(acosh) X(asin) X(asinh) X(atan) X(atan2) X(atanh) X(ceil) X(copysign) X(cosh) X(cospi) X(divide) \
  X(fabs) X(abs) X(fdim) X(floor) X(fma) X(fmax) X(fmin) X(max) X(min) X(fmax3) X(fmin3) X(fmedian3)         \
  X(max3) X(min3) X(median3) X(fract) X(frexp) X(ilogb) X(ldexp) X(modf) X(nextafter) X(rint) X(round)       \
  X(sinh) X(sinpi) X(tanh) X(tanpi) X(trunc)                                                \
  X(clamp) X(mix) X(saturate) X(sign) X(smoothstep) X(step)                                                  \
  X(cross) X(distance) X(distance_squared) X(dot) X(faceforward) X(length) X(length_squared) X(normalize)    \
  X(reflect) X(refract)
#define __SMELT_TWO_FORMS(X)                                                                                 \
  X(cos) X(exp) X(exp10) X(exp2) X(fmod) X(log) X(log10) X(log2) X(pow) X(powr) X(rsqrt) X(sin) X(sincos) X(sqrt) X(tan)

#define __SMELT_USING_PRECISE(name) using precise::name;
#define __SMELT_USING_FAST(name) using fast::name;
namespace metal {
namespace fast {
__SMELT_ONE_FORM(__SMELT_USING_PRECISE)
}
__SMELT_ONE_FORM(__SMELT_USING_PRECISE)
#ifdef __FAST_MATH__
__SMELT_TWO_FORMS(__SMELT_USING_FAST)
#else
__SMELT_TWO_FORMS(__SMELT_USING_PRECISE)
#endif
} // namespace metal
#undef __SMELT_USING_PRECISE
#undef __SMELT_USING_FAST
#undef __SMELT_ONE_FORM
#undef __SMELT_TWO_FORMS
