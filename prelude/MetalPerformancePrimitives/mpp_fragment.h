// Products of tiles on GPUs by the tensor cores of each simdgroup: 16 terms of fragments of 16 × 16 at a time. Operands
// may lie in memory or in slots.
//
// A lane of a fragment's row g (lane_row()) and four columns 4t … 4t + 3 (lane_column()) needs, of the left matrix, those
// four terms of the rows g and g + 8; of the right matrix, the same terms of the columns 2g and 2g + 1. Four terms of a
// row or column are a quad.
#pragma once

#include "MetalPerformancePrimitives/mpp_product.h"

namespace mpp {
namespace tensor_ops {
namespace __tensor_ops_detail {

// What the tensor cores multiply. none: floats, by fused multiply-adds; so are numbers that no other of them holds exactly.
enum class cores { none, halves, brains, tf32, bytes, ubytes };

template <class L, class R, bool Scaled> constexpr cores cores_of(bool relaxed) {
  constexpr kind l = kind_of<L>, r = kind_of<R>;
  constexpr bool small_left = is_byte(l) || is_nibble(l) || is_small_real(l);
  constexpr bool small_right = is_byte(r) || is_nibble(r) || is_small_real(r);
  if (is_whole(l, r)) return l == kind::int8 ? cores::bytes : cores::ubytes;
  if (!Scaled && (l == kind::real16 || small_left) && (r == kind::real16 || small_right)) return cores::halves;
  if ((l == kind::brain16 || small_left) && (r == kind::brain16 || small_right)) return cores::brains;
  return relaxed || (l != kind::real32 && r != kind::real32) ? cores::tf32 : cores::none;
}

template <cores Cores> struct quad {
  static constexpr int words = Cores == cores::halves || Cores == cores::brains ? 2 : Cores == cores::tf32 ? 4 : 1;
  uint word[words];
};

// Elements of 16 bits that the cores take as they are.
template <cores Cores, class V>
inline constexpr bool is_own = (Cores == cores::halves && __is_same(V, half)) || (Cores == cores::brains && __is_same(V, bfloat));
template <class V> METAL_FUNC uint pair_of(V low, V high) {
  return (uint)__builtin_bit_cast(ushort, low) | (uint)__builtin_bit_cast(ushort, high) << 16;
}

// From four numbers.
template <cores Cores, class V> METAL_FUNC quad<Cores> quad_of(V a, V b, V c, V d) {
  if constexpr (Cores == cores::halves)
    return {{pair_of((half)a, (half)b), pair_of((half)c, (half)d)}};
  else if constexpr (Cores == cores::brains)
    return {{pair_of((bfloat)a, (bfloat)b), pair_of((bfloat)c, (bfloat)d)}};
  else if constexpr (Cores == cores::tf32)
    return {{__smelt_fragment_tf32((float)a), __smelt_fragment_tf32((float)b), __smelt_fragment_tf32((float)c), __smelt_fragment_tf32((float)d)}};
  else
    return {{((uint)(int)a & 255) | ((uint)(int)b & 255) << 8 | ((uint)(int)c & 255) << 16 | (uint)(int)d << 24}};
}

// Adds the product of a fragment of the left matrix (quads of the rows g and g + 8) and of the right one (of the columns 2g
// and 2g + 1) to the sums in a fragment's slots: the rows g and g + 8, if it is that tall.
template <cores Cores, bool Tall, class Sum>
METAL_FUNC void add_product(const quad<Cores> &upper, const quad<Cores> &lower, const quad<Cores> &column, Sum *sums) {
  constexpr int second = Tall ? 4 : 0;
  using Sums = metal::conditional_t<__is_same(Sum, int), __smelt_int4, __smelt_float4>;
  Sums all = {sums[0], sums[2], Tall ? sums[second] : (Sum)0, Tall ? sums[second + 2] : (Sum)0};
  if constexpr (Cores == cores::halves)
    all = __smelt_fragment_product_half(upper.word[0], lower.word[0], upper.word[1], lower.word[1], column.word[0], column.word[1], all);
  else if constexpr (Cores == cores::brains)
    all = __smelt_fragment_product_bfloat(upper.word[0], lower.word[0], upper.word[1], lower.word[1], column.word[0], column.word[1], all);
  else if constexpr (Cores == cores::bytes)
    all = __smelt_fragment_product_bytes(upper.word[0], lower.word[0], column.word[0], all);
  else if constexpr (Cores == cores::ubytes)
    all = __smelt_fragment_product_ubytes(upper.word[0], lower.word[0], column.word[0], all);
  else
    _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i += 2)
      all = __smelt_fragment_product_tf32(upper.word[i], lower.word[i], upper.word[i + 1], lower.word[i + 1], column.word[i], column.word[i + 1], all);
  sums[0] = all[0], sums[2] = all[1];
  if constexpr (Tall) sums[second] = all[2], sums[second + 2] = all[3];
}

// ---- Operands in memory. A line is a row of the left matrix or a column of the right one; `Line` is the dimension from one
// to the next.

// What is loaded at once, at an address in the memory of `like`.
template <class V, class T> METAL_FUNC V load_at(const __smelt_device T *, ulong address) { return *(const __smelt_device V *)address; }
template <class V, class T> METAL_FUNC V load_at(const __smelt_threadgroup T *, ulong address) {
  return *(const __smelt_threadgroup V *)address;
}
template <class V, class T> METAL_FUNC V load_at(const __attribute__((opencl_global_host)) T *, ulong address) {
  return *(const __attribute__((opencl_global_host)) V *)address;
}

template <int Bytes> struct word_of_bytes {};
template <> struct word_of_bytes<2> { using type = ushort; };
template <> struct word_of_bytes<4> { using type = uint; };
template <> struct word_of_bytes<8> { using type = metal::uint2; };
template <> struct word_of_bytes<16> { using type = metal::uint4; };

// Whether several elements of a tensor may be loaded at once.
template <class T> constexpr bool can_load() {
  if constexpr (is_memory<T>) {
    if constexpr (!T::__packed && !T::__scaled && is_shared<typename T::data_handle_type>) return sizeof(typename T::value_type) <= 4;
  }
  return false;
}

// Whether `count` neighbours in dimension `d` may be loaded at once from each multiple of `count` on.
template <class T> METAL_FUNC bool is_aligned(const T &memory, int d, int count) {
  if constexpr (can_load<T>()) {
    ulong bytes = sizeof(typename T::value_type) * (ulong)count, last = bytes - 1;
    return memory.__strides[d] == 1 && ((ulong)memory.__data & last) == 0 &&
           ((ulong)memory.__strides[1 - d] * sizeof(typename T::value_type) & last) == 0;
  } else {
    return false;
  }
}

struct operand_bounds {
  long lines, terms;
};

// What lies outside counts as 0. Without a branch: it loads the nearest element inside, of which there is one.
template <class V, bool Checked, int Line, class T>
METAL_FUNC V element_inside(const T &memory, long line, long term, const operand_bounds &bounds) {
  bool inside = !Checked || (line < bounds.lines && term < bounds.terms);
  if constexpr (Checked) {
    line = line < bounds.lines ? line : bounds.lines - 1;
    term = term < bounds.terms ? term : bounds.terms - 1;
  }
  long x = Line == 0 ? line : term, y = Line == 0 ? term : line;
  V value;
  if constexpr (__is_same(V, float))
    value = element(memory, x, y);
  else
    value = memory.__load(memory.__offset(metal::array<long, 2>{x, y}));
  return inside ? value : (V)0;
}

// Element by element.
template <cores Cores, int Line, bool Checked, class T>
METAL_FUNC quad<Cores> quad_by_elements(const T &memory, long line, long term, const operand_bounds &bounds) {
  using own = metal::conditional_t<is_own<Cores, typename T::value_type> && !T::__scaled, typename T::value_type, float>;
  own v[4];
  _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++) v[i] = element_inside<own, Checked, Line>(memory, line, term + i, bounds);
  return quad_of<Cores>(v[0], v[1], v[2], v[3]);
}

// Of neighbours, of aligned memory.
template <cores Cores, int Line, class T> METAL_FUNC quad<Cores> quad_at_once(const T &memory, long line, long term) {
  using value = typename T::value_type;
  using word = typename word_of_bytes<sizeof(value) * 4>::type;
  ulong address = (ulong)memory.__data + (ulong)(line * memory.__strides[Line] + term) * sizeof(value);
  word w = load_at<word>(memory.__data, address);
  if constexpr (is_own<Cores, value>) {
    return {{w[0], w[1]}};
  } else if constexpr (sizeof(value) == 1 && (Cores == cores::bytes || Cores == cores::ubytes)) {
    return {{w}};
  } else {
    struct four {
      value v[4];
    } all = __builtin_bit_cast(four, w);
    return quad_of<Cores>((float)all.v[0], (float)all.v[1], (float)all.v[2], (float)all.v[3]);
  }
}

// Of two neighbouring lines, which follow each other in aligned memory: four loads of both.
template <cores Cores, int Line, class T>
METAL_FUNC void quads_across(const T &memory, long line, long term, quad<Cores> (&quads)[2]) {
  using value = typename T::value_type;
  using word = typename word_of_bytes<sizeof(value) * 2>::type;
  struct two {
    value v[2];
  } all[4];
  ulong address = (ulong)memory.__data + (ulong)(term * memory.__strides[1 - Line] + line) * sizeof(value);
  ulong step = (ulong)memory.__strides[1 - Line] * sizeof(value);
  _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++)
    all[i] = __builtin_bit_cast(two, load_at<word>(memory.__data, address + (ulong)i * step));
  _Pragma("clang loop unroll(full)") for (int side = 0; side < 2; side++) {
    if constexpr (is_own<Cores, value>)
      quads[side] = quad_of<Cores>(all[0].v[side], all[1].v[side], all[2].v[side], all[3].v[side]);
    else
      quads[side] = quad_of<Cores>((float)all[0].v[side], (float)all[1].v[side], (float)all[2].v[side], (float)all[3].v[side]);
  }
}

