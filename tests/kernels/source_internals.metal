// The names below Metal's library that public headers use, to give number types of their own its functions; assert.
// run: source_internals -b 0=arange:float32:32 -b 1:out:float32:32 -b 2:out:uint32:32 --grid 32
// let f = lambda x: sum([(x + 1) ** 0.5, math.exp2(x / 32), math.pow(x + 1, 0.5), max(x, 3), min(x, 5), abs(x - 7), x % 4, 32, math.frexp(x)[0] * 2, math.frexp(x)[1]])
// expect buffer 1: f(i) for i in 32: f(i) + 496 + max(i - 1, 0) + (i + 1) % 32 + (i ^ 5)
// expect buffer 2: f(i) for i in 32: i - 2 if i >= 2 else 500 + i + 30
// tolerance: 1e-6
#include <metal_stdlib>

// A number type as headers make them: the functions of floats under Metal's names.
struct number {
  float value;
};
namespace metal {
METAL_FUNC number sqrt(number x) { return {__metal_sqrt(x.value, __METAL_MAYBE_FAST_MATH__)}; }
METAL_FUNC number exp2(number x) { return {__metal_exp2(x.value, __METAL_PRECISE_MATH__)}; }
METAL_FUNC number pow(number x, number y) { return {__metal_pow(x.value, y.value, __METAL_MAYBE_FAST_MATH__)}; }
METAL_FUNC number fmax3(number x, number y, number z) {
  return {__metal_fmax3(x.value, y.value, z.value, __METAL_MAYBE_FAST_MATH__)};
}
METAL_FUNC number fmin(number x, number y) { return {__metal_fmin(x.value, y.value, __METAL_MAYBE_FAST_MATH__)}; }
METAL_FUNC number fabs(number x) { return {__metal_fabs(x.value, __METAL_FAST_MATH__)}; }
METAL_FUNC number fmod(number x, number y) { return {__metal_fmod(x.value, y.value, __METAL_MAYBE_FAST_MATH__)}; }
METAL_FUNC number frexp(number x, thread int &exponent) { return {__metal_frexp(x.value, &exponent)}; }
METAL_FUNC number simd_sum(number x) { return {__metal_simd_sum(x.value)}; }
METAL_FUNC number simd_shuffle_up(number x, ushort delta) { return {__metal_simd_shuffle_up(x.value, delta)}; }
METAL_FUNC number simd_shuffle_rotate_down(number x, ushort delta) {
  return {__metal_simd_shuffle_rotate_down(x.value, delta)};
}
METAL_FUNC number simd_shuffle_xor(number x, ushort mask) { return {__metal_simd_shuffle_xor(x.value, mask)}; }
} // namespace metal

using namespace metal;

template <typename T> constexpr constant bool is_word = _disjunction<is_same<T, int>, _conjunction<is_same<T, uint>, _negation<is_same<T, int>>>>::value;
static_assert(is_word<int> && is_word<uint> && !is_word<float>, "traits below the public ones");

kernel void source_internals(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                             device uint *filled [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  number x{in[i]}, one{1}, half_of{0.5f}, part{in[i] / 32};
  assert(i < 32u);
  assert(is_same_v<decltype(x), number>, "commas are no trouble");
  int exponent;
  float sum = sqrt(number{x.value + 1}).value + exp2(part).value + pow(number{x.value + one.value}, half_of).value;
  sum += fmax3(x, number{3}, number{2}).value + fmin(x, number{5}).value + fabs(number{x.value - 7}).value;
  sum += fmod(x, number{4}).value + __metal_get_simdgroup_size(float());
  sum += frexp(x, exponent).value * 2 + exponent;
  sum += simd_sum(x).value + simd_shuffle_up(x, 1).value + simd_shuffle_rotate_down(x, 1).value;
  out[i] = sum + simd_shuffle_xor(x, 5).value;
  filled[i] = __metal_simd_shuffle_and_fill_up(i, 500 + i, 2, __metal_get_simdgroup_size(ushort()));
}
