// How tiles of matrices lie in the slots of threads.
//
// A simdgroup's share of a tile is cut into fragments of 16 × 16, row after row, or of 8 × 16 where the tile has no more
// than 8 rows. In a fragment, as on Apple's GPUs since M5, which kernels rely on:
//   row    = lane bits 4 2 1, and bit 2 of the slot above them
//   column = lane bits 3 0, and bits 1 0 of the slot below them
// Rows of fragments are dealt to the simdgroups of a scope in turn; where there are more simdgroups, columns too.
#pragma once

#include "metal_cooperative_tensor"

namespace mpp {
namespace tensor_ops {

namespace __tensor_ops_detail {

template <class T> using __remove_addrspace_t = metal::remove_addrspace_t<T>;

constexpr int up(int a, int b) { return (a + b - 1) / b; }

// The largest divisor of `count` that is not above `limit`.
constexpr int divisor(int count, int limit) {
  int best = 1;
  for (int d = 1; d <= count && d <= limit; d++)
    if (count % d == 0) best = d;
  return best;
}

METAL_FUNC int lane_row() { return (int)(__smelt_lane() >> 2 & 4 | __smelt_lane() >> 1 & 3); }
METAL_FUNC int lane_column() { return (int)(__smelt_lane() & 8 | __smelt_lane() << 2 & 4); }
// The lane that holds this row and column of a fragment, and the slot there.
METAL_FUNC uint lane_of(uint row, uint column) {
  return (row & 4) << 2 | (row & 3) << 1 | (column & 8) | (column >> 2 & 1);
}
METAL_FUNC int slot_at(uint row, uint column) { return (int)((row & 8) >> 1 | (column & 3)); }

} // namespace __tensor_ops_detail

// Of a tile of Rows × Columns in the slots of Simdgroups simdgroups.
template <int Rows, int Columns, int Simdgroups> struct __tile {
  static constexpr int rank = 2, rows = Rows, columns = Columns;
  static constexpr int tall = Rows <= 8 ? 8 : 16, in_fragment = tall / 2;
  static constexpr int down = __tensor_ops_detail::up(Rows, tall), across = __tensor_ops_detail::up(Columns, 16);
  static constexpr int groups_down = __tensor_ops_detail::divisor(Simdgroups, down), groups_across = Simdgroups / groups_down;
  static constexpr int own_down = __tensor_ops_detail::up(down, groups_down), own_across = __tensor_ops_detail::up(across, groups_across);
  static constexpr int capacity = own_down * own_across * in_fragment;
  // Every slot has an element.
  static constexpr bool full = Rows % tall == 0 && Columns % 16 == 0 && down % groups_down == 0 && across % groups_across == 0;
  static constexpr int extent(int r) { return r ? Rows : Columns; }

  METAL_FUNC static int group_down() { return Simdgroups == 1 ? 0 : (int)__smelt_simdgroup() % Simdgroups / groups_across; }
  METAL_FUNC static int group_across() { return Simdgroups == 1 ? 0 : (int)__smelt_simdgroup() % groups_across; }
  // Where the simdgroup's fragment (i, j) begins.
  METAL_FUNC static int first_row(int i) { return (i * groups_down + group_down()) * tall; }
  METAL_FUNC static int first_column(int j) { return (group_across() * own_across + j) * 16; }
  static constexpr int fragment_row(int slot) { return slot / in_fragment / own_across; }
  static constexpr int fragment_column(int slot) { return slot / in_fragment % own_across; }
  METAL_FUNC static int row(int slot) {
    return first_row(fragment_row(slot)) + __tensor_ops_detail::lane_row() + (slot % in_fragment >> 2) * 8;
  }
  METAL_FUNC static int column(int slot) {
    return first_column(fragment_column(slot)) + __tensor_ops_detail::lane_column() + (slot & 3);
  }
  METAL_FUNC static metal::array<int, 2> index(int slot) { return {column(slot), row(slot)}; }
  METAL_FUNC static bool valid(int slot) { return full || (row(slot) < Rows && column(slot) < Columns); }
};

// A tile that one thread holds, row after row.
template <int Rows, int Columns> struct __tile<Rows, Columns, 0> {
  static constexpr int rank = 2, rows = Rows, columns = Columns, capacity = Rows * Columns;
  static constexpr bool full = true;
  static constexpr int extent(int r) { return r ? Rows : Columns; }
  static constexpr int row(int slot) { return slot / Columns; }
  static constexpr int column(int slot) { return slot % Columns; }
  METAL_FUNC static metal::array<int, 2> index(int slot) { return {column(slot), row(slot)}; }
  METAL_FUNC static bool valid(int) { return true; }
};

// Inputs and the destination of a product of elements L and R.
template <class Tile, class L, class R> struct __left : Tile {};
template <class Tile, class L, class R> struct __right : Tile {};
template <class Tile, class L, class R> struct __destination : Tile {
  using tile = Tile;
  using left = L;
  using right = R;
};

// One value for each row of a destination. Every lane that holds elements of a row holds its value.
template <class Destination> struct __row_results {
  using source = Destination;
  static constexpr int rank = 1, in_fragment = Destination::tall / 8, capacity = Destination::own_down * in_fragment;
  static constexpr bool full = Destination::rows % Destination::tall == 0;
  static constexpr int extent(int) { return Destination::rows; }
  METAL_FUNC static metal::array<int, 1> index(int slot) {
    return {Destination::first_row(slot / in_fragment) + __tensor_ops_detail::lane_row() + slot % in_fragment * 8};
  }
  METAL_FUNC static bool valid(int slot) { return full || index(slot)[0] < Destination::rows; }
  template <class Other> static constexpr int slot_of(int slot) {
    static_assert(Other::rows == Destination::rows && Other::groups_down == Destination::groups_down,
                  "map_iterator: the tensors do not have the same number of rows");
    return Other::fragment_row(slot) * in_fragment + (slot % Other::in_fragment >> 2);
  }
};

template <class Destination> struct __column_results {
  using source = Destination;
  static constexpr int rank = 1, capacity = Destination::own_across * 4;
  static constexpr bool full = Destination::columns % 16 == 0;
  static constexpr int extent(int) { return Destination::columns; }
  METAL_FUNC static metal::array<int, 1> index(int slot) {
    return {Destination::first_column(slot / 4) + __tensor_ops_detail::lane_column() + slot % 4};
  }
  METAL_FUNC static bool valid(int slot) { return full || index(slot)[0] < Destination::columns; }
  template <class Other> static constexpr int slot_of(int slot) {
    static_assert(Other::columns == Destination::columns, "map_iterator: the tensors do not have the same number of columns");
    return Other::fragment_column(slot) * 4 + (slot & 3);
  }
};

} // namespace tensor_ops
} // namespace mpp