// ---- Operands in slots.

// The row `upper` of the lane's fragment, whose columns are terms; 0 from `terms` on.
template <cores Cores, class C> METAL_FUNC quad<Cores> own_quad(const C &tensor, int fragment, int upper, int terms) {
  constexpr int slots = C::layout::in_fragment;
  typename C::__slot_type v[4];
  _Pragma("clang loop unroll(full)") for (int i = 0; i < 4; i++) {
    bool inside = terms >= 16 || lane_column() + i < terms;
    v[i] = inside ? tensor.__slots[fragment * slots + upper * 4 + i] : (typename C::__slot_type)0;
  }
  return quad_of<Cores>(v[0], v[1], v[2], v[3]);
}

// A word of another row of the same four columns.
METAL_FUNC uint from_row(uint word, uint row) { return __smelt_simd_shuffle_i32(word, lane_of(row & 7, (uint)lane_column())); }

// Of a right matrix whose rows are terms and whose columns lie in slots: the quads of the columns 2g and 2g + 1. In two
// rounds the lanes get their row's elements of two of the columns 4t … 4t + 3, such that transposing 8 × 8 pairs gives each
// its own four terms.
template <cores Cores, class C> METAL_FUNC void quads_of_rows(const C &tensor, int fragment, int terms, int columns, quad<Cores> (&quads)[2]) {
  constexpr int slots = C::layout::in_fragment;
  constexpr bool tall = C::layout::tall == 16;
  using value = typename C::__slot_type;
  uint g = (uint)lane_row(), row = (g & 1) | (g << 1 & 4); // 0 1 4 5 0 1 4 5
  bool sends_upper = (g & 2) != 0, upper_half = g >= 4;
  _Pragma("clang loop unroll(full)") for (int side = 0; side < 2; side++) {
    uint word[2];
    _Pragma("clang loop unroll(full)") for (int u = 0; u < 2; u++) {
      value a = 0, b = 0;
      if (u == 0 || tall) {
        bool inside = terms >= 16 || lane_row() + 8 * u < terms;
        int at = fragment * slots + (u && tall ? 4 : 0) + side;
        a = inside && (columns >= 16 || lane_column() + side < columns) ? tensor.__slots[at] : (value)0;
        b = inside && (columns >= 16 || lane_column() + side + 2 < columns) ? tensor.__slots[at + 2] : (value)0;
      }
      if constexpr (Cores == cores::halves)
        word[u] = pair_of((half)a, (half)b);
      else
        word[u] = pair_of((bfloat)a, (bfloat)b);
    }
    // Lanes of rows 2 3 6 7 send what the others do in the other round.
    uint first = from_row(sends_upper ? word[1] : word[0], upper_half ? row + 2 : row);
    uint second = from_row(sends_upper ? word[0] : word[1], upper_half ? row : row + 2);
    quads[side] = {{__smelt_fragment_transposed(upper_half ? second : first), __smelt_fragment_transposed(upper_half ? first : second)}};
  }
}

