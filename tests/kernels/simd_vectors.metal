// Simdgroup and quad functions on vectors of every type: component by component what the scalar functions give, which
// simd_shuffles and simd_reductions compare with values worked out on the host. Every third thread is left out by a branch, and
// with 45 threads the last groups are partial. Each function meets each type, and vectors of each size. Bits of a result
// name the functions that were wrong; what is compared is counted at the end.
// for part: 0 1 2 3
// finding: SM014: values from lanes that do not take part
// run: vectors_{part} -b 0:out:uint32:315 --grid 45 --threadgroup 45
// expect buffer 0: f(i) for i in 315: 0 if i < 270 else 0 if i % 3 == 1 else {0: 23 * 4, 1: 23 * 4, 2: 23 * 3 + 20, 3: 20 * 3 + 23}[part]
#include <metal_stdlib>
using namespace metal;

template <typename T, int N> vec<T, N> made(uint j);
#define MADE(T)                                                                                              \
  template <> vec<T, 2> made(uint j) { return vec<T, 2>(T(j * 7 % 5), T((j * 3 + 1) % 4)); }                 \
  template <> vec<T, 3> made(uint j) { return vec<T, 3>(made<T, 2>(j), T(j % 3)); }                          \
  template <> vec<T, 4> made(uint j) { return vec<T, 4>(made<T, 2>(j), made<T, 2>(j + 3)); }
MADE(char) MADE(uchar) MADE(short) MADE(ushort) MADE(int) MADE(uint)
MADE(long) MADE(ulong) MADE(float) MADE(half) MADE(bfloat)

// Of every function one of the three sizes is compared: which one turns with the type.
template <typename T, int N, int turn> struct comparison {
  vec<T, N> data, filling;
  uint wrong, count;
  template <int bit, typename F> void compare(F function) thread {
    if constexpr ((bit + turn) % 3 + 2 == N) {
      vec<T, N> found = function(data, filling);
      bool equal = true;
      for (int c = 0; c < N; c++) equal = equal && found[c] == function(data[c], filling[c]);
      wrong |= uint(!equal) << bit;
      count++;
    }
  }
};

#define F(bit, expression) it.template compare<bit>([=](auto x, auto y) { return expression; });
#define CHECKS(name, width)                                                                                  \
  template <typename C> void name##_functions(thread C &it, uint lane) {                                     \
    F(0, name##_shuffle(x, (lane * 5 + 1) % width))                                                          \
    F(1, name##_broadcast(x, width / 2))                                                                     \
    F(2, name##_broadcast_first(x))                                                                          \
    F(3, name##_shuffle_up(x, 3))                                                                            \
    F(4, name##_shuffle_down(x, 2))                                                                          \
    F(5, name##_shuffle_xor(x, 3))                                                                           \
    F(6, name##_shuffle_rotate_up(x, 3))                                                                     \
    F(7, name##_shuffle_rotate_down(x, 1))                                                                   \
    F(8, name##_shuffle_and_fill_up(x, y, 3))                                                                \
    F(9, name##_shuffle_and_fill_down(x, y, 2))                                                              \
    F(10, name##_shuffle_and_fill_up(x, y, 1, 2))                                                            \
    F(11, name##_shuffle_and_fill_down(x, y, 3, 4))                                                          \
    F(12, name##_sum(x)) F(13, name##_product(x)) F(14, name##_min(x)) F(15, name##_max(x))                  \
    F(16, name##_prefix_inclusive_sum(x)) F(17, name##_prefix_exclusive_sum(x))                              \
    F(18, name##_prefix_inclusive_product(x)) F(19, name##_prefix_exclusive_product(x))                      \
  }                                                                                                          \
  template <typename C> void name##_bits(thread C &it) { F(20, name##_and(x)) F(21, name##_or(x)) F(22, name##_xor(x)) }
CHECKS(simd, 32)
CHECKS(quad, 4)

template <typename T, int N, int turn> void check(thread uint &wrong_simd, thread uint &wrong_quad, thread uint &count, uint i) {
  if (i % 3 == 1) return;
  comparison<T, N, turn> in_simd = {made<T, N>(i), made<T, N>(50 + i), 0, 0}, in_quad = in_simd;
  simd_functions(in_simd, i % 32);
  // Quads run the same code over other lanes: one type in three.
  if constexpr (turn == 0) quad_functions(in_quad, i % 4);
  if constexpr (is_integral_v<T>) {
    simd_bits(in_simd);
    if constexpr (turn == 0) quad_bits(in_quad);
  }
  wrong_simd |= in_simd.wrong;
  wrong_quad |= in_quad.wrong;
  count += in_simd.count + in_quad.count;
}
template <typename T, int turn> void check_sizes(device uint *out, thread uint &count, uint i) {
  uint wrong_simd = 0, wrong_quad = 0;
  check<T, 2, turn>(wrong_simd, wrong_quad, count, i);
  check<T, 3, turn>(wrong_simd, wrong_quad, count, i);
  check<T, 4, turn>(wrong_simd, wrong_quad, count, i);
  out[i] = wrong_simd;
  out[45 + i] = wrong_quad;
}
template <typename A, typename B, typename C>
kernel void check_types(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  uint count = 0;
  check_sizes<A, 0>(out, count, i);
  check_sizes<B, 1>(out + 90, count, i);
  check_sizes<C, 2>(out + 180, count, i);
  out[270 + i] = count;
}
#define KERNEL(part, ...)                                                                                    \
  template [[host_name("vectors_" #part)]] kernel void check_types<__VA_ARGS__>(device uint *, uint);
KERNEL(0, char, uchar, short)
KERNEL(1, ushort, int, uint)
KERNEL(2, long, ulong, float)
KERNEL(3, half, bfloat, int)
