// Integer functions, relational functions, limits, traits, as_type, array: at compile time for every type, and once each
// in the kernel on vectors.
// run: checks -b 0:out:uint32:40 --bytes 1=int32:1,2 --grid 1
// expect buffer 0: f(i) for i in 40: 1
#include <metal_stdlib>
using namespace metal;

template <typename T> constexpr bool same(T a, T b) { return a == b; }
template <typename T, int N> constexpr bool same(vec<T, N> a, vec<T, N> b) { return all(a == b); }

template <typename T> constexpr bool every_integer() {
  constexpr T most = numeric_limits<T>::max(), least = numeric_limits<T>::min();
  constexpr int bits = 8 * sizeof(T);
  using U = make_unsigned_t<T>;
  static_assert(numeric_limits<T>::digits == bits - is_signed_v<T> && U(most) == U(~U(0)) >> is_signed_v<T>, "");
  static_assert(is_same_v<decltype(absdiff(T(1), T(2))), U>, "");
  return absdiff(most, least) == U(~U(0)) && absdiff(T(3), T(5)) == 2 && addsat(most, T(1)) == most &&
         addsat(T(2), T(3)) == 5 && subsat(least, T(1)) == least && subsat(T(3), T(2)) == 1 && clz(T(0)) == bits &&
         clz(T(1)) == bits - 1 && ctz(T(0)) == bits && ctz(T(8)) == 3 && popcount(T(7)) == 3 && popcount(T(~T(0))) == bits &&
         reverse_bits(T(1)) == T(U(1) << (bits - 1)) && reverse_bits(T(0x12)) == T(U(U(0x48) << (bits - 8))) &&
         hadd(most, most) == most && hadd(T(3), T(4)) == 3 && rhadd(T(3), T(4)) == 4 && rhadd(most, T(most - 1)) == most &&
         mulhi(most, T(4)) == T(is_signed_v<T> ? 1 : 3) && mulhi(T(3), T(4)) == 0 && madhi(most, T(4), T(5)) == mulhi(most, T(4)) + 5 &&
         madsat(most, T(2), T(1)) == most && madsat(T(3), T(4), T(5)) == 17 && madsat(most, most, most) == most &&
         rotate(T(1), T(bits - 1)) == T(U(1) << (bits - 1)) && rotate(T(0x41), T(bits)) == 0x41 &&
         rotate(T(U(1) << (bits - 1)), T(1)) == 1 && extract_bits(T(0x5c), 2, 3) == T(is_signed_v<T> ? -1 : 7) &&
         extract_bits(T(0x2c), 3, 3) == T(is_signed_v<T> ? -3 : 5) && extract_bits(T(9), 0, 0) == 0 &&
         extract_bits(T(-1), 0, bits) == T(-1) && insert_bits(T(0x41), T(0xff), 2, 3) == 0x5d &&
         insert_bits(T(1), T(-1), 0, bits) == T(-1) && insert_bits(T(1), T(7), 4, 0) == 1 && min(T(2), T(3)) == 2 &&
         max(T(2), T(3)) == 3 && clamp(T(9), T(2), T(3)) == 3 && select(T(1), T(2), true) == 2;
}
static_assert(every_integer<char>() && every_integer<uchar>() && every_integer<short>() && every_integer<ushort>(), "");
static_assert(every_integer<int>() && every_integer<uint>() && every_integer<long>() && every_integer<ulong>(), "");
static_assert(madsat(INT_MIN, 2, 5) == INT_MIN && addsat(INT_MIN, -1) == INT_MIN && subsat(INT_MAX, -1) == INT_MAX, "");
static_assert(addsat(5u, UINT_MAX) == UINT_MAX && subsat(5u, 6u) == 0u && mulhi(-1, 1) == -1 && hadd(-3, -4) == -4, "");
static_assert(mulhi(LONG_MIN, 2l) == -1 && mulhi(ULONG_MAX, ULONG_MAX) == ULONG_MAX - 1 && rhadd(-3, -4) == -3, "");
static_assert(mul24(1000, -3000) == -3000000 && mul24(3u, 4u) == 12u && mad24(2, 3, -4) == 2 && mad24(2u, 3u, 4u) == 10u, "");

template <typename T> constexpr bool every_real() {
  using L = numeric_limits<T>;
  constexpr T inf = L::infinity(), nan = L::quiet_NaN(), tiny = L::denorm_min();
  return isinf(inf) && isinf(-inf) && !isinf(L::max()) && isnan(nan) && !isnan(inf) && isfinite(L::max()) && !isfinite(nan) &&
         !isfinite(-inf) && isnormal(L::min()) && isnormal(-L::max()) && !isnormal(tiny) && !isnormal(T(0)) && !isnormal(inf) &&
         !isnormal(nan) && signbit(T(-0.0f)) && !signbit(T(1)) && signbit(-inf) && isordered(T(1), inf) && !isordered(nan, T(1)) &&
         isunordered(T(1), nan) && !isunordered(T(1), T(2)) && L::lowest() == -L::max() && T(T(1) + L::epsilon()) > T(1) &&
         T(T(1) + T(L::epsilon() / T(2))) == T(1) && T(L::max() * T(2)) == inf && tiny > T(0) && isnan(L::signaling_NaN()) &&
         select(T(1), T(2), false) == T(1);
}
static_assert(every_real<float>() && every_real<half>() && every_real<bfloat>(), "");
static_assert(numeric_limits<float>::max() == FLT_MAX && numeric_limits<float>::min() == FLT_MIN && numeric_limits<float>::epsilon() == FLT_EPSILON, "");
static_assert(numeric_limits<half>::max() == HALF_MAX && numeric_limits<half>::min() == HALF_MIN && numeric_limits<half>::epsilon() == HALF_EPSILON, "");
static_assert(numeric_limits<float>::digits10 == FLT_DIG && numeric_limits<half>::digits10 == HALF_DIG && numeric_limits<bfloat>::digits == 8, "");
static_assert(numeric_limits<float>::max_exponent10 == FLT_MAX_10_EXP && numeric_limits<float>::min_exponent10 == FLT_MIN_10_EXP, "");
static_assert(numeric_limits<half>::max_exponent10 == HALF_MAX_10_EXP && numeric_limits<half>::min_exponent10 == HALF_MIN_10_EXP, "");
static_assert(numeric_limits<bool>::max() && !numeric_limits<bool>::min() && numeric_limits<const int>::max() == INT_MAX, "");

