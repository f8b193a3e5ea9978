// The sums behind tensor operations: products of the lanes' elements, 16 terms at a time.
#pragma once

#include "MetalPerformancePrimitives/mpp_layout.h"
#include "MetalPerformancePrimitives/mpp_types.h"
#include "MetalPerformancePrimitives/mpp_tile.h"

namespace mpp {
namespace tensor_ops {
namespace __tensor_ops_detail {

template <class T> inline constexpr bool is_cooperative = false;
template <class T, class E, class L> inline constexpr bool is_cooperative<metal::cooperative_tensor<T, E, L>> = true;
template <class T> inline constexpr bool is_memory = metal::__tensor::traits<T>::tensor;

// The element (x, y) of a tensor in memory, scaled.
template <class T> METAL_FUNC float element(const T &memory, long x, long y) {
  float value = (float)memory.__load(memory.__offset(metal::array<long, 2>{x, y}));
  if constexpr (T::__scaled) value *= memory.__scale(x, y);
  return value;
}

// Numbers of a product: whole ones are summed as integers.
template <class L, class R> using sum_t = metal::conditional_t<is_whole(kind_of<L>, kind_of<R>), int, float>;

// a b + sum of 8 × 8 matrices. The products of 8 bytes each are exact in float.
METAL_FUNC float multiply_add(float even, float odd, float right, float sum) {
  return __smelt_simd_matrix_product(even, odd, right, sum);
}
METAL_FUNC int multiply_add(float even, float odd, float right, int sum) {
  return (int)((uint)sum + (uint)(int)__smelt_simd_matrix_product(even, odd, right, 0));
}

// Of the 16 terms, matrices of 8 × 8 take those whose number has bit 1 = pair. A lane of the left matrix holds two of them,
// odd = 0 and 1, in the row of its fragment; a lane of the right one holds one, in two columns.
METAL_FUNC int left_term(int pair, int odd) { return lane_column() + pair * 2 + odd; }
METAL_FUNC int right_term(int pair) {
  int lane = (int)__smelt_lane();
  return (lane >> 1 & 8) | (lane & 4) | pair * 2 | (lane >> 1 & 1);
}

// Adds 16 terms to the sums in a tile's slots. left(i, upper, pair, odd) is the lane's element of the left matrix in row
// lane_row() + 8 upper of the simdgroup's fragments number i from above, and term left_term(pair, odd);
// right(j, side, pair, odd) is that of the right matrix in term right_term(pair) and column lane_column() + 2 side + odd of
// the fragments number j from the left.
template <class Tile, class Sum, class Left, class Right>
METAL_FUNC void add_terms(Left left, Right right, Sum (&sums)[Tile::capacity]) {
  constexpr int down = Tile::own_down, across = Tile::own_across, halves = Tile::tall / 8;
  _Pragma("clang loop unroll(full)") for (int pair = 0; pair < 2; pair++) {
    float a[down * halves * 2], b[across * 4];
    _Pragma("clang loop unroll(full)") for (int at = 0; at < down * halves * 2; at++)
      a[at] = left(at / (2 * halves), at / 2 % halves, pair, at & 1);
    _Pragma("clang loop unroll(full)") for (int at = 0; at < across * 4; at++) b[at] = right(at / 4, at / 2 & 1, pair, at & 1);
    _Pragma("clang loop unroll(full)") for (int slot = 0; slot < Tile::capacity; slot++) {
      int fragment = slot / Tile::in_fragment, upper = slot % Tile::in_fragment >> 2;
      int row = (fragment / across * halves + upper) * 2;
      sums[slot] = multiply_add(a[row], a[row + 1], b[fragment % across * 4 + (slot & 3)], sums[slot]);
    }
  }
}

// The element in this row and column of a fragment of a cooperative tensor, for each lane its own. `Varying` are the bits
// of the slot that differ between lanes; the lane's others are in `slot`.
template <int Varying, class C> METAL_FUNC float fetch(const C &tensor, int fragment, uint row, uint column) {
  constexpr int slots = C::layout::in_fragment;
  uint lane = lane_of(row, column);
  int slot = slot_at(row, column);
  float value = 0;
  _Pragma("clang loop unroll(full)") for (int s = 0; s < slots; s++) {
    if ((s & ~Varying) != 0) continue;
    int at = (slot & ~Varying & (slots - 1)) | s;
    float other = metal::__simd::shuffle((float)tensor.__slots[fragment * slots + at], lane);
    value = (slot & Varying) == s ? other : value;
  }
  return value;
}

} // namespace __tensor_ops_detail
} // namespace tensor_ops
} // namespace mpp
