// float32 functions that are exact or one instruction: rounding, parts of a number, minimum and maximum.
// Like all of __smelt_float, plain scalar code without library calls and, but for rare paths, without branches: every
// engine compiles this same text, so that all agree bit for bit. Each operation stands as written: no contraction, no
// reassociation, no matter what the kernel's math mode is.
#pragma once

#include "metal_type_traits"

#pragma float_control(precise, on, push)
#pragma clang fp contract(off)

namespace __smelt_float {

#define __SMELT_INFINITY __builtin_inff()
#define __SMELT_QUIET_NAN __builtin_nanf("")
#define __SMELT_SMALLEST_NORMAL 0x1p-126f

METAL_FUNC uint bits(float x) { return __builtin_bit_cast(uint, x); }
METAL_FUNC float from_bits(uint b) { return __builtin_bit_cast(float, b); }
METAL_FUNC ulong bits(double x) { return __builtin_bit_cast(ulong, x); }
// Double constants are written as bits: the dialect reads every literal as float.
METAL_FUNC double double_from_bits(ulong b) { return __builtin_bit_cast(double, b); }

METAL_FUNC bool is_nan(float x) { return x != x; }
METAL_FUNC float fabs(float x) { return __builtin_fabsf(x); }
METAL_FUNC float copysign(float x, float y) { return __builtin_copysignf(x, y); }
METAL_FUNC float sqrt(float x) { return __builtin_elementwise_sqrt(x); }
// The float nearest to 1 / sqrt(x) or a neighbour of it; right for 0, infinity and NaN.
METAL_FUNC float rough_rsqrt(float x) { return 1.0f / __builtin_elementwise_sqrt(x); }
// With y = rough_rsqrt(x) and e = 1 - x y^2 from the exact product x y = h + low, the result is y (1 - e)^(-1/2):
// y (1 + e / 2 + 3/8 e^2), rounded once, is right for all 2^32 floats, whichever of the three floats y is (with a y that
// is two floats away, it is wrong for x = 0x1.7431c6p1). Nothing underflows. If x is 0, infinite or NaN, e is NaN, and y is
// right.
METAL_FUNC float rsqrt(float x) {
  float y = rough_rsqrt(x), h = x * y;
  float low = __builtin_fmaf(x, y, -h), e = __builtin_fmaf(-low, y, __builtin_fmaf(-h, y, 1.0f));
  float better = __builtin_fmaf(y * e, __builtin_fmaf(e, 0.375f, 0.5f), y);
  return is_nan(e) ? y : better;
}
METAL_FUNC float fast_rsqrt(float x) { return rsqrt(x); }
METAL_FUNC float fast_sqrt(float x) { return sqrt(x); }
METAL_FUNC float divide(float x, float y) { return x / y; }
// x / y for 2^-64 <= y <= 2^64 and x that is 0, or of that range, or tiny while y is 1: GPUs then need no test of the
// operands. On GPUs rough_divide is off by at most 1 ULP, and rougher_divide by at most 4.5 ULP.
METAL_FUNC float rough_divide(float x, float y) { return x / y; }
METAL_FUNC float rougher_divide(float x, float y) { return x / y; }
METAL_FUNC float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
METAL_FUNC float ceil(float x) { return __builtin_ceilf(x); }
METAL_FUNC float floor(float x) { return __builtin_floorf(x); }
METAL_FUNC float trunc(float x) { return __builtin_truncf(x); }
METAL_FUNC float rint(float x) { return __builtin_rintf(x); }

// Halfway cases away from zero. |x| - trunc|x| is exact.
METAL_FUNC float round(float x) {
  float a = fabs(x), t = __builtin_truncf(a), up = t + 1.0f;
  return copysign(a - t >= 0.5f ? up : t, x);
}

// The other argument where one is NaN.
METAL_FUNC float fmax(float x, float y) { return (x < y) | is_nan(x) ? y : x; }
METAL_FUNC float fmin(float x, float y) { return (y < x) | is_nan(x) ? y : x; }
METAL_FUNC float fmax3(float x, float y, float z) { return fmax(fmax(x, y), z); }
METAL_FUNC float fmin3(float x, float y, float z) { return fmin(fmin(x, y), z); }
METAL_FUNC float fmedian3(float x, float y, float z) { return fmax(fmin(x, y), fmin(fmax(x, y), z)); }
METAL_FUNC float fdim(float x, float y) {
  float d = x - y;
  return x <= y ? 0.0f : d;
}

// ---- Common functions.
METAL_FUNC float clamp(float x, float low, float high) { return fmin(fmax(x, low), high); }
METAL_FUNC float saturate(float x) { return clamp(x, 0.0f, 1.0f); }
METAL_FUNC float mix(float x, float y, float a) { return __builtin_fmaf(y - x, a, x); }
METAL_FUNC float sign(float x) {
  float one = copysign(1.0f, x), zero = is_nan(x) ? 0.0f : x;
  return fabs(x) > 0.0f ? one : zero;
}
METAL_FUNC float step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }
METAL_FUNC float smoothstep(float edge0, float edge1, float x) {
  float t = clamp((x - edge0) / (edge1 - edge0), 0.0f, 1.0f);
  return t * t * __builtin_fmaf(-2.0f, t, 3.0f);
}

