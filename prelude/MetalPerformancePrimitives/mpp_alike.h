// Products of single simdgroups that a whole threadgroup executes alike, on GPUs of compute capability 9.0: all simdgroups
// multiply at the same time by the same right matrix in memory, each with rows of its own. The threads copy the right matrix to
// threadgroup memory, once for all simdgroups, and each warpgroup multiplies by it.
//
// Of the 16 rows of a simdgroup, the tensor cores of a warpgroup give lane 4g + t the sums of rows g and g + 8 in columns
// 2t, 2t + 1, 2t + 8 and 2t + 9. The slots of a lane are for columns 4t to 4t + 3. The same holds for the terms of the left
// matrix. So every 16 lines and every 16 terms of the right matrix are put in the order 0 1 4 5 8 9 12 13 2 3 6 7 10 11 14 15.
#pragma once

#include "MetalPerformancePrimitives/mpp_fragment.h"
#include "MetalPerformancePrimitives/mpp_warpgroup.h"

namespace mpp {
namespace tensor_ops {
namespace __tensor_ops_detail {

template <class Tile, cores Cores, bool TransposeLeft, bool TransposeRight, int K, bool KnownK, class L, class R> struct alike_product {
  using fragments = fragment_product<Tile, Cores, TransposeLeft, TransposeRight, K, L, R>;
  static constexpr int down = Tile::own_down, columns = Tile::own_across * 16, blocks = up(K, 16);
  // The right matrix as it lies in memory: rows, and elements per row. Copies consist of parts of 64 elements per row.
  static constexpr int rows = TransposeRight ? columns : blocks * 16, row_elements = TransposeRight ? blocks * 16 : columns;
  static constexpr int part_bytes = rows * 128, bytes = up(row_elements, 64) * part_bytes;
  static constexpr int sums = down * columns / 2;
  template <class T> static constexpr bool is_device() {
    if constexpr (is_memory<T>)
      return !T::__scaled && metal::__tensor::in_device<typename T::element_type>;
    else
      return false;
  }
  template <class T> static constexpr bool is_value() {
    return is_own<Cores, typename T::value_type>;
  }
  static constexpr bool possible = KnownK && Tile::tall == 16 && is_device<R>() && is_value<R>() && columns <= 256 && sums <= 192 &&
                                   bytes <= 64 * 1024 && !(is_cooperative<L> && TransposeLeft);

  METAL_FUNC static uint place(uint row) { return (row & ~15u) | (row & 2) << 2 | (row >> 1 & 6) | (row & 1); }

  // Loads 16 elements of a row of the right matrix, as pairs; elements outside are 0.
  METAL_FUNC static void take(const R &right, uint row, uint element, long held_rows, long held_elements, bool aligned, uint (&pairs)[8]) {
    if (aligned && row < held_rows && element + 16 <= held_elements) {
      ulong address = (ulong)right.__data + (ulong)((long)row * right.__strides[1] + element) * 2;
      metal::uint4 low = load_at<metal::uint4>(right.__data, address), high = load_at<metal::uint4>(right.__data, address + 16);
      _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++) pairs[i] = low[i], pairs[4 + i] = high[i];
      return;
    }
    _Pragma("clang loop unroll(full)") for (int i = 0; i < 8; i++) {
      typename R::value_type v[2] = {0, 0};
      _Pragma("clang loop unroll(full)") for (int half = 0; half < 2; half++)
        if (row < held_rows && element + 2 * i + half < held_elements)
          v[half] = right.__load(right.__offset(metal::array<long, 2>{(long)element + 2 * i + half, (long)row}));
      pairs[i] = pair_of(v[0], v[1]);
    }
  }

