// Products of tiles on GPUs of compute capability 9.0: by warpgroups, of four simdgroups each, whose tensor cores read both
// operands from staging memory. Copies by tensor maps fill it in stages, several ahead of the products.
#pragma once

#include "MetalPerformancePrimitives/mpp_eights.h"
#include "MetalPerformancePrimitives/mpp_product.h"

namespace mpp {
namespace tensor_ops {
namespace __tensor_ops_detail {

// How M × N sums are divided among the warpgroups of a scope, and staging memory among the stages. Kind: of both operands
// there.
// A stage holds 64 terms, or 128 of one byte, of each row of the left matrix and of each column of the right one. Terms that
// follow each other in memory: rows of 128 bytes, one for each row (column) of the matrix. Otherwise blocks of 64 rows
// (columns), with one row of 128 bytes for each term; terms of one byte cannot lie so.
template <kind Kind, int M, int N, bool TransposeLeft, bool TransposeRight, int Simdgroups> struct warpgroups {
  static constexpr bool bytes_each = Kind == kind::e4m3 || Kind == kind::e5m2;
  using byte = metal::conditional_t<Kind == kind::e5m2, metal::metal_fp8_e5m2_format, metal::metal_fp8_e4m3_format>;
  using element = metal::conditional_t<bytes_each, byte, metal::conditional_t<Kind == kind::brain16, bfloat, half>>;
  static constexpr int m = M, n = N; // type: of __smelt_ptx_wgmma; map_type: of tensor maps
  static constexpr int type = Kind == kind::e5m2 ? 3 : Kind == kind::e4m3 ? 2 : Kind == kind::brain16;
  static constexpr int map_type = bytes_each ? 0 : Kind == kind::brain16 ? 10 : 6, element_bytes = bytes_each ? 1 : 2;
  static constexpr bool transpose_left = TransposeLeft, transpose_right = TransposeRight;
  static constexpr int count = Simdgroups / 4;
  static constexpr bool down = count && M % (64 * (count ? count : 1)) == 0;
  static constexpr int own_rows = down ? M / count : M, own_columns = down || !count ? N : N / count;
  static constexpr int tall = own_rows / 64;
  // Columns of one instruction.
  static constexpr int width = own_columns <= 256 ? own_columns : own_columns % 256 == 0 ? 256 : 128;
  static constexpr int wide = own_columns / (width ? width : 1);
  static constexpr int sums = own_rows * own_columns / 128;
  static constexpr int depth = bytes_each ? 128 : 64;
  static constexpr int stage_bytes = (M + N) * 128;
  // Of bytes, the products of two stages are added up together, if four fit.
  static constexpr int most_stages = 220 * 1024 / stage_bytes, fitting = most_stages < 8 ? most_stages : 8;
  static constexpr int together = bytes_each && fitting >= 4 ? 2 : 1, stages = fitting / together * together;
  // More than half of a multiprocessor's memory, so that it runs one group at a time (__smelt_ptx_map_memory).
  static constexpr int needed = stages * stage_bytes + 1024, bytes = needed < 120 * 1024 ? 120 * 1024 : needed;
  static constexpr bool possible =
      Simdgroups % 4 == 0 && (Kind == kind::real16 || Kind == kind::brain16 || (bytes_each && !TransposeLeft && TransposeRight)) &&
      own_rows % 64 == 0 && own_rows > 0 &&
      (down || N % (count ? count : 1) == 0) && own_columns % (TransposeRight ? 16 : 64) == 0 && own_columns % width == 0 &&
      M <= 256 && (N <= 256 || N == 512) && sums <= 192 && stages >= 3 && M * N * 4 <= stages * stage_bytes;

  // Of the warpgroup's first sum.
  METAL_FUNC static int first_row(uint group) { return down ? (int)group * own_rows : 0; }
  METAL_FUNC static int first_column(uint group) { return down ? 0 : (int)group * own_columns; }
  // Where the thread's sum number `at` lies, from there on.
  METAL_FUNC static int row(int at) {
    return at / (wide * width / 2) * 64 + (int)(__smelt_thread_index() >> 5 & 3) * 16 + (int)(__smelt_ptx_lane() >> 2) + (at >> 1 & 1) * 8;
  }
  METAL_FUNC static int column(int at) {
    return at % (wide * width / 2) / (width / 2) * width + at % (width / 2) / 4 * 8 + (int)(__smelt_ptx_lane() & 3) * 2 + (at & 1);
  }
};

// At an address in the memory of `like`.
template <class T, class V> METAL_FUNC void store_pair(__smelt_device T *, ulong address, V pair) { *(__smelt_device V *)address = pair; }
template <class T, class V> METAL_FUNC void store_pair(__smelt_threadgroup T *, ulong address, V pair) {
  *(__smelt_threadgroup V *)address = pair;
}

// What tensor cores multiply the operands as: half or bfloat, where every element, times its scale, is one; other, where
// neither holds both operands.
template <class L, class R> constexpr kind wgmma_kind() {
  constexpr kind l = kind_of<typename L::value_type>, r = kind_of<typename R::value_type>;
  constexpr bool whole = (is_byte(l) || is_nibble(l)) && (is_byte(r) || is_nibble(r));
  constexpr bool halves = (l == kind::real16 || is_byte(l) || is_nibble(l) || is_small_real(l)) &&
                          (r == kind::real16 || is_byte(r) || is_nibble(r) || is_small_real(r));
  constexpr bool brains = (l == kind::brain16 || is_byte(l) || is_nibble(l) || is_small_real(l)) &&
                          (r == kind::brain16 || is_byte(r) || is_nibble(r) || is_small_real(r));
  if (whole) return kind::other;
  if (L::__scaled || R::__scaled) return brains ? kind::brain16 : kind::other;
  return halves ? kind::real16 : brains ? kind::brain16 : kind::other;
}

// What tensor cores multiply without a conversion: small floats of one kind without scales; other, of other operands. Their
// sums have fewer bits than float's, so this is for relaxed precision.
template <class L, class R, bool Relaxed> constexpr kind wgmma_bytes() {
  constexpr kind l = kind_of<typename L::value_type>, r = kind_of<typename R::value_type>;
  return Relaxed && l == r && (l == kind::e4m3 || l == kind::e5m2) && !L::__scaled && !R::__scaled ? l : kind::other;
}

// Where the first element lies; of packed ones, these are bytes.
template <class T> METAL_FUNC ulong address_of(const T &memory) {
  if constexpr (metal::__packed_numeric::is_format<typename T::value_type>)
    return (ulong)memory.__data + (ulong)memory.__origin;
  else
    return (ulong)memory.__data;
}

// Whether tensor maps can describe the operand: terms or rows in a line, at multiples of 16 bytes.
template <class W, class T> METAL_FUNC bool is_mappable(const T &memory) {
  if constexpr (!__is_same(typename T::value_type, typename W::element) || T::__scaled ||
                !metal::__tensor::in_device<typename T::element_type>) {
    return false;
  } else {
    ulong stride = (ulong)memory.__strides[1] * W::element_bytes;
    return memory.__strides[0] == 1 && (address_of(memory) & 15) == 0 && (stride & 15) == 0 && memory.__strides[1] > 0 &&
           stride < 1ul << 40;
  }
}

// A matrix descriptor of rows of 128 bytes, swizzled: its address, and the distance of blocks of 64 rows (columns).
METAL_FUNC ulong matrix_at(uint address, uint blocks) {
  return (ulong)(address >> 4 & 0x3FFF) | (ulong)(blocks >> 4) << 16 | 64ul << 32 | 1ul << 62;
}

// Begins to add the products of the 64 terms in a stage; with `first`, the sums begin with them.
template <class W> METAL_FUNC void multiply_stage(uint stage, uint group, bool first, float (&sums)[W::sums]) {
  uint left = stage + (uint)W::first_row(group) * 128, right = stage + W::m * 128 + (uint)W::first_column(group) * 128;
  __smelt_ptx_wgmma_fence();
  _Pragma("clang loop unroll(full)") for (uint k = 0; k < 4; k++)
    _Pragma("clang loop unroll(full)") for (uint i = 0; i < (uint)W::tall; i++)
      _Pragma("clang loop unroll(full)") for (uint j = 0; j < (uint)W::wide; j++)
        __smelt_ptx_wgmma(sums + (i * W::wide + j) * (W::width / 2),
                          matrix_at(left + i * 8192 + k * (W::transpose_left ? 2048 : 32), 8192),
                          matrix_at(right + j * W::width * 128 + k * (W::transpose_right ? 32 : 2048), 8192),
                          !first || k > 0, W::width, W::type, W::transpose_left, !W::transpose_right);
  __smelt_ptx_wgmma_commit();
}

// Adds the products of the 128 terms in each of `Stages` stages. The tensor cores' own sums of bytes have few bits: no more than
// these terms are added up there.
template <class W, uint Stages> METAL_FUNC void multiply_bytes(uint stage, uint group, float (&sums)[W::sums]) {
  constexpr int part = W::width > 128 ? W::width / 2 : W::width, parts = W::width / part; // columns at a time
  uint left = stage + (uint)W::first_row(group) * 128, right = stage + W::m * 128 + (uint)W::first_column(group) * 128;
  _Pragma("clang loop unroll(full)") for (uint i = 0; i < (uint)W::tall; i++)
    _Pragma("clang loop unroll(full)") for (uint j = 0; j < (uint)(W::wide * parts); j++) {
      float some[part / 2];
      __smelt_ptx_wgmma_fence();
      _Pragma("clang loop unroll(full)") for (uint k = 0; k < 4 * Stages; k++) {
        uint at = k / 4 * W::stage_bytes + k % 4 * 32;
        __smelt_ptx_wgmma(some, matrix_at(left + i * 8192 + at, 8192), matrix_at(right + j * part * 128 + at, 8192), k > 0, part, W::type, 0,
                          0);
      }
      __smelt_ptx_wgmma_commit();
      __smelt_ptx_wgmma_finish(some, part / 2, 0);
      float(&own)[part / 2] = *(float(*)[part / 2])(sums + (i * W::wide * parts + j) * (part / 2));
      _Pragma("clang loop unroll(full)") for (int at = 0; at < part / 2; at++) own[at] += some[at];
      // Waits for nothing, but keeps the additions here: moved down, they would hold the products in more registers.
      __smelt_ptx_wgmma_finish(own, part / 2, 0);
    }
}

// ---- Operands that tensor maps can describe.

template <class W, class L, class R>
METAL_FUNC void multiply_by_copies(const L &left, const R &right, uint rows, uint columns, uint terms, float (&sums)[W::sums]) {
  constexpr bool transpose_left = W::transpose_left, transpose_right = W::transpose_right;
  constexpr uint M = W::m, N = W::n, depth = W::depth;
  constexpr uint stages = W::stages, left_bytes = M * 128, box = N < 256 ? N : 256;
  uint group = __smelt_ptx_broadcast(__smelt_thread_index() >> 7), simdgroup = __smelt_ptx_broadcast(__smelt_thread_index() >> 5);
  uint memory = __smelt_ptx_shared_address(__smelt_staging(W::bytes));
  uint filled = memory + stages * W::stage_bytes, emptied = filled + 8 * stages, scratch = filled + 256;
  ulong maps = __smelt_ptx_map_memory();
  uint blocks = (terms + W::depth - 1) / W::depth;
  uint leads = simdgroup == 0 && __smelt_lane() == 0;

  // What other code wrote to staging memory comes before the copies.
  __smelt_ptx_fence_async();
  __smelt_threadgroup_barrier(2, 0, "");
  if (simdgroup == 0)
    __smelt_ptx_tensor_map(maps, scratch, address_of(left), transpose_left ? rows : terms, transpose_left ? terms : rows,
                           (ulong)left.__strides[1] * W::element_bytes, depth, transpose_left ? 64 : M, W::map_type);
  if (simdgroup == 1)
    __smelt_ptx_tensor_map(maps + 128, scratch + 128, address_of(right), transpose_right ? terms : columns,
                           transpose_right ? columns : terms, (ulong)right.__strides[1] * W::element_bytes, depth, transpose_right ? box : 64, W::map_type);
  if (__smelt_thread_index() == 64) {
    for (uint s = 0; s < stages; s++) {
      __smelt_ptx_barrier_init(filled + 8 * s, 1);
      __smelt_ptx_barrier_init(emptied + 8 * s, W::count);
    }
    __smelt_ptx_fence_barriers();
  }
  __smelt_threadgroup_barrier(2, 0, "");
  if (simdgroup == 0) __smelt_ptx_map_acquire(maps), __smelt_ptx_map_acquire(maps + 128);

  auto copy = [&](uint stage, uint block) __attribute__((always_inline)) {
    uint to = memory + stage * W::stage_bytes, barrier = filled + 8 * stage, k = block * W::depth;
    __smelt_ptx_barrier_expect(barrier, W::stage_bytes, leads);
    if constexpr (transpose_left)
      _Pragma("clang loop unroll(full)") for (uint i = 0; i < M / 64; i++)
        __smelt_ptx_tensor_copy(to + i * 8192, maps, i * 64, k, barrier, leads);
    else
      __smelt_ptx_tensor_copy(to, maps, k, 0, barrier, leads);
    if constexpr (transpose_right)
      _Pragma("clang loop unroll(full)") for (uint i = 0; i < N / box; i++)
        __smelt_ptx_tensor_copy(to + left_bytes + i * box * 128, maps + 128, k, i * box, barrier, leads);
    else
      _Pragma("clang loop unroll(full)") for (uint i = 0; i < N / 64; i++)
        __smelt_ptx_tensor_copy(to + left_bytes + i * 8192, maps + 128, i * 64, k, barrier, leads);
  };
  if (simdgroup == 0)
    for (uint s = 0; s < stages && s < blocks; s++) copy(s, s);

  uint stage = 0, parity = 0, signals = (__smelt_thread_index() & 127) == 0;
  if constexpr (W::bytes_each) {
    _Pragma("clang loop unroll(full)") for (int at = 0; at < W::sums; at++) sums[at] = 0;
    constexpr uint together = (uint)W::together;
    uint block = 0;
    for (; block + together <= blocks; block += together) { // Stages that are multiplied together have the same parity.
      _Pragma("clang loop unroll(full)") for (uint s = stage; s < stage + together; s++) __smelt_ptx_barrier_wait(filled + 8 * s, parity);
      multiply_bytes<W, together>(memory + stage * W::stage_bytes, group, sums);
      _Pragma("clang loop unroll(full)") for (uint s = stage; s < stage + together; s++) __smelt_ptx_barrier_arrive(emptied + 8 * s, signals);
      if (simdgroup == 0)
        for (uint s = 0; s < together && block + s + stages < blocks; s++) {
          __smelt_ptx_barrier_wait(emptied + 8 * (stage + s), parity);
          copy(stage + s, block + s + stages);
        }
      stage += together;
      if (stage == stages) stage = 0, parity ^= 1;
    }
    if (together > 1 && block < blocks) {
      __smelt_ptx_barrier_wait(filled + 8 * stage, parity);
      multiply_bytes<W, 1>(memory + stage * W::stage_bytes, group, sums);
    }
  } else {
    uint before = 0, parity_before = 0;
    for (uint block = 0; block < blocks; block++) {
      __smelt_ptx_barrier_wait(filled + 8 * stage, parity);
      multiply_stage<W>(memory + stage * W::stage_bytes, group, block == 0, sums);
      __smelt_ptx_wgmma_wait(1);
      // What has been multiplied may be filled again: the block before.
      __smelt_ptx_barrier_arrive(emptied + 8 * before, signals && block > 0);
      // It is filled now, so that no warpgroup waits for what another one has just begun.
      if (simdgroup == 0 && block > 0 && block - 1 + stages < blocks) {
        __smelt_ptx_barrier_wait(emptied + 8 * before, parity_before);
        copy(before, block - 1 + stages);
      }
      before = stage, parity_before = parity;
      if (++stage == stages) stage = 0, parity ^= 1;
    }
  }
  if constexpr (!W::bytes_each) __smelt_ptx_wgmma_finish(sums, W::sums, 0);
  __smelt_threadgroup_barrier(2, 0, "");
  if (leads)
    for (uint s = 0; s < stages; s++) {
      __smelt_ptx_barrier_end(filled + 8 * s);
      __smelt_ptx_barrier_end(emptied + 8 * s);
    }
}

// ---- Other operands: threads convert their elements.

// Eight neighbours of a stage's row of an operand, from (x, y) on; what lies past (width, height) is 0.
template <class W, class T> METAL_FUNC void stage_eight(const T &operand, uint x, uint y, uint width, uint height, uint address) {
  ushort bits[8];
  _Pragma("clang loop unroll(full)") for (uint e = 0; e < 8; e++) {
    typename W::element value = 0;
    if (x + e < width && y < height) value = (typename W::element)element(operand, x + e, y);
    bits[e] = __builtin_bit_cast(ushort, value);
  }
  __smelt_ptx_store_shared(address, (uint)bits[0] | (uint)bits[1] << 16, (uint)bits[2] | (uint)bits[3] << 16,
                           (uint)bits[4] | (uint)bits[5] << 16, (uint)bits[6] | (uint)bits[7] << 16);
}

// An operand's `lines` rows or columns, 64 terms from `k` on: `along` if its terms follow each other in memory.
template <class W, bool Along, uint Lines, class T>
METAL_FUNC void stage_operand(const T &operand, uint k, uint lines, uint terms, uint address) {
  _Pragma("clang loop unroll(disable)") for (uint i = __smelt_thread_index(); i < Lines * 8; i += W::count * 128) {
    uint row = i / 8, chunk = i % 8;
    if constexpr (Along) {
      stage_eight<W>(operand, k + chunk * 8, row, terms, lines, address + row * 128 + ((chunk ^ (row & 7)) * 16));
    } else {
      uint block = row / 64, term = row % 64;
      stage_eight<W>(operand, block * 64 + chunk * 8, k + term, lines, terms, address + row * 128 + ((chunk ^ (term & 7)) * 16));
    }
  }
}

// Multiplies stage by stage; `fill(k, address)` fills a stage with the terms from `k` on. Of three stages, one is filled while the
// products of the other two are computed. At the barrier, those of the stage that is filled next have ended.
template <class W, class Fill> METAL_FUNC void multiply_filled(uint terms, float (&sums)[W::sums], const Fill &fill) {
  uint group = __smelt_ptx_broadcast(__smelt_thread_index() >> 7);
  uint memory = __smelt_ptx_shared_address(__smelt_staging(W::bytes)), stage = memory;
  __smelt_threadgroup_barrier(2, 0, "");
  _Pragma("clang loop unroll(disable)") for (uint k = 0; k < terms; k += W::depth) {
    fill(k, stage);
    __smelt_ptx_wgmma_wait(1);
    __smelt_ptx_fence_async();
    __smelt_threadgroup_barrier(2, 0, "");
    multiply_stage<W>(stage, group, k == 0, sums);
    stage = stage == memory + 2 * W::stage_bytes ? memory : stage + W::stage_bytes;
  }
  __smelt_ptx_wgmma_finish(sums, W::sums, 0);
  __smelt_threadgroup_barrier(2, 0, "");
}

template <class W, class L, class R>
METAL_FUNC void multiply_by_threads(const L &left, const R &right, uint rows, uint columns, uint terms, float (&sums)[W::sums]) {
  multiply_filled<W>(terms, sums, [&](uint k, uint stage) __attribute__((always_inline)) {
    stage_operand<W, !W::transpose_left, W::m>(left, k, rows, terms, stage);
    stage_operand<W, W::transpose_right, W::n>(right, k, columns, terms, stage + W::m * 128);
  });
}

// Operands that threads convert a run at a time. If registers have room for the elements of two stages, those of the next
// stage are loaded before those of this one are converted, otherwise afterwards.
template <class W, uint Run, class L, class R>
METAL_FUNC void multiply_by_runs(const L &left, const R &right, uint rows, uint columns, uint terms, float (&sums)[W::sums]) {
  converted_operand<W, L, W::m, Run> own_left;
  converted_operand<W, R, W::n, Run> own_right;
  own_left.begin(left, rows, terms), own_left.load(left, 0);
  own_right.begin(right, columns, terms), own_right.load(right, 0);
  multiply_filled<W>(terms, sums, [&](uint k, uint stage) __attribute__((always_inline)) {
    if constexpr (own_left.all_words + own_right.all_words < 32) {
      auto next_left = own_left;
      auto next_right = own_right;
      next_right.load(right, k + W::depth), next_left.load(left, k + W::depth);
      own_right.store(stage + W::m * 128), own_left.store(stage);
      own_right = next_right, own_left = next_left;
    } else {
      own_right.store(stage + W::m * 128), own_right.load(right, k + W::depth);
      own_left.store(stage), own_left.load(left, k + W::depth);
    }
  });
}

// Whether threads can convert the operands in runs. With scales, a block usually has 32 terms, so shorter runs are not worth their
// code.
template <class W, uint Run, class L, class R> constexpr bool has_runs() {
  using left = eights<typename W::element, L>;
  using right = eights<typename W::element, R>;
  if constexpr (W::transpose_left || !W::transpose_right || (left::is_real && right::is_real) || (Run < 16 && (L::__scaled || R::__scaled)))
    return false;
  else
    return left::template possible<Run> && right::template possible<Run>;
}
template <class W, uint Run, class L, class R> METAL_FUNC bool is_in_runs(const L &left, const R &right, uint terms) {
  if constexpr (has_runs<W, Run, L, R>())
    return eights<typename W::element, L>::template is_aligned<Run>(left, terms) &&
           eights<typename W::element, R>::template is_aligned<Run>(right, terms);
  else
    return false;
}

// ---- Operands of which the launch has made copies in bfloat.

struct expanded_operand {
  using value_type = bfloat;
  using element_type = __smelt_device bfloat;
  static constexpr bool __scaled = false;
  const __smelt_device bfloat *__data; // null: there is no copy
  metal::array<long, 2> __strides;
};

template <class T> constexpr bool has_ue8m0() {
  if constexpr (T::__scaled)
    return T::get_rank() == 2 && __is_same(metal::__value_t<typename T::__plane::element_type>, metal::metal_fp8_ue8m0_format);
  else
    return false;
}

// Whether there may be copies, of one operand or of both. The other is in bfloat itself.
template <class W, class L, class R> constexpr bool may_be_expanded() {
  constexpr bool left = __is_same(typename L::value_type, bfloat) && !L::__scaled;
  constexpr bool right = __is_same(typename R::value_type, bfloat) && !R::__scaled;
  return __is_same(typename W::element, bfloat) && (has_ue8m0<L>() || has_ue8m0<R>()) && (left || has_ue8m0<L>()) && (right || has_ue8m0<R>());
}

template <class T> METAL_FUNC auto expanded(const T &operand) {
  if constexpr (T::__scaled)
    return expanded_operand{(const __smelt_device bfloat *)operand.__expanded(), {1, operand.__strides[1]}};
  else
    return operand;
}

// The sums of `terms` products; `rows` and `columns` of the operands' tile exist, at least one of each. By all threads of
// the threadgroup, which has as many simdgroups as W says. Sums lie as W::row and W::column say.
template <class W, bool Relaxed, class L, class R>
METAL_FUNC void multiply_by_warpgroups(const L &left, const R &right, uint rows, uint columns, uint terms, float (&sums)[W::sums]) {
  if constexpr (may_be_expanded<W, L, R>()) {
    auto all_left = expanded(left);
    auto all_right = expanded(right);
    if (terms >= 256 && all_left.__data && all_right.__data && is_mappable<W>(all_left) && is_mappable<W>(all_right)) {
      __smelt_ptx_expanded_tile(W::m * W::n);
      return multiply_by_copies<W>(all_left, all_right, rows, columns, terms, sums);
    }
  }
  using S = warpgroups<wgmma_bytes<L, R, Relaxed>(), W::m, W::n, W::transpose_left, W::transpose_right, W::count * 4>;
  if constexpr (S::possible)
    if (terms >= 256 && is_mappable<S>(left) && is_mappable<S>(right)) return multiply_by_copies<S>(left, right, rows, columns, terms, sums);
  if constexpr (has_runs<W, 16, L, R>())
    if (is_in_runs<W, 16>(left, right, terms)) return multiply_by_runs<W, 16>(left, right, rows, columns, terms, sums);
  if constexpr (has_runs<W, 8, L, R>())
    if (is_in_runs<W, 8>(left, right, terms)) return multiply_by_runs<W, 8>(left, right, rows, columns, terms, sums);
  // Few terms do not pay for tensor maps.
  if (terms >= 256 && is_mappable<W>(left) && is_mappable<W>(right)) {
    if constexpr (__is_same(typename L::value_type, typename W::element) && __is_same(typename R::value_type, typename W::element))
      multiply_by_copies<W>(left, right, rows, columns, terms, sums);
  } else {
    multiply_by_threads<W>(left, right, rows, columns, terms, sums);
  }
}

// Whether a warpgroup's sums, as elements E, can be stored 16 bytes at a time: four blocks of 8 columns of 2 bytes.
template <class W, class E> constexpr bool has_wide_rows = sizeof(E) == 2 && W::width % 32 == 0;

// Two lanes whose numbers differ in `bit` exchange values: the lower lane's `b` and the upper lane's `a`. All lanes call it.
METAL_FUNC void exchange(uint bit, uint &a, uint &b) {
  bool upper = __smelt_ptx_lane() & bit;
  uint taken = __smelt_ptx_exchange(upper ? a : b, bit);
  a = upper ? taken : a;
  b = upper ? b : taken;
}

// Stores a warpgroup's sums. `first`: where the first of them belongs, a multiple of 16 bytes; rows are `stride` elements apart, a
// multiple of 8. Four lanes hold pairs of the same row in four blocks of 8 columns; after the exchange each lane stores one block.
template <class W, class E, class T>
METAL_FUNC void store_wide_rows(T *first, long stride, const float (&sums)[W::sums]) {
  using Pair = metal::vec<E, 2>;
  uint lane = __smelt_ptx_lane();
  int row = W::row(0), column = (int)(lane & 3) * 8;
  // In a form that shows the alignment.
  ulong step = (ulong)(stride / 8) * 16, base = ((ulong)first & -16ul) + (ulong)row * step + (ulong)column * sizeof(E);
  _Pragma("clang loop unroll(full)") for (int at = 0; at < W::sums; at += 16)
    _Pragma("clang loop unroll(full)") for (int upper = 0; upper < 4; upper += 2) {
      uint words[4];
      _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++)
        words[i] = __builtin_bit_cast(uint, Pair((E)sums[at + i * 4 + upper], (E)sums[at + i * 4 + upper + 1]));
      // Of four lanes, lane i's word j becomes lane j's word i.
      exchange(1, words[0], words[1]), exchange(1, words[2], words[3]);
      exchange(2, words[0], words[2]), exchange(2, words[1], words[3]);
      ulong address = base + (ulong)(W::row(at + upper) - row) * step + (ulong)(W::column(at) - W::column(0)) * sizeof(E);
      store_pair(first, address, metal::vec<uint, 4>(words[0], words[1], words[2], words[3]));
    }
}

} // namespace __tensor_ops_detail
} // namespace tensor_ops
} // namespace mpp
