// Names of the compiler's own that Metal's headers rest on. Public headers use some of them, to give their own number
// types Metal's functions: `__metal_exp(x, __METAL_MAYBE_FAST_MATH__)` is metal::exp(x). They compute in float.
#pragma once

#include "smelt_math_forms.h"
#include "metal_simdgroup"

#define __SMELT_INTERNAL_1(name)                                                                             \
  METAL_FUNC float __metal_##name(float x, int mode = __METAL_MAYBE_FAST_MATH__) {                           \
    return mode == __METAL_FAST_MATH__ ? metal::fast::name(x) : metal::precise::name(x);                     \
  }
#define __SMELT_INTERNAL_2(name)                                                                             \
  METAL_FUNC float __metal_##name(float x, float y, int mode = __METAL_MAYBE_FAST_MATH__) {                  \
    return mode == __METAL_FAST_MATH__ ? metal::fast::name(x, y) : metal::precise::name(x, y);               \
  }
#define __SMELT_INTERNAL_3(name)                                                                             \
  METAL_FUNC float __metal_##name(float x, float y, float z, int mode = __METAL_MAYBE_FAST_MATH__) {         \
    return mode == __METAL_FAST_MATH__ ? metal::fast::name(x, y, z) : metal::precise::name(x, y, z);         \
  }
__SMELT_INTERNAL_1(acos)
__SMELT_INTERNAL_1(acosh)
__SMELT_INTERNAL_1(asin)
__SMELT_INTERNAL_1(asinh)
__SMELT_INTERNAL_1(atan)
__SMELT_INTERNAL_2(atan2)
__SMELT_INTERNAL_1(atanh)
__SMELT_INTERNAL_1(ceil)
__SMELT_INTERNAL_2(copysign)
__SMELT_INTERNAL_1(cos)
__SMELT_INTERNAL_1(cosh)
__SMELT_INTERNAL_1(cospi)
__SMELT_INTERNAL_2(divide)
__SMELT_INTERNAL_1(exp)
__SMELT_INTERNAL_1(exp10)
__SMELT_INTERNAL_1(exp2)
__SMELT_INTERNAL_1(fabs)
__SMELT_INTERNAL_2(fdim)
__SMELT_INTERNAL_1(floor)
__SMELT_INTERNAL_3(fma)
__SMELT_INTERNAL_2(fmax)
__SMELT_INTERNAL_3(fmax3)
__SMELT_INTERNAL_3(fmedian3)
__SMELT_INTERNAL_2(fmin)
__SMELT_INTERNAL_3(fmin3)
__SMELT_INTERNAL_2(fmod)
__SMELT_INTERNAL_1(fract)
__SMELT_INTERNAL_1(log)
__SMELT_INTERNAL_1(log10)
__SMELT_INTERNAL_1(log2)
__SMELT_INTERNAL_2(nextafter)
__SMELT_INTERNAL_2(pow)
__SMELT_INTERNAL_2(powr)
__SMELT_INTERNAL_1(rint)
__SMELT_INTERNAL_1(round)
__SMELT_INTERNAL_1(rsqrt)
__SMELT_INTERNAL_1(saturate)
__SMELT_INTERNAL_1(sign)
__SMELT_INTERNAL_1(sin)
__SMELT_INTERNAL_1(sinh)
__SMELT_INTERNAL_1(sinpi)
__SMELT_INTERNAL_1(sqrt)
__SMELT_INTERNAL_1(tan)
__SMELT_INTERNAL_1(tanh)
__SMELT_INTERNAL_1(tanpi)
__SMELT_INTERNAL_1(trunc)
#undef __SMELT_INTERNAL_1
#undef __SMELT_INTERNAL_2
#undef __SMELT_INTERNAL_3
METAL_FUNC float __metal_frexp(float x, int *exponent) { return metal::precise::frexp(x, *exponent); }
METAL_FUNC float __metal_modf(float x, float *whole) { return metal::precise::modf(x, *whole); }
METAL_FUNC float __metal_ldexp(float x, int exponent, int = 0) { return metal::precise::ldexp(x, exponent); }

template <class T> METAL_FUNC T __metal_get_simdgroup_size(T) { return 32; }
template <class T> METAL_FUNC T __metal_get_thread_index_in_simdgroup(T) { return (T)__smelt_lane(); }

#define __SMELT_INTERNAL_SIMD(name)                                                                          \
  template <class T> METAL_FUNC auto __metal_simd_##name(T data) { return metal::simd_##name(data); }
#define __SMELT_INTERNAL_SIMD_LANE(name)                                                                     \
  template <class T> METAL_FUNC T __metal_simd_##name(T data, ushort lane) { return metal::simd_##name(data, lane); }
#define __SMELT_INTERNAL_SIMD_FILL(name)                                                                     \
  template <class T>                                                                                         \
  METAL_FUNC T __metal_simd_##name(T data, metal::type_identity_t<T> filling, ushort delta, ushort modulo) { \
    return metal::simd_##name(data, filling, delta, modulo);                                                 \
  }
__SMELT_INTERNAL_SIMD(sum)
__SMELT_INTERNAL_SIMD(product)
__SMELT_INTERNAL_SIMD(min)
__SMELT_INTERNAL_SIMD(max)
__SMELT_INTERNAL_SIMD(and)
__SMELT_INTERNAL_SIMD(or)
// Of floats, their bits: headers write it for every type.
template <class T> METAL_FUNC T __metal_simd_xor(T data) {
  if constexpr (metal::is_integral_v<T>) return metal::simd_xor(data);
  else return __builtin_bit_cast(T, metal::simd_xor(__builtin_bit_cast(metal::__atomic::word_t<T>, data)));
}
__SMELT_INTERNAL_SIMD(prefix_inclusive_sum)
__SMELT_INTERNAL_SIMD(prefix_exclusive_sum)
__SMELT_INTERNAL_SIMD(prefix_inclusive_product)
__SMELT_INTERNAL_SIMD(prefix_exclusive_product)
__SMELT_INTERNAL_SIMD_LANE(broadcast)
__SMELT_INTERNAL_SIMD_LANE(shuffle)
__SMELT_INTERNAL_SIMD_LANE(shuffle_up)
__SMELT_INTERNAL_SIMD_LANE(shuffle_down)
__SMELT_INTERNAL_SIMD_LANE(shuffle_xor)
__SMELT_INTERNAL_SIMD_LANE(shuffle_rotate_up)
__SMELT_INTERNAL_SIMD_LANE(shuffle_rotate_down)
__SMELT_INTERNAL_SIMD_FILL(shuffle_and_fill_up)
__SMELT_INTERNAL_SIMD_FILL(shuffle_and_fill_down)
#undef __SMELT_INTERNAL_SIMD
#undef __SMELT_INTERNAL_SIMD_LANE
#undef __SMELT_INTERNAL_SIMD_FILL