  METAL_FUNC static void copy(const R &right, long lines, long terms, uint memory) {
    constexpr uint across = row_elements / 16, all = rows * across, together = 4;
    uint threads = __smelt_simdgroup_count() * 32;
    long held_rows = TransposeRight ? lines : terms, held_elements = TransposeRight ? terms : lines;
    bool aligned = is_aligned(right, 0, 8);
    _Pragma("clang loop unroll(disable)") for (uint first = __smelt_thread_index(); first < all; first += together * threads) {
      uint pairs[together][8];
      _Pragma("clang loop unroll(full)") for (uint i = 0; i < together; i++) {
        uint unit = first + i * threads;
        if (unit < all) take(right, unit / across, unit % across * 16, held_rows, held_elements, aligned, pairs[i]);
      }
      _Pragma("clang loop unroll(full)") for (uint i = 0; i < together; i++) {
        uint unit = first + i * threads, row = place(unit / across), chunk = unit % across * 2;
        if (unit >= all) continue;
        uint to = memory + chunk / 8 * part_bytes + row * 128;
        __smelt_ptx_store_shared(to + (chunk % 8 ^ (row & 7)) * 16, pairs[i][0], pairs[i][2], pairs[i][4], pairs[i][6]);
        __smelt_ptx_store_shared(to + (chunk % 8 + 1 ^ (row & 7)) * 16, pairs[i][1], pairs[i][3], pairs[i][5], pairs[i][7]);
      }
    }
  }

  // Begins to copy the right matrix from `address` on, where there is at least one row. Rows are dense, and pairs of elements
  // are aligned. A simdgroup copies 32 pairs of a row at a time. `Ahead`: whole matrices are copied without loops, by fewer
  // instructions and more code.
  template <bool Ahead> METAL_FUNC static void begin_copy(const R &right, ulong address, long held_rows, long held_elements, uint memory) {
    constexpr uint parts = up(row_elements, 64), all = rows * parts;
    uint simdgroups = __smelt_simdgroup_count(), lane = __smelt_ptx_lane();
    ulong stride = (ulong)right.__strides[1] * 2, own = address + lane * 4;
    uint chunk = lane / 8 * 2 + lane % 2, to = memory + lane / 2 % 4 * 4;
    auto place_of = [&](uint unit) __attribute__((always_inline)) {
      uint row = place(unit % rows);
      return to + unit / rows * part_bytes + row * 128 + (chunk ^ (row & 7)) * 16;
    };
    if (Ahead && held_rows >= rows && held_elements >= row_elements && all % simdgroups == 0) {
      _Pragma("clang loop unroll(full)") for (uint i = 0; i < all / simdgroups; i++) {
        uint unit = __smelt_simdgroup() + i * simdgroups;
        uint held = row_elements % 64 == 0 || unit / rows * 64 + lane * 2 < row_elements ? 4 : 0;
        __smelt_ptx_copy_4(place_of(unit), held ? own + unit % rows * stride + unit / rows * 128 : address, held);
      }
    } else {
      _Pragma("clang loop unroll(disable)") for (uint unit = __smelt_simdgroup(); unit < all; unit += simdgroups) {
        long left = held_elements - (long)(unit / rows * 64 + lane * 2);
        uint held = unit % rows >= held_rows || left <= 0 ? 0 : left == 1 ? 2 : 4;
        __smelt_ptx_copy_4(place_of(unit), held ? own + unit % rows * stride + unit / rows * 128 : address, held);
      }
    }
    __smelt_ptx_copy_commit();
  }

  // A thread's state of an operation, which has two buffers.
  struct ahead {
    ulong address; // of the matrix that is being copied ahead; 0: there is none
    ulong shape, stride; // its lines and terms, and bytes per row
    ulong buffer; // where it is copied to
    ulong mistakes; // how often another matrix was needed than was copied ahead
    // Of buffer 0 and 1: bits 0 and 1 are the parities of its barrier of copies, bits 2 and 3 those of its barrier of products; bits
    // 4 and 5 say whether it has been used.
    ulong phases;
    long rest; // rows after it
  };
  static constexpr uint barrier_of_filled = 2 * bytes, barrier_of_left = 2 * bytes + 16;

