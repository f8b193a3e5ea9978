// float32 exponentials, logarithms, powers and hyperbolic functions. Rules as in smelt_float_basic.h.
// Polynomials interpolate at Chebyshev nodes, coefficients rounded to float (double for pow); docs/accuracy.md has what
// comes out of them.
#pragma once

#include "smelt_float_basic.h"

#pragma float_control(precise, on, push)
#pragma clang fp contract(off)

namespace __smelt_float {

#define __SMELT_LN2_HIGH 0x1.62e43p-1f
#define __SMELT_LN2_LOW -0x1.05c61p-29f
#define __SMELT_LOG2E 0x1.715476p0f
// Added to a float below 2^22 and subtracted again, it rounds to an integer, which its low bits then hold.
#define __SMELT_ROUNDER 0x1.8p23f

METAL_FUNC float limit(float x, float low, float high) { // NaN stays
  float y = x > high ? high : x;
  return y < low ? low : y;
}

METAL_FUNC float power_of_two(int k) { return from_bits((uint)(k + 127) << 23); }
METAL_FUNC int without_rounder(float z) { return (int)(bits(z) - bits(__SMELT_ROUNDER)); } // k of __SMELT_ROUNDER + k

// 2^k for -252 <= k <= 254 as two factors, of which one is 0 for k = -253 and -254. `z` is the float __SMELT_SCALE_ROUNDER + k,
// whose low bits hold k + 254: half of them are the exponent of the first factor, the rest that of the second one. The bits of
// __SMELT_ROUNDER are shifted out. A product that is subnormal or underflows takes a CPU 100 times as long as others, and
// attention takes the exponential of -INFINITY for each key that a mask hides. So the functions below map arguments far
// below those whose result rounds to 0 to these last two k. (src/compiler/ptx/arithmetic/powers.c looks for these operations.)
#define __SMELT_SCALE_ROUNDER (__SMELT_ROUNDER + 254.0f)
struct factors {
  float first, second;
};
METAL_FUNC factors power_of_two_parts(float z) {
  uint first = (bits(z) << 22) & 0x7f800000u;
  return {from_bits(first), from_bits((bits(z) << 23) - first)};
}

// p * 2^k, rounded once.
METAL_FUNC float scale(float p, float z) {
  factors f = power_of_two_parts(z);
  return p * f.first * f.second;
}
// (1 + e) * 2^k for |e| < 1/2: as 1 + e is rounded, so is its product by a power of two.
METAL_FUNC float scale_one_plus(float e, float z) {
  factors f = power_of_two_parts(z);
  return __builtin_fmaf(e, f.first, f.first) * f.second;
}

// e^r - 1 for |r| <= ln(2) / 2; `low` is a correction to r.
METAL_FUNC float exp_minus_one(float r, float low) {
  float p = 0x1.6d1176p-10f;
  p = __builtin_fmaf(p, r, 0x1.120bdap-7f);
  p = __builtin_fmaf(p, r, 0x1.555518p-5f);
  p = __builtin_fmaf(p, r, 0x1.5554dcp-3f);
  p = __builtin_fmaf(p, r, 0.5f);
  return r + __builtin_fmaf(p, r * r, low);
}
METAL_FUNC float exp_minus_one(float r) {
  float p = 0x1.6d1176p-10f;
  p = __builtin_fmaf(p, r, 0x1.120bdap-7f);
  p = __builtin_fmaf(p, r, 0x1.555518p-5f);
  p = __builtin_fmaf(p, r, 0x1.5554dcp-3f);
  p = __builtin_fmaf(p, r, 0.5f);
  return __builtin_fmaf(p, r * r, r);
}

// x = k * ln(2) + r, z = rounder + k; |x| at most a few hundred.
struct exp_parts {
  float r, z;
};
METAL_FUNC exp_parts exp_reduce(float x, float rounder = __SMELT_ROUNDER) {
  float z = __builtin_fmaf(x, __SMELT_LOG2E, rounder), n = z - rounder;
  float r = __builtin_fmaf(n, -__SMELT_LN2_HIGH, x);
  return {__builtin_fmaf(n, -__SMELT_LN2_LOW, r), z};
}

METAL_FUNC float exp(float x) {
  exp_parts e = exp_reduce(limit(x, -176.0f, 89.0f), __SMELT_SCALE_ROUNDER);
  return scale_one_plus(exp_minus_one(e.r), e.z);
}

// For each half or bfloat x, the same as exp(x) once it is rounded to that type. The coefficients come from a search
// for polynomials with this property (test kernel type_narrow_functions).
METAL_FUNC float exp_for_half(float x) {
  float t = limit(x, -20.0f, 12.0f), z = __builtin_fmaf(t, __SMELT_LOG2E, __SMELT_ROUNDER);
  float r = __builtin_fmaf(z - __SMELT_ROUNDER, -__SMELT_LN2_HIGH, t);
  float p = 0x1.10efcp-7f;
  p = __builtin_fmaf(p, r, 0x1.5694fap-5f);
  p = __builtin_fmaf(p, r, 0x1.555872p-3f);
  p = __builtin_fmaf(p, r, 0x1.00001p-1f);
  p = __builtin_fmaf(p, r, 0x1.fffff8p-1f);
  p = __builtin_fmaf(p, r, 1.0f);
  return p * from_bits((bits(z) << 23) + 0x3f800000u);
}
METAL_FUNC float exp_for_bfloat(float x) {
  float t = limit(x, -176.0f, 89.0f), z = __builtin_fmaf(t, __SMELT_LOG2E, __SMELT_SCALE_ROUNDER);
  float r = __builtin_fmaf(z - __SMELT_SCALE_ROUNDER, -__SMELT_LN2_HIGH, t);
  float p = 0x1.548cbap-5f;
  p = __builtin_fmaf(p, r, 0x1.57f2b4p-3f);
  p = __builtin_fmaf(p, r, 0x1.000764p-1f);
  p = __builtin_fmaf(p, r, 0x1.fffb0cp-1f);
  p = __builtin_fmaf(p, r, 1.0f);
  return scale(p, z);
}

METAL_FUNC float exp2_near_zero(float r) { // |r| <= 1/2
  float p = 0x1.44138ap-13f;
  p = __builtin_fmaf(p, r, 0x1.5f089p-10f);
  p = __builtin_fmaf(p, r, 0x1.3b2a54p-7f);
  p = __builtin_fmaf(p, r, 0x1.c6af6cp-5f);
  p = __builtin_fmaf(p, r, 0x1.ebfbep-3f);
  p = __builtin_fmaf(p, r, __SMELT_LN2_HIGH);
  return __builtin_fmaf(p, r, 1.0f);
}
METAL_FUNC float exp2(float x) {
  float t = limit(x, -254.0f, 129.0f), z = t + __SMELT_SCALE_ROUNDER;
  return scale(exp2_near_zero(t - (z - __SMELT_SCALE_ROUNDER)), z);
}

// 10^x = 2^k * e^(r ln 10) with r = x - k log10(2).
METAL_FUNC float exp10(float x) {
  float t = limit(x, -76.4f, 39.0f);
  float z = __builtin_fmaf(t, 0x1.a934fp1f, __SMELT_SCALE_ROUNDER), n = z - __SMELT_SCALE_ROUNDER;
  float r = __builtin_fmaf(n, -0x1.344136p-2f, t);
  r = __builtin_fmaf(n, 0x1.ec10cp-27f, r);
  float w = r * 0x1.26bb1cp1f, low = __builtin_fmaf(r, -0x1.12aabap-25f, __builtin_fmaf(r, 0x1.26bb1cp1f, -w));
  return scale_one_plus(exp_minus_one(w, low), z);
}

// Fast: results below the smallest normal number are 0.
METAL_FUNC float fast_scale(float p, int k, bool underflow) {
  float y = p * power_of_two(k - 1) * 2.0f;
  return underflow ? 0.0f : y;
}
METAL_FUNC float fast_exp(float x) {
  exp_parts e = exp_reduce(limit(x, -87.0f, 89.0f));
  return fast_scale(1.0f + exp_minus_one(e.r), without_rounder(e.z), x < -87.0f);
}
METAL_FUNC float fast_exp2(float x) {
  float t = limit(x, -126.0f, 129.0f), z = t + __SMELT_ROUNDER;
  return fast_scale(exp2_near_zero(t - (z - __SMELT_ROUNDER)), without_rounder(z), x < -126.0f);
}
METAL_FUNC float fast_exp10(float x) {
  float t = limit(x, -46.0f, 39.0f), y = t * 0x1.a934fp1f;
  float low = __builtin_fmaf(t, 0x1.a934fp1f, -y) + t * 0x1.2f346ep-24f;
  float e = fast_exp2(y), corrected = __builtin_fmaf(e, low * __SMELT_LN2_HIGH, e);
  return e < __SMELT_INFINITY ? corrected : e;
}

// ---- Logarithms: x = 2^e * (1 + f), 2/3 <= 1 + f < 4/3.
struct log_parts {
  float e, f;
};
METAL_FUNC log_parts log_reduce_normal(float x) {
  uint b = bits(x);
  int k = (int)(b - 0x3f2aaaabu) >> 23;
  return {(float)k, from_bits(b - ((uint)k << 23)) - 1.0f};
}
METAL_FUNC log_parts log_reduce(float x) {
  bool small = x < __SMELT_SMALLEST_NORMAL;
  float scaled = x * 0x1p23f;
  log_parts p = log_reduce_normal(small ? scaled : x);
  float e = p.e - 23.0f;
  return {small ? e : p.e, p.f};
}
// (log(1 + f) - f + f^2 / 2) / f^3
METAL_FUNC float log_tail(float f) {
  float p = -0x1.f0b424p-4f;
  p = __builtin_fmaf(p, f, 0x1.12fb24p-3f);
  p = __builtin_fmaf(p, f, -0x1.f9b1c6p-4f);
  p = __builtin_fmaf(p, f, 0x1.2123d6p-3f);
  p = __builtin_fmaf(p, f, -0x1.556792p-3f);
  p = __builtin_fmaf(p, f, 0x1.99ad72p-3f);
  p = __builtin_fmaf(p, f, -0x1.fffffp-3f);
  return __builtin_fmaf(p, f, 0x1.55554cp-2f);
}
METAL_FUNC float log_limits(float x, float y) {
  float z = x == __SMELT_INFINITY ? x : y;
  float below = x == 0.0f ? -__SMELT_INFINITY : __SMELT_QUIET_NAN;
  return x > 0.0f ? z : below;
}

// log(x) + more * ln(2) + low, for what is made from it below: log(1 + y) and the inverse hyperbolic functions.
METAL_FUNC float log_sum(float x, float more, float low) {
  log_parts p = log_reduce(x);
  float e = p.e + more, s = p.f * p.f;
  float y = __builtin_fmaf(s * p.f, log_tail(p.f), __builtin_fmaf(-0.5f, s, low));
  y = __builtin_fmaf(e, __SMELT_LN2_LOW, y);
  return log_limits(x, __builtin_fmaf(e, __SMELT_LN2_HIGH, p.f + y));
}
METAL_FUNC float log(float x) {
  log_parts p = log_reduce(x);
  float s = p.f * p.f;
  float y = __builtin_fmaf(s * p.f, log_tail(p.f), -0.5f * s);
  y = __builtin_fmaf(p.e, __SMELT_LN2_LOW, y);
  return log_limits(x, __builtin_fmaf(p.e, __SMELT_LN2_HIGH, p.f + y));
}

// log(1 + f) = s + low, multiplied by the constant base_high + base_low, plus e * (e_high + e_low); e * e_high is exact.
METAL_FUNC float log_of_base(float x, float base_high, float base_low, float e_high, float e_low) {
  log_parts p = log_reduce(x);
  float f = p.f, square = f * f, square_low = __builtin_fmaf(f, f, -square), h = 0.5f * square, s = f - h;
  float low = __builtin_fmaf(square * f, log_tail(f), ((f - s) - h) - 0.5f * square_low);
  float product = s * base_high, product_low = __builtin_fmaf(s, base_high, -product);
  float tail = __builtin_fmaf(s, base_low, __builtin_fmaf(low, base_high, product_low));
  float t = p.e * e_high, sum = t + product, sum_low = (t - sum) + product;
  return log_limits(x, sum + (sum_low + __builtin_fmaf(p.e, e_low, tail)));
}
METAL_FUNC float log2(float x) { return log_of_base(x, 0x1.715476p0f, 0x1.4ae0cp-26f, 1.0f, 0.0f); }
METAL_FUNC float log10(float x) { return log_of_base(x, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f, 0x1.344p-2f, 0x1.3509f8p-18f); }

// Fast: a shorter polynomial; subnormal numbers count as 0.
METAL_FUNC float fast_log_tail(float f) {
  float p = 0x1.0c8830p-3f;
  p = __builtin_fmaf(p, f, -0x1.2cfdp-3f);
  p = __builtin_fmaf(p, f, 0x1.2235f8p-3f);
  p = __builtin_fmaf(p, f, -0x1.52be32p-3f);
  p = __builtin_fmaf(p, f, 0x1.99a218p-3f);
  p = __builtin_fmaf(p, f, -0x1.0004aap-2f);
  return __builtin_fmaf(p, f, 0x1.555556p-2f);
}
METAL_FUNC float fast_log_limits(float x, float y) {
  return log_limits((x < __SMELT_SMALLEST_NORMAL) & (x > 0.0f) ? 0.0f : x, y);
}
METAL_FUNC float fast_log_of_base(float x, float base, float of_two) {
  log_parts p = log_reduce_normal(x);
  float s = p.f * p.f, y = p.f + __builtin_fmaf(s * p.f, fast_log_tail(p.f), -0.5f * s);
  return fast_log_limits(x, __builtin_fmaf(p.e, of_two, y * base));
}
METAL_FUNC float fast_log(float x) {
  log_parts p = log_reduce_normal(x);
  float s = p.f * p.f, y = p.f + __builtin_fmaf(s * p.f, fast_log_tail(p.f), -0.5f * s);
  return fast_log_limits(x, __builtin_fmaf(p.e, __SMELT_LN2_HIGH, y));
}
METAL_FUNC float fast_log2(float x) { return fast_log_of_base(x, __SMELT_LOG2E, 1.0f); }
METAL_FUNC float fast_log10(float x) { return fast_log_of_base(x, 0x1.bcb7b2p-2f, 0x1.344136p-2f); }

// ---- Powers. 2^(y log2|x|) in double, so that the product keeps bits enough for one rounding at the end.
METAL_FUNC double log2_double(double x) { // x > 0, normal
  ulong b = bits(x);
  long k = (long)(b - 0x3fe6a09e00000000ul) >> 52; // sqrt(1/2) <= m < sqrt(2)
  double m = double_from_bits(b - ((ulong)k << 52)), s = (m - 1) / (m + 1), z = s * s;
  double p = double_from_bits(0x3fcf196c19e3f68ful);               //  0.24296332611259117
  p = __builtin_fma(p, z, double_from_bits(0x3fd0bb709d0124a9ul)); //  0.26144042332141254
  p = __builtin_fma(p, z, double_from_bits(0x3fd484fb151f36a7ul)); //  0.32061650335968256
  p = __builtin_fma(p, z, double_from_bits(0x3fda6175665d7fbeul)); //  0.41219840046505485
  p = __builtin_fma(p, z, double_from_bits(0x3fe2776c516b5dd9ul)); //  0.5770780172560378
  p = __builtin_fma(p, z, double_from_bits(0x3feec709dc39c97ful)); //  0.9617966939243131
  p = __builtin_fma(p, z, double_from_bits(0x40071547652b82fful)); //  2.885390081777927
  return __builtin_fma(s, p, (double)(int)k);
}
METAL_FUNC float exp2_double(double x) { // clamped beyond what a float holds; NaN stays
  double t = x > 200 ? 200 : x;
  t = t < -200 ? -200 : t;
  double z = t + (double)0x1.8p52f, r = t - (z - (double)0x1.8p52f);
  double p = double_from_bits(0x3ef00c0e4e15189cul);               // 1.5303700711365693e-05
  p = __builtin_fma(p, r, double_from_bits(0x3f2446c79efd4834ul)); // 0.00015469729214118296
  p = __builtin_fma(p, r, double_from_bits(0x3f55d877598350deul)); // 0.0013333478473685416
  p = __builtin_fma(p, r, double_from_bits(0x3f83b29d8bb0b97eul)); // 0.009618025613318034
  p = __builtin_fma(p, r, double_from_bits(0x3fac6b08da70cce3ul)); // 0.055504109063258665
  p = __builtin_fma(p, r, double_from_bits(0x3fcebfbe0aa03df0ul)); // 0.24022651213498092
  p = __builtin_fma(p, r, double_from_bits(0x3fe62e42fef9cc69ul)); // 0.6931471805568324
  p = __builtin_fma(p, r, (double)1.0f);
  return (float)(p * double_from_bits((ulong)((uint)bits(z) + 1023u) << 52));
}

// C's cases, from `r`, the power of |x|.
METAL_FUNC float power_cases(float x, float y, float r) {
  float a = fabs(x), h = y * 0.5f;
  bool whole = __builtin_floorf(y) == y;
  bool odd = whole & (fabs(y) < 0x1p24f) & (__builtin_floorf(h) != h);
  bool edge = (a == 0.0f) | (a == __SMELT_INFINITY);
  float at_edge = (a == 0.0f) == (y < 0.0f) ? __SMELT_INFINITY : 0.0f;
  r = edge ? at_edge : r;
  float negative = -r;
  r = (bits(x) >> 31 != 0u) & odd ? negative : r;
  r = (x < 0.0f) & (a < __SMELT_INFINITY) & !whole ? __SMELT_QUIET_NAN : r;
  r = is_nan(x) | is_nan(y) ? __SMELT_QUIET_NAN : r;
  return (y == 0.0f) | (x == 1.0f) ? 1.0f : r;
}
METAL_FUNC float pow(float x, float y) {
  double l = log2_double((double)fabs(x)), t = (double)y * l;
  return power_cases(x, y, exp2_double(l == 0 ? l : t)); // 0 times an infinite y is 0
}
METAL_FUNC float powr(float x, float y) {
  float r = pow(x, y);
  return x < 0.0f ? __SMELT_QUIET_NAN : r;
}
METAL_FUNC float fast_pow(float x, float y) {
  float l = fast_log2(fabs(x)), t = y * l;
  return power_cases(x, y, fast_exp2(l == 0.0f ? l : t));
}
METAL_FUNC float fast_powr(float x, float y) {
  float l = fast_log2(x), t = y * l, r = fast_exp2(l == 0.0f ? l : t);
  return (y == 0.0f) & !(x < 0.0f) ? 1.0f : r;
}

// ---- Hyperbolic functions.
// |x| = n ln(2) / 2 + r, with one product by a rounded logarithm: n's error shrinks in the quotient. With d = r / tanh(r),
// 1 + r^2 / 3 - r^4 / 45 + ..., and u = (2^n - 1) / 2, tanh|x| = (u (d + r) + r) / (u (d + r) + d). It keeps its bits for small
// x, is at most 1, since r < d, and is 1 from 10 on.
struct tanh_parts {
  float r, square, u;
};
struct quotient {
  float numerator, denominator;
};
METAL_FUNC tanh_parts tanh_reduce(float x) {
  float a = fabs(x) > 10.0f ? 10.0f : fabs(x);
  float z = __builtin_fmaf(a, 2.0f * __SMELT_LOG2E, __SMELT_ROUNDER), n = z - __SMELT_ROUNDER;
  float r = __builtin_fmaf(n, -0x1.62e43p-2f, a);
  return {r, r * r, __builtin_fmaf(power_of_two(without_rounder(z)), 0.5f, -0.5f)};
}
METAL_FUNC quotient tanh_quotient(tanh_parts t, float d) {
  float sum = d + t.r;
  return {__builtin_fmaf(t.u, sum, t.r), __builtin_fmaf(t.u, sum, d)};
}
METAL_FUNC float with_sign(float positive, float x) { return from_bits(bits(positive) | (bits(x) & 0x80000000u)); }

METAL_FUNC float tanh(float x) {
  tanh_parts t = tanh_reduce(x);
  float d = __builtin_fmaf(-0x1.6aa4d2p-6f, t.square, 0x1.55553p-2f);
  quotient q = tanh_quotient(t, __builtin_fmaf(d, t.square, 1.0f));
  return with_sign(rough_divide(q.numerator, q.denominator), x); // rounded on GPUs, too: see docs/accuracy.md
}
// For half and bfloat, as exp_for_half.
METAL_FUNC float tanh_for_half(float x) {
  tanh_parts t = tanh_reduce(x);
  float d = __builtin_fmaf(-0x1.6ac352p-6f, t.square, 0x1.5554dap-2f);
  quotient q = tanh_quotient(t, __builtin_fmaf(d, t.square, 1.0f));
  return with_sign(rough_divide(q.numerator, q.denominator), x);
}
METAL_FUNC float tanh_for_bfloat(float x) {
  tanh_parts t = tanh_reduce(x);
  quotient q = tanh_quotient(t, __builtin_fmaf(0x1.5416eap-2f, t.square, 1.0f));
  return with_sign(rougher_divide(q.numerator, q.denominator), x);
}

METAL_FUNC float half_exp(float a) { // e^a / 2, which overflows later than e^a
  exp_parts e = exp_reduce(a > 89.5f ? 89.5f : a);
  float p = 1.0f + exp_minus_one(e.r);
  return (p + p) * power_of_two(without_rounder(e.z) - 2);
}
METAL_FUNC float sinh(float x) {
  float a = fabs(x), z = a * a, h = half_exp(a), large = h - 0.25f / h;
  float p = 0x1.78a70ep-19f;
  p = __builtin_fmaf(p, z, 0x1.a009p-13f);
  p = __builtin_fmaf(p, z, 0x1.11111ep-7f);
  p = __builtin_fmaf(p, z, 0x1.555556p-3f);
  float small = __builtin_fmaf(a * z, p, a);
  return copysign(a < 1.0f ? small : large, x);
}
METAL_FUNC float cosh(float x) {
  float h = half_exp(fabs(x));
  return h + 0.25f / h;
}

// log(1 + y) where 1 + y rounds: the rest is (y - (u - 1)) / u. Beyond 2^24 there is none.
METAL_FUNC float log_one_plus(float y) {
  float u = 1.0f + y, below = y - (u - 1.0f), above = 1.0f - (u - y), rest = y > 1.0f ? above : below;
  float low = rest / u;
  return log_sum(u, 0.0f, y > 0x1p24f ? 0.0f : low);
}
METAL_FUNC float asinh(float x) {
  float a = fabs(x), z = a * a, y = a + z / (1.0f + __builtin_elementwise_sqrt(1.0f + z));
  float u = 1.0f + y, below = y - (u - 1.0f), above = 1.0f - (u - y), low = (y > 1.0f ? above : below) / u;
  bool large = a > 0x1p13f; // log(2a)
  return copysign(log_sum(large ? a : u, large ? 1.0f : 0.0f, large ? 0.0f : low), x);
}
METAL_FUNC float acosh(float x) {
  float t = x - 1.0f, y = t + __builtin_elementwise_sqrt(__builtin_fmaf(t, t, 2.0f * t));
  float u = 1.0f + y, below = y - (u - 1.0f), above = 1.0f - (u - y), low = (y > 1.0f ? above : below) / u;
  bool large = x > 0x1p13f;
  float r = log_sum(large ? x : u, large ? 1.0f : 0.0f, large ? 0.0f : low);
  return x >= 1.0f ? r : __SMELT_QUIET_NAN;
}
METAL_FUNC float atanh(float x) {
  float a = fabs(x);
  return copysign(0.5f * log_one_plus(2.0f * a / (1.0f - a)), x);
}

} // namespace __smelt_float

#pragma float_control(pop)