// Of a right matrix whose columns are rows here, and whose terms lie in slots.
template <cores Cores, class C> METAL_FUNC void quads_of_columns(const C &tensor, int fragment, int terms, int columns, quad<Cores> (&quads)[2]) {
  constexpr bool tall = C::layout::tall == 16;
  uint g = (uint)lane_row();
  quad<Cores> own[2] = {own_quad<Cores>(tensor, fragment, 0, terms), {}};
  if constexpr (tall) own[1] = own_quad<Cores>(tensor, fragment, 1, terms);
  // Columns 2g and 2g + 1 are the rows of that number: those of the lower half lie in the second quads.
  _Pragma("clang loop unroll(full)") for (int w = 0; w < quad<Cores>::words; w++) {
    bool odd = g & 1, lower = g >= 4;
    uint first = from_row(odd ? own[1].word[w] : own[0].word[w], lower ? 2 * g + 1 : 2 * g);
    uint second = from_row(odd ? own[0].word[w] : own[1].word[w], lower ? 2 * g : 2 * g + 1);
    quads[0].word[w] = lower ? second : first;
    quads[1].word[w] = lower ? first : second;
  }
  if (columns < 16)
    _Pragma("clang loop unroll(full)") for (int side = 0; side < 2; side++)
      if ((int)(2 * g) + side >= columns) quads[side] = {};
}