// ---- Parts of a number.
// `below_one` is the largest number of the type under 1, where x - floor(x) may round to.
METAL_FUNC float fract(float x, float below_one) {
  float f = x - __builtin_floorf(x);
  return f > below_one ? below_one : f;
}

METAL_FUNC float modf(float x, float &whole) {
  float t = __builtin_truncf(x), d = x - t;
  whole = t;
  return copysign(fabs(x) == __SMELT_INFINITY ? 0.0f : d, x);
}

// The exponent e of |x| = m * 2^e, 1 <= m < 2, for finite x != 0; `normal` gets x with subnormals scaled up.
METAL_FUNC int exponent(float x, uint &normal) {
  bool small = fabs(x) < __SMELT_SMALLEST_NORMAL;
  float scaled = x * 0x1p24f;
  normal = bits(small ? scaled : x);
  return (int)(normal >> 23 & 255u) - (small ? 151 : 127);
}

METAL_FUNC float frexp(float x, int &exponent_out) {
  uint b;
  int e = exponent(x, b) + 1;
  bool special = (x == 0.0f) | !(fabs(x) < __SMELT_INFINITY);
  float m = from_bits((b & 0x807fffffu) | 0x3f000000u);
  exponent_out = special ? 0 : e;
  return special ? x : m;
}

METAL_FUNC int ilogb(float x) {
  uint b;
  int e = exponent(x, b);
  int special = x == 0.0f ? -2147483647 - 1 : 2147483647; // FP_ILOGB0; infinity and FP_ILOGBNAN
  return (x == 0.0f) | !(fabs(x) < __SMELT_INFINITY) ? special : e;
}

// In double the product is exact, and the conversion rounds once, subnormal results too.
METAL_FUNC float ldexp(float x, int e) {
  int k = e > 400 ? 400 : e;
  k = k < -400 ? -400 : k;
  return (float)((double)x * double_from_bits((ulong)(k + 1023) << 52));
}

// `b` holds a number of a format with a sign and magnitude in `width` bits: float, half, bfloat alike.
METAL_FUNC uint next_bits(uint b, float x, float y, uint sign) {
  uint towards = (x < y) == (x > 0.0f) ? b + 1u : b - 1u;
  uint smallest = (y < 0.0f ? sign : 0u) | 1u;
  return x == 0.0f ? smallest : towards;
}
METAL_FUNC float nextafter(float x, float y) {
  float next = from_bits(next_bits(bits(x), x, y, 0x80000000u));
  float same = x == y ? y : x + y;
  return (x < y) | (x > y) ? next : same;
}

// x - y * trunc(x / y), exactly: multiples of y * 2^k are taken off while quotients fit in 25 bits, so that each step is
// exact in double. One step is enough for |x / y| < 2^24.
METAL_FUNC float fmod(float x, float y) {
  double r = (double)fabs(x), d = (double)fabs(y);
  bool valid = (fabs(x) < __SMELT_INFINITY) & (d > 0);
  if (valid & (fabs(y) < __SMELT_INFINITY)) {
    while (r >= d) {
      long gap = (long)((bits(r) >> 52) - (bits(d) >> 52)) - 24;
      double t = d * double_from_bits((ulong)(1023 + (gap > 0 ? gap : 0)) << 52);
      double rest = __builtin_fma(-__builtin_trunc(r / t), t, r);
      r = rest < 0 ? rest + t : rest;
    }
  }
  float result = copysign((float)r, x);
  return valid ? result : __SMELT_QUIET_NAN;
}
// Where |x / y| < 2^23 the rounded quotient is at most one too large, if it lies next to a whole number; then the rest is
// negative, and y brings it back. All three steps are exact there.
METAL_FUNC float fast_fmod(float x, float y) {
  float a = fabs(x), d = fabs(y), r = __builtin_fmaf(-__builtin_truncf(a / d), d, a), up = r + d;
  return copysign(r < 0.0f ? up : r, x);
}

} // namespace __smelt_float

#pragma float_control(pop)
