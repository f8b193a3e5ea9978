// float32 trigonometric functions and their inverses. Rules as in smelt_float_basic.h.
#pragma once

#include "smelt_float_basic.h"

#pragma float_control(precise, on, push)
#pragma clang fp contract(off)

namespace __smelt_float {

#define __SMELT_PI_HIGH 0x1.921fb6p1f
#define __SMELT_PI_LOW -0x1.777a5cp-24f
#define __SMELT_HALF_PI_HIGH 0x1.921fb6p0f
#define __SMELT_HALF_PI_LOW -0x1.777a5cp-25f
#define __SMELT_HALF_PI_LOWEST -0x1.ee59dap-50f
#define __SMELT_INTEGER_ROUNDER 0x1.8p23f

// x = quadrant * pi/2 + r, |r| not much above pi/4; of `quadrant` the low two bits count.
struct angle {
  float r;
  uint quadrant;
};

// For |x| up to 2^17, by subtraction: the products are exact within fma, and so is the first difference.
METAL_FUNC angle reduce_small(float x) {
  float z = __builtin_fmaf(x, 0x1.45f306p-1f, __SMELT_INTEGER_ROUNDER), n = z - __SMELT_INTEGER_ROUNDER;
  float r = __builtin_fmaf(n, -__SMELT_HALF_PI_HIGH, x);
  r = __builtin_fmaf(n, -__SMELT_HALF_PI_LOW, r);
  return {__builtin_fmaf(n, -__SMELT_HALF_PI_LOWEST, r), bits(z)};
}

// For any finite x, after Payne and Hanek: x = m * 2^e; of 2/pi only the 96 bits are needed whose product with x lies
// below 4 and above what float can show. m * those, modulo 4, is the quadrant and the fraction.
METAL_FUNC angle reduce_large(float x) {
  // A zero word (for negative positions), then the bits of 2/pi.
  const uint two_over_pi[9] = {0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
                               0xfe5163abu, 0xdebbc561u};
  uint b = bits(x);
  ulong m = (b & 0x7fffffu) | 0x800000u;
  uint position = (b >> 23 & 255u) - 120u; // e + 30; at most 134
  uint i = position >> 5, shift = position & 31u;
  ulong w0 = two_over_pi[i], w1 = two_over_pi[i + 1], w2 = two_over_pi[i + 2], w3 = two_over_pi[i + 3];
  ulong a0 = (w0 << 32 | w1) << shift >> 32, a1 = (w1 << 32 | w2) << shift >> 32, a2 = (w2 << 32 | w3) << shift >> 32;
  ulong turn = (m * a0 << 32) + m * a1 + (m * a2 >> 32); // x / 2pi, modulo 1, in units of 2^-64
  ulong quadrant = (turn + (1ul << 61)) >> 62;
  long rest = (long)(turn - (quadrant << 62));
  float r = (float)((double)rest * double_from_bits(0x3c1921fb54442d18ul)); // pi/2 * 2^-62
  float negative = -r;
  return {x < 0.0f ? negative : r, (uint)(x < 0.0f ? -quadrant : quadrant)};
}

METAL_FUNC angle reduce(float x) {
  angle a = reduce_small(x);
  if (fabs(x) > 0x1p17f) { // rare, hence a branch
    a = reduce_large(x);
    a.r = fabs(x) < __SMELT_INFINITY ? a.r : __SMELT_QUIET_NAN;
  }
  return a;
}

// For |r| up to 0.8; `low` is a correction to r.
METAL_FUNC float sin_tail(float z) {
  float p = __builtin_fmaf(-0x1.9a8112p-13f, z, 0x1.110b9ep-7f);
  return __builtin_fmaf(p, z, -0x1.555552p-3f);
}
METAL_FUNC float cos_tail(float z) {
  float p = __builtin_fmaf(0x1.9b9e64p-16f, z, -0x1.6c1264p-10f);
  return __builtin_fmaf(p, z, 0x1.555554p-5f);
}
METAL_FUNC float sin_near_zero(float r) {
  float z = r * r;
  return __builtin_fmaf(r * z, sin_tail(z), r);
}
METAL_FUNC float cos_near_zero(float r) {
  float z = r * r, h = 0.5f * z, w = 1.0f - h;
  return w + __builtin_fmaf(z * z, cos_tail(z), (1.0f - w) - h);
}
METAL_FUNC float sin_near_zero(float r, float low) {
  float z = r * r;
  return r + __builtin_fmaf(r * z, sin_tail(z), low);
}
METAL_FUNC float cos_near_zero(float r, float low) {
  float z = r * r, h = 0.5f * z, w = 1.0f - h;
  return w + __builtin_fmaf(z * z, cos_tail(z), __builtin_fmaf(-r, low, (1.0f - w) - h));
}

// Which of the two, and the sign, for sine; cosine is sine one quadrant on.
METAL_FUNC float by_quadrant(uint quadrant, float sine, float cosine) {
  float y = quadrant & 1u ? cosine : sine;
  return from_bits(bits(y) ^ (quadrant & 2u) << 30);
}

METAL_FUNC float sin(float x) {
  angle a = reduce(x);
  float y = by_quadrant(a.quadrant, sin_near_zero(a.r), cos_near_zero(a.r));
  return x == 0.0f ? x : y; // keeps the sign of zero
}
METAL_FUNC float cos(float x) {
  angle a = reduce(x);
  return by_quadrant(a.quadrant + 1u, sin_near_zero(a.r), cos_near_zero(a.r));
}
METAL_FUNC float sincos(float x, float &cosine) {
  angle a = reduce(x);
  float s = sin_near_zero(a.r), c = cos_near_zero(a.r), y = by_quadrant(a.quadrant, s, c);
  cosine = by_quadrant(a.quadrant + 1u, s, c);
  return x == 0.0f ? x : y;
}
METAL_FUNC float tangent(angle a, float s, float c) {
  float negative = -c;
  return (a.quadrant & 1u ? negative : s) / (a.quadrant & 1u ? s : c);
}
METAL_FUNC float tan(float x) {
  angle a = reduce(x);
  float y = tangent(a, sin_near_zero(a.r), cos_near_zero(a.r));
  return x == 0.0f ? x : y;
}

// Fast: meant for |x| up to a few thousand; less and less accurate beyond.
METAL_FUNC angle fast_reduce(float x) {
  float z = __builtin_fmaf(x, 0x1.45f306p-1f, __SMELT_INTEGER_ROUNDER), n = z - __SMELT_INTEGER_ROUNDER;
  float r = __builtin_fmaf(n, -__SMELT_HALF_PI_HIGH, x);
  return {__builtin_fmaf(n, -__SMELT_HALF_PI_LOW, r), bits(z)};
}
METAL_FUNC float fast_cos_near_zero(float r) {
  float z = r * r;
  return __builtin_fmaf(z, __builtin_fmaf(z, cos_tail(z), -0.5f), 1.0f);
}
METAL_FUNC float fast_sin(float x) {
  angle a = fast_reduce(x);
  return by_quadrant(a.quadrant, sin_near_zero(a.r), fast_cos_near_zero(a.r));
}
METAL_FUNC float fast_cos(float x) {
  angle a = fast_reduce(x);
  return by_quadrant(a.quadrant + 1u, sin_near_zero(a.r), fast_cos_near_zero(a.r));
}
METAL_FUNC float fast_sincos(float x, float &cosine) {
  angle a = fast_reduce(x);
  float s = sin_near_zero(a.r), c = fast_cos_near_zero(a.r);
  cosine = by_quadrant(a.quadrant + 1u, s, c);
  return by_quadrant(a.quadrant, s, c);
}
METAL_FUNC float fast_tan(float x) {
  angle a = fast_reduce(x);
  return tangent(a, sin_near_zero(a.r), fast_cos_near_zero(a.r));
}

// ---- Of pi * x: the reduction is exact for every x; the product with pi carries a low part.
struct turn {
  float t; // x - n / 2
  float r, low; // pi * t
  uint quadrant; // n modulo 4
};
METAL_FUNC turn reduce_pi(float x) {
  float n = __builtin_rintf(2.0f * x), t = __builtin_fmaf(n, -0.5f, x);
  t = fabs(x) < 0x1p24f ? t : (x - x); // a whole number; NaN for infinities
  float q = fabs(x) < 0x1p24f ? __builtin_fmaf(-4.0f, __builtin_floorf(n * 0.25f), n) : 0.0f;
  float r = t * __SMELT_PI_HIGH, low = __builtin_fmaf(t, __SMELT_PI_LOW, __builtin_fmaf(t, __SMELT_PI_HIGH, -r));
  return {t, r, low, bits(q + 0x1p23f)};
}
METAL_FUNC float sinpi(float x) {
  turn a = reduce_pi(x);
  float y = by_quadrant(a.quadrant, sin_near_zero(a.r, a.low), cos_near_zero(a.r, a.low)), zero = copysign(0.0f, x);
  return (a.t == 0.0f) & !(a.quadrant & 1u) ? zero : y;
}
METAL_FUNC float cospi(float x) {
  turn a = reduce_pi(x);
  return by_quadrant(a.quadrant + 1u, sin_near_zero(a.r, a.low), cos_near_zero(a.r, a.low)) + 0.0f; // no -0
}
METAL_FUNC float tanpi(float x) {
  turn a = reduce_pi(x);
  float y = tangent({a.r, a.quadrant}, sin_near_zero(a.r, a.low), cos_near_zero(a.r, a.low)), zero = copysign(0.0f, x);
  float pole = from_bits(0x7f800000u | (a.quadrant & 2u) << 30), exact = a.quadrant & 1u ? pole : zero;
  return a.t == 0.0f ? exact : y;
}

// ---- Inverses.
// (asin(t) - t) / t^3 with z = t^2 <= 1/4
METAL_FUNC float asin_tail(float z) {
  float p = 0x1.13fed4p-5f;
  p = __builtin_fmaf(p, z, 0x1.18f91ep-6f);
  p = __builtin_fmaf(p, z, 0x1.fd8da2p-6f);
  p = __builtin_fmaf(p, z, 0x1.6d5bbap-5f);
  p = __builtin_fmaf(p, z, 0x1.33343p-4f);
  return __builtin_fmaf(p, z, 0x1.555554p-3f);
}
// Above 1/2: asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
METAL_FUNC float asin(float x) {
  float a = fabs(x), square = a * a, other = __builtin_fmaf(-0.5f, a, 0.5f), root = __builtin_elementwise_sqrt(other);
  bool large = a > 0.5f;
  float z = large ? other : square, t = large ? root : a, tail = t * z * asin_tail(z);
  float far = __builtin_fmaf(-2.0f, t, __SMELT_HALF_PI_HIGH) - __builtin_fmaf(2.0f, tail, -__SMELT_HALF_PI_LOW);
  float near = t + tail;
  return copysign(large ? far : near, x);
}
METAL_FUNC float acos(float x) {
  float a = fabs(x), square = a * a, other = __builtin_fmaf(-0.5f, a, 0.5f), root = __builtin_elementwise_sqrt(other);
  bool large = a > 0.5f;
  float z = large ? other : square, t = large ? root : x, tail = t * z * asin_tail(z);
  float near = __SMELT_HALF_PI_HIGH - (t + (tail - __SMELT_HALF_PI_LOW));
  float right = 2.0f * (t + tail), left = __builtin_fmaf(-2.0f, t, __SMELT_PI_HIGH) - __builtin_fmaf(2.0f, tail, -__SMELT_PI_LOW);
  float far = x < 0.0f ? left : right;
  return large ? far : near;
}

// (atan(q) - q) / q^3 with z = q^2 <= 1
METAL_FUNC float atan_tail(float z) {
  float p = 0x1.86406cp-10f;
  p = __builtin_fmaf(p, z, -0x1.2ba6b6p-7f);
  p = __builtin_fmaf(p, z, 0x1.aefb2cp-6f);
  p = __builtin_fmaf(p, z, -0x1.9115a4p-5f);
  p = __builtin_fmaf(p, z, 0x1.2006f8p-4f);
  p = __builtin_fmaf(p, z, -0x1.6dd8fep-4f);
  p = __builtin_fmaf(p, z, 0x1.c62cdap-4f);
  p = __builtin_fmaf(p, z, -0x1.248952p-3f);
  p = __builtin_fmaf(p, z, 0x1.999956p-3f);
  return __builtin_fmaf(p, z, -0x1.555556p-2f);
}
METAL_FUNC float atan(float x) {
  float a = fabs(x);
  bool large = a > 1.0f;
  float q = (large ? 1.0f : a) / (large ? a : 1.0f), z = q * q, tail = q * z * atan_tail(z);
  float far = (__SMELT_HALF_PI_HIGH - q) - (tail - __SMELT_HALF_PI_LOW), near = q + tail;
  return copysign(large ? far : near, x);
}
// A constant plus or minus atan of the smaller over the larger.
METAL_FUNC float atan2(float y, float x) {
  float a = fabs(x), b = fabs(y);
  bool steep = b > a, left = bits(x) >> 31 != 0u;
  float q = (steep ? a : b) / (steep ? b : a), equal = a == 0.0f ? 0.0f : 1.0f;
  q = a == b ? equal : q; // 0/0, infinity/infinity
  float z = q * q, tail = q * z * atan_tail(z), negative = -q, negative_tail = -tail;
  q = steep != left ? negative : q;
  tail = steep != left ? negative_tail : tail;
  float flat = left ? __SMELT_PI_HIGH : 0.0f, flat_low = left ? __SMELT_PI_LOW : 0.0f;
  float high = steep ? __SMELT_HALF_PI_HIGH : flat, low = steep ? __SMELT_HALF_PI_LOW : flat_low;
  return copysign((high + q) + (tail + low), y);
}

} // namespace __smelt_float

#pragma float_control(pop)