static_assert(is_vector_v<float4> && is_vector_v<packed_half3> && !is_vector_v<float> && vec_elements_v<uint3> == 3 && vec_elements_v<float> == 0, "");
static_assert(is_same_v<make_scalar_t<half4>, half> && is_same_v<make_scalar_t<int>, int>, "");
static_assert(as_type<uint>(1.0f) == 0x3f800000 && as_type<ushort>(1.0h) == 0x3c00 && as_type<float>(0xbf800000u) == -1.0f, "");
static_assert(as_type<uint>(half2(1, -2)) == 0xc0003c00 && as_type<half2>(0xc0003c00u).y == -2.0h && as_type<uchar4>(0x04030201u).z == 3, "");
static_assert(as_type<ulong>(uint2(1, 2)) == 0x200000001ul && as_type<bfloat>(ushort(0x4040)) == bfloat(3) && as_type<int4>(float4(1)).w == 0x3f800000, "");
constexpr constant metal::array<int, 3> triple = {1, 2, 3};
static_assert(triple[1] == 2 && triple.size() == 3 && triple.back() == 3 && triple.front() == 1 && !triple.empty(), "");

kernel void checks(device uint *o [[buffer(0)]], constant int *index [[buffer(1)]]) {
  int one = index[0];
  int4 a = int4(one, 2, -3, 40), b = int4(one, 5, 6, -7);
  for (int i = 0; i < 40; i++) o[i] = 1;
  *o++ = all(absdiff(a, b) == uint4(0, 3, 9, 47));
  *o++ = all(addsat(a, int4(INT_MAX)) == int4(INT_MAX, INT_MAX, INT_MAX - 3, INT_MAX));
  *o++ = all(subsat(a, int4(INT_MIN)) == int4(INT_MAX, INT_MAX, INT_MAX - 2, INT_MAX));
  *o++ = all(clz(a) == int4(31, 30, 0, 26)) && all(ctz(a) == int4(0, 1, 0, 3)) && all(popcount(a) == int4(1, 1, 31, 2));
  *o++ = all(reverse_bits(uchar2(one, 0x12)) == uchar2(0x80, 0x48));
  *o++ = all(hadd(a, b) == int4(1, 3, 1, 16)) && all(rhadd(a, b) == int4(1, 4, 2, 17));
  *o++ = all(mulhi(a, int4(1 << 30)) == int4(0, 0, -1, 10)) && all(madhi(a, int4(1 << 30), b) == int4(1, 5, 5, 3));
  *o++ = all(madsat(a, int4(1 << 30), b) == int4((1 << 30) + 1, INT_MAX, INT_MIN, INT_MAX));
  *o++ = all(rotate(ushort3(one, 2, 0x8001), ushort3(1, 15, 1)) == ushort3(2, 1, 3));
  *o++ = all(mul24(a, b) == a * b) && all(mad24(a, b, a) == a * b + a);
  *o++ = all(extract_bits(a, one, 3) == int4(0, 1, -2, -4)) && all(insert_bits(a, b, 4, one) == int4(17, 18, -19, 56));
  *o++ = all(abs(a) == int4(1, 2, 3, 40)) && all(max(a, b) == int4(1, 5, 6, 40)) && all(clamp(a, int4(0), int4(9)) == int4(1, 2, 0, 9));
  float zero = one - 1, inf = one / zero, nan = zero / zero;
  float4 v = float4(inf, nan, -zero, 1e-40f);
  *o++ = all(isinf(v) == bool4(1, 0, 0, 0)) && all(isnan(v) == bool4(0, 1, 0, 0)) && all(isfinite(v) == bool4(0, 0, 1, 1));
  *o++ = all(isnormal(float2(one, 1e-40f)) == bool2(1, 0)) && all(isnormal(half2(one, 1e-6f)) == bool2(1, 0));
  *o++ = all(signbit(v) == bool4(0, signbit(nan), 1, 0)) && all(signbit(bfloat2(-one, 1)) == bool2(1, 0));
  *o++ = all(isordered(v, v) == bool4(1, 0, 1, 1)) && all(isunordered(v, float4(nan)));
  *o++ = all(isnan(half3(nan, 1, inf)) == bool3(1, 0, 0)) && all(isinf(bfloat3(nan, 1, inf)) == bool3(0, 0, 1));
  *o++ = any(bool3(0, one, 0)) && !any(bool2(0)) && !all(bool4(1, 1, 1, !one)) && all(bool2(one)) && all(true) && any(one == 1);
  *o++ = all(not(bool2(one, 0)) == bool2(0, 1)) && all(select(a, b, bool4(1, 0, one, 0)) == int4(1, 2, 6, 40));
  metal::array<float2, 2> pair;
  pair.fill(float2(3));
  pair[one].y = 4;
  float total = 0;
  for (auto p : pair) total += p.x + p.y;
  *o++ = total == 13 && pair.data()[1].y == 4;
}