// ---- Products.

template <class Tile, cores Cores, bool TransposeLeft, bool TransposeRight, int K, class L, class R> struct fragment_product {
  static constexpr int down = Tile::own_down, across = Tile::own_across, halves = Tile::tall / 8;
  static constexpr bool tall = halves == 2, left_held = is_cooperative<L>, right_held = is_cooperative<R>;
  static constexpr bool fused = Cores == cores::none;
  static constexpr int left_line = TransposeLeft ? 0 : 1, right_line = TransposeRight ? 1 : 0;
  static constexpr int held_blocks = up(K, 16);
  using sum = sum_t<typename L::value_type, typename R::value_type>;

  METAL_FUNC static int row(int i, int upper) { return Tile::first_row(i) + lane_row() + upper * 8; }
  METAL_FUNC static int column(int j) { return Tile::first_column(j); }

  // ---- By tensor cores: `Fast` from memory that is whole and aligned.

  template <bool Fast> METAL_FUNC static quad<Cores> left_quad(const L &left, int i, int upper, int block, const operand_bounds &bounds) {
    if constexpr (left_held) {
      using layout = typename L::layout;
      if constexpr (!TransposeLeft) {
        return own_quad<Cores>(left, i * layout::across + block, upper, K - block * 16);
      } else {
        float v[4];
        _Pragma("clang loop unroll(full)") for (int e = 0; e < 4; e++) {
          int term = lane_column() + e;
          v[e] = fetch<7>(left, block * layout::across + i * Tile::tall / 16, (uint)term, (uint)(i * Tile::tall + lane_row() + upper * 8) & 15);
          v[e] = K % 16 == 0 || term + block * 16 < K ? v[e] : 0;
        }
        return quad_of<Cores>(v[0], v[1], v[2], v[3]);
      }
    } else {
      long term = (long)block * 16 + lane_column();
      if constexpr (Fast && !TransposeLeft) return quad_at_once<Cores, left_line>(left, row(i, upper), term);
      return quad_by_elements<Cores, left_line, !Fast>(left, row(i, upper), term, bounds);
    }
  }
  template <bool Fast> METAL_FUNC static void right_quads(const R &right, int j, int block, const operand_bounds &bounds, quad<Cores> (&quads)[2]) {
    constexpr bool pairs = Cores == cores::halves || Cores == cores::brains;
    if constexpr (right_held) {
      using layout = typename R::layout;
      int terms = K - block * 16, columns = Tile::columns - j * 16;
      if constexpr (TransposeRight) {
        quads_of_columns<Cores>(right, j * (layout::tall == 16 ? 1 : 0) * layout::across + block, terms, columns, quads);
      } else {
        if constexpr (pairs)
          if (__smelt_gpu_target() >= 900) return quads_of_rows<Cores>(right, block * layout::across + j, terms, columns, quads);
        _Pragma("clang loop unroll(full)") for (int side = 0; side < 2; side++) {
          float v[4];
          _Pragma("clang loop unroll(full)") for (int e = 0; e < 4; e++) {
            int term = lane_column() + e, at = 2 * lane_row() + side;
            v[e] = fetch<7>(right, block * layout::across + j, (uint)term, (uint)at);
            v[e] = term < terms && at < columns ? v[e] : 0;
          }
          quads[side] = quad_of<Cores>(v[0], v[1], v[2], v[3]);
        }
      }
    } else {
      long term = (long)block * 16 + lane_column();
      int line = column(j) + 2 * lane_row();
      if constexpr (Fast && !TransposeRight) return quads_across<Cores, right_line>(right, line, term, quads);
      _Pragma("clang loop unroll(full)") for (int side = 0; side < 2; side++) {
        if constexpr (Fast)
          quads[side] = quad_at_once<Cores, right_line>(right, line + side, term);
        else
          quads[side] = quad_by_elements<Cores, right_line, true>(right, line + side, term, bounds);
      }
    }
  }
  template <bool Fast>
  METAL_FUNC static void add_block(const L &left, const R &right, int block, const operand_bounds &rows, const operand_bounds &columns,
                                   sum (&sums)[Tile::capacity]) {
    quad<Cores> a[down * 2] = {};
    _Pragma("clang loop unroll(full)") for (int i = 0; i < down * halves; i++)
      a[i / halves * 2 + i % halves] = left_quad<Fast>(left, i / halves, i % halves, block, rows);
    _Pragma("clang loop unroll(full)") for (int j = 0; j < across; j++) {
      quad<Cores> b[2];
      right_quads<Fast>(right, j, block, columns, b);
      _Pragma("clang loop unroll(full)") for (int i = 0; i < down; i++)
        _Pragma("clang loop unroll(full)") for (int side = 0; side < 2; side++)
          add_product<Cores, tall>(a[2 * i], a[2 * i + 1], b[side], sums + (i * across + j) * Tile::in_fragment + side);
    }
  }

  // ---- By fused multiply-adds, term after term: a lane computes the elements of its own slots.

  // `Bits` is 0 where k is a constant, otherwise -1.
  template <int Bits> METAL_FUNC static float left_term(const L &left, int i, int upper, int block, int k, const operand_bounds &bounds) {
    if constexpr (left_held) {
      using layout = typename L::layout;
      uint line = (uint)(i * Tile::tall + lane_row() + upper * 8);
      if constexpr (TransposeLeft)
        return fetch<3 | (4 & Bits)>(left, block * layout::across + i * Tile::tall / 16, (uint)k, line & 15);
      else
        return fetch<3 & Bits>(left, i * layout::across + block, line & (Tile::tall - 1), (uint)k);
    } else {
      return element_inside<float, true, left_line>(left, row(i, upper), (long)block * 16 + k, bounds);
    }
  }
  template <int Bits> METAL_FUNC static float right_term(const R &right, int j, int c, int block, int k, const operand_bounds &bounds) {
    uint line = (uint)(lane_column() + c);
    if constexpr (right_held) {
      using layout = typename R::layout;
      if constexpr (!TransposeRight)
        return fetch<4 & Bits>(right, block * layout::across + j, (uint)k, line);
      else if constexpr (layout::tall == 16)
        return fetch<4 | (3 & Bits)>(right, j * layout::across + block, line, (uint)k);
      else
        return fetch<3 & Bits>(right, block, line & 7, (uint)k);
    } else {
      return element_inside<float, true, right_line>(right, column(j) + (int)line, (long)block * 16 + k, bounds);
    }
  }
  // Four terms from `k` on, of memory that is whole and aligned.
  METAL_FUNC static void left_four(const L &left, int line, long term, float (&v)[4]) {
    if constexpr (!TransposeLeft) {
      four_at_once(left, line * left.__strides[1] + term, v);
    } else {
      _Pragma("clang loop unroll(full)") for (int e = 0; e < 4; e++) v[e] = element_inside<float, false, left_line>(left, line, term + e, {});
    }
  }
  template <class T> METAL_FUNC static void four_at_once(const T &memory, long offset, float (&v)[4]) {
    using value = typename T::value_type;
    using word = typename word_of_bytes<sizeof(value) * 4>::type;
    struct four {
      value v[4];
    } all = __builtin_bit_cast(four, load_at<word>(memory.__data, (ulong)memory.__data + (ulong)offset * sizeof(value)));
    _Pragma("clang loop unroll(full)") for (int e = 0; e < 4; e++) v[e] = (float)all.v[e];
  }
  METAL_FUNC static void fuse_four(const L &left, const R &right, int block, int k, sum (&sums)[Tile::capacity]) {
    float a[down * halves][4], b[across][4][4]; // b: [term][column]
    _Pragma("clang loop unroll(full)") for (int i = 0; i < down * halves; i++) {
      if constexpr (!left_held)
        left_four(left, row(i / halves, i % halves), (long)block * 16 + k, a[i]);
      else
        _Pragma("clang loop unroll(full)") for (int e = 0; e < 4; e++) a[i][e] = left_term<0>(left, i / halves, i % halves, block, k + e, {});
    }
    _Pragma("clang loop unroll(full)") for (int j = 0; j < across; j++)
      _Pragma("clang loop unroll(full)") for (int e = 0; e < 4; e++) {
        if constexpr (!right_held) {
          float v[4];
          long term = (long)block * 16 + k, line = column(j) + lane_column();
          four_at_once(right, TransposeRight ? (line + e) * right.__strides[1] + term : (term + e) * right.__strides[1] + line, v);
          _Pragma("clang loop unroll(full)") for (int n = 0; n < 4; n++) b[j][TransposeRight ? n : e][TransposeRight ? e : n] = v[n];
        } else {
          _Pragma("clang loop unroll(full)") for (int c = 0; c < 4; c++) b[j][e][c] = right_term<0>(right, j, c, block, k + e, {});
        }
      }
    _Pragma("clang loop unroll(full)") for (int e = 0; e < 4; e++)
      _Pragma("clang loop unroll(full)") for (int slot = 0; slot < Tile::capacity; slot++) {
        int fragment = slot / Tile::in_fragment, upper = slot % Tile::in_fragment >> 2;
        sums[slot] = metal::fma(a[fragment / across * halves + upper][e], b[fragment % across][e][slot & 3], sums[slot]);
      }
  }
  // One term, of any memory.
  METAL_FUNC static void fuse_one(const L &left, const R &right, int block, int k, const operand_bounds &rows, const operand_bounds &columns,
                                  sum (&sums)[Tile::capacity]) {
    float a[down * halves];
    _Pragma("clang loop unroll(full)") for (int i = 0; i < down * halves; i++) a[i] = left_term<-1>(left, i / halves, i % halves, block, k, rows);
    _Pragma("clang loop unroll(full)") for (int j = 0; j < across; j++)
      _Pragma("clang loop unroll(full)") for (int c = 0; c < 4; c++) {
        float b = right_term<-1>(right, j, c, block, k, columns);
        _Pragma("clang loop unroll(full)") for (int i = 0; i < down * halves; i++) {
          int slot = (i / halves * across + j) * Tile::in_fragment + i % halves * 4 + c;
          sums[slot] = metal::fma(a[i], b, sums[slot]);
        }
      }
  }

  template <bool Fast>
  METAL_FUNC static void add(const L &left, const R &right, int block, const operand_bounds &rows, const operand_bounds &columns,
                             sum (&sums)[Tile::capacity]) {
    if constexpr (!fused) {
      add_block<Fast>(left, right, block, rows, columns, sums);
    } else if constexpr (!Fast) {
      int most = left_held || right_held ? metal::min(K - block * 16, 16) : 16;
      _Pragma("clang loop unroll(disable)") for (int k = 0; k < most; k++) fuse_one(left, right, block, k, rows, columns, sums);
    } else if constexpr (left_held || right_held) {
      _Pragma("clang loop unroll(full)") for (int k = 0; k < 16; k += 4)
        if (block * 16 + k < K) fuse_four(left, right, block, k, sums);
    } else {
      _Pragma("clang loop unroll(disable)") for (int k = 0; k < 16; k += 4) fuse_four(left, right, block, k, sums);
    }
  }

  // Adds `terms` terms. What lies outside of the operands' lines and terms counts as 0.
  METAL_FUNC static void run(const L &left, const R &right, long lines_left, long lines_right, long terms, sum (&sums)[Tile::capacity]) {
    operand_bounds rows = {lines_left, terms}, columns = {lines_right, terms};
    if (lines_left <= 0 || lines_right <= 0 || terms <= 0) return;
    bool whole = lines_left >= Tile::down * Tile::tall && lines_right >= Tile::across * 16 && Tile::down % Tile::groups_down == 0 &&
                 Tile::across % Tile::groups_across == 0;
    constexpr int together = fused ? 4 : TransposeRight ? 4 : 2;
    if constexpr (!left_held) whole = whole && (TransposeLeft || is_aligned(left, 0, 4));
    if constexpr (!right_held) whole = whole && is_aligned(right, TransposeRight ? 0 : 0, together);
    constexpr bool can_be_fast = (left_held || can_load<L>()) && (right_held || can_load<R>());
    int blocks = (int)((terms + 15) / 16), fast = can_be_fast && whole ? (int)(terms / 16) : 0, block = 0;
    if constexpr (left_held || right_held) {
      constexpr int most = held_blocks;
      if (can_be_fast && whole && terms >= K && K % 16 == 0) {
        if constexpr (can_be_fast)
          _Pragma("clang loop unroll(full)") for (int b = 0; b < most; b++) add<true>(left, right, b, rows, columns, sums);
      } else {
        _Pragma("clang loop unroll(full)") for (int b = 0; b < most; b++) add<false>(left, right, b, rows, columns, sums);
      }
    } else {
      if constexpr (can_be_fast) {
        constexpr int known = K % 16 == 0 && K / 16 * across * down <= 64 ? K / 16 : 0;
        if (known > 1 && fast == known)
          _Pragma("clang loop unroll(full)") for (; block < known; block++) add<true>(left, right, block, rows, columns, sums);
        else
          _Pragma("clang loop unroll(disable)") for (; block < fast; block++) add<true>(left, right, block, rows, columns, sums);
      }
      _Pragma("clang loop unroll(disable)") for (; block < blocks; block++) add<false>(left, right, block, rows, columns, sums);
    }
  }
};

} // namespace __tensor_ops_detail
} // namespace tensor_ops
} // namespace mpp