  // Returns where the right matrix has been copied to. Then begins to copy the rows after it, since most kernels need them next;
  // after two mistakes, it no longer does. Warpgroups do not wait for each other then: one can compute while another one multiplies.
  METAL_FUNC static uint take_copied(const R &right, long lines, long terms, uint alike) {
    constexpr long step = TransposeRight ? Tile::columns : K;
    uint memory = __smelt_ptx_shared_address(__smelt_alike_memory(alike)), groups = __smelt_simdgroup_count() / 4;
    auto &next = *(ahead *)__smelt_alike_state(alike);
    ulong address = (ulong)right.__data, shape = (ulong)lines << 32 | (ulong)terms, stride = (ulong)right.__strides[1] * 2;
    uint buffer = (uint)next.buffer, other = 1 - buffer, phases = (uint)next.phases;
    long rest = right.get_extent(1) - step;
    if (next.address != address || next.shape != shape || next.stride != stride) {
      next.mistakes += next.address != 0;
      __smelt_ptx_copy_wait();
      __smelt_ptx_sync(); // earlier products have been computed
      begin_copy<false>(right, address, TransposeRight ? lines : terms, TransposeRight ? terms : lines, memory + buffer * bytes);
      __smelt_ptx_copy_wait();
      if (!phases && __smelt_thread_index() == 0) {
        for (uint i = 0; i < 2; i++) {
          __smelt_ptx_barrier_init(memory + barrier_of_filled + 8 * i, groups * 128);
          __smelt_ptx_barrier_init(memory + barrier_of_left + 8 * i, groups);
        }
        __smelt_ptx_fence_barriers();
      }
      __smelt_ptx_fence_async();
      __smelt_ptx_sync();
    } else {
      // Kernels that move a pointer instead of a slice may never reduce the extent. So the rest never grows along a walk.
      rest = next.rest < rest ? next.rest : rest;
      __smelt_ptx_barrier_wait(memory + barrier_of_filled + 8 * buffer, (phases >> buffer & 1) ^ 1);
      __smelt_ptx_fence_async();
    }
    next.address = 0, next.stride = stride;
    if (rest > 0 && next.mistakes < 2) {
      if (phases >> (4 + other) & 1) __smelt_ptx_barrier_wait(memory + barrier_of_left + 8 * other, (phases >> (2 + other) & 1) ^ 1);
      long next_rows = rest < step ? rest : step;
      begin_copy<true>(right, address + step * stride, next_rows, TransposeRight ? terms : lines, memory + other * bytes);
      __smelt_ptx_copy_arrive(memory + barrier_of_filled + 8 * other);
      phases ^= 1u << other;
      next.address = address + step * stride, next.buffer = other, next.rest = rest - step;
      next.shape = TransposeRight ? (ulong)next_rows << 32 | (ulong)terms : (ulong)lines << 32 | (ulong)next_rows;
    }
    next.phases = (phases ^ 4u << buffer) | 16u << buffer;
    return memory + buffer * bytes;
  }
  // Says that the product with the matrix at `place` has been computed.
  METAL_FUNC static void leave_copied(uint place, uint alike) {
    uint memory = __smelt_ptx_shared_address(__smelt_alike_memory(alike));
    __smelt_ptx_barrier_arrive(memory + barrier_of_left + (place == memory ? 0 : 8), (__smelt_thread_index() & 127) == 0);
  }

  METAL_FUNC static uint take_right(const R &right, long lines, long terms, uint alike) {
    if (alike == 2 && is_aligned(right, 0, 2)) return take_copied(right, lines, terms, alike);
    uint memory = __smelt_ptx_shared_address(__smelt_alike_memory(alike));
    if (alike == 2) {
      __smelt_ptx_copy_wait();
      __smelt_alike_state(alike)[0] = 0;
    }
    __smelt_ptx_sync(); // the last product has been computed
    copy(right, lines, terms, memory);
    __smelt_ptx_fence_async();
    __smelt_ptx_sync();
    return memory;
  }

  // Loads the left matrix into registers.
  METAL_FUNC static void take_left(const L &left, long lines, long terms, uint (&words)[down * blocks * 4]) {
    operand_bounds bounds = {lines, terms};
    bool fast = true;
    if constexpr (is_memory<L>) {
      fast = can_load<L>() && lines >= down * 16 && terms >= blocks * 16 && (TransposeLeft || is_aligned(left, 0, 4));
      if (lines <= 0) {
        _Pragma("clang loop unroll(full)") for (int i = 0; i < down * blocks * 4; i++) words[i] = 0;
        return;
      }
    }
    if (fast) {
      if constexpr (is_cooperative<L> || can_load<L>()) take_quads<true>(left, bounds, words);
    } else {
      take_quads<false>(left, bounds, words);
    }
  }
  template <bool Fast> METAL_FUNC static void take_quads(const L &left, const operand_bounds &bounds, uint (&words)[down * blocks * 4]) {
    _Pragma("clang loop unroll(full)") for (int i = 0; i < down; i++)
      _Pragma("clang loop unroll(full)") for (int block = 0; block < blocks; block++)
        _Pragma("clang loop unroll(full)") for (int upper = 0; upper < 2; upper++) {
          auto quad = fragments::template left_quad<Fast>(left, i, upper, block, bounds);
          words[(i * blocks + block) * 4 + upper] = quad.word[0];
          words[(i * blocks + block) * 4 + upper + 2] = quad.word[1];
        }
  }

  // A slot's place among the tensor cores' sums.
  static constexpr int sum_of(int slot) {
    int fragment = slot / 8, i = fragment / Tile::own_across, j = fragment % Tile::own_across, upper = slot % 8 / 4, c = slot % 4;
    return i * (columns / 2) + (2 * j + c / 2) * 4 + upper * 2 + c % 2;
  }

  // Adds the products of `terms` terms to the sums in slots. Called by all threads of the threadgroup. The left matrix has
  // `lines_left` rows, the right one `lines` columns.
  template <bool Adds>
  METAL_FUNC static void run(const L &left, const R &right, long lines_left, long lines, long terms, uint alike,
                             float (&slots)[Tile::capacity]) {
    if (lines <= 0 || terms <= 0) return;
    constexpr uint type = Cores == cores::brains;
    uint words[down * blocks * 4];
    float sum[sums];
    __smelt_ptx_fragment_lanes();
    take_left(left, lines_left, terms, words);
    uint at = take_right(right, lines, terms, alike);
    _Pragma("clang loop unroll(full)") for (int slot = 0; slot < Tile::capacity; slot++) sum[sum_of(slot)] = slots[slot];
    __smelt_ptx_wgmma_fence();
    _Pragma("clang loop unroll(full)") for (int block = 0; block < blocks; block++)
      _Pragma("clang loop unroll(full)") for (int i = 0; i < down; i++) {
        const uint *a = words + (i * blocks + block) * 4;
        ulong b = TransposeRight ? matrix_at(at + block / 4 * part_bytes + block % 4 * 32, 0) : matrix_at(at + block * 2048, part_bytes);
        __smelt_ptx_wgmma_registers(sum + i * (columns / 2), a[0], a[1], a[2], a[3], b, Adds || block > 0, columns, type, !TransposeRight);
      }
    __smelt_ptx_wgmma_commit();
    __smelt_ptx_wgmma_finish(sum, sums, 0);
    if (alike == 2 && is_aligned(right, 0, 2)) leave_copied(at, alike);
    _Pragma("clang loop unroll(full)") for (int slot = 0; slot < Tile::capacity; slot++) slots[slot] = sum[sum_of(slot)];
  }
};

} // namespace __tensor_ops_detail
} // namespace tensor_ops
} // namespace mpp
