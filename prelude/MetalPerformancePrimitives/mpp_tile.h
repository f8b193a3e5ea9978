// Products of tiles on CPUs: one call of the engine computes a whole product (src/abi/tile.h lists the words).
#pragma once

#include "MetalPerformancePrimitives/mpp_layout.h"
#include "MetalPerformancePrimitives/mpp_types.h"

namespace mpp {
namespace tensor_ops {
namespace __tensor_ops_detail {

// Memory that all threads see at the same address.
template <class P> inline constexpr bool is_shared = false;
template <class T> inline constexpr bool is_shared<__smelt_device T *> = true;
template <class T> inline constexpr bool is_shared<__smelt_threadgroup T *> = true;
template <class T> inline constexpr bool is_shared<__attribute__((opencl_global_host)) T *> = true;

// An operand: its lines are the rows of the left matrix, or the columns of the right one.
struct tile_operand {
  ulong data, line_stride, term_stride, first, lines, held, scales, scale_line, scale_term, line_block, term_block;
};

// In memory, of the lines from `from` on, of `count`. `line` is the dimension from line to line.
template <class T> METAL_FUNC tile_operand operand_of(const T &memory, int line, long from, long count) {
  tile_operand o = {};
  int term = 1 - line;
  o.line_stride = (ulong)memory.__strides[line];
  o.term_stride = (ulong)memory.__strides[term];
  if constexpr (T::__packed) {
    o.data = (ulong)memory.__data;
    o.first = (ulong)(memory.__origin + from * memory.__strides[line]);
  } else {
    o.data = (ulong)(memory.__data + from * memory.__strides[line]);
  }
  o.lines = (ulong)(metal::min(count, (long)memory.get_extent(line)) - from);
  if constexpr (T::__scaled) {
    o.line_block = T::__plane::block_size(line);
    o.term_block = T::__plane::block_size(term);
    o.scale_line = line == 0 ? 1 : (ulong)memory.__scale_strides[1];
    o.scale_term = term == 0 ? 1 : (ulong)memory.__scale_strides[1];
    o.scales = (ulong)memory.__scales.__data + from / o.line_block * o.scale_line;
  }
  return o;
}

// ---- Tiles in slots lie, slot after slot of all lanes, in memory of the simdgroup's own.

template <int Which, class Word> METAL_FUNC __smelt_device Word *tile_slots() {
  return (__smelt_device Word *)(__smelt_tile_memory() + (ulong)__smelt_simdgroup() * __SMELT_TILE_BYTES +
                                 Which * 4 * __SMELT_TILE_MOST);
}
template <class Layout> inline constexpr bool fits_tile_slots = Layout::capacity * 32 <= __SMELT_TILE_MOST;
template <class Layout> constexpr ulong held_word() {
  return (ulong)Layout::own_down | (ulong)Layout::own_across << 16 | (ulong)Layout::tall << 32;
}
// The slots of large tensors are copied in loops: unrolled, they take long to compile, and gain nothing.
template <class C> inline constexpr bool is_unrolled = C::layout::capacity <= 64;
template <class Word, class C> METAL_FUNC void put_slots(const C &tensor, __smelt_device Word *slots) {
  if constexpr (is_unrolled<C>)
    _Pragma("clang loop unroll(full)") for (int slot = 0; slot < C::layout::capacity; slot++)
      slots[slot * 32 + (int)__smelt_lane()] = (Word)tensor.__slots[slot];
  else
    _Pragma("clang loop unroll_count(4)") for (int slot = 0; slot < C::layout::capacity; slot++)
      slots[slot * 32 + (int)__smelt_lane()] = (Word)tensor.__slots[slot];
}
template <class C, class Word> METAL_FUNC void take_slot(C &tensor, const __smelt_device Word *slots, int slot) {
  tensor.__slots[slot] = (typename C::__slot_type)(typename C::value_type)slots[slot * 32 + (int)__smelt_lane()];
}
template <class Word, class C> METAL_FUNC void take_slots(C &tensor, const __smelt_device Word *slots) {
  if constexpr (is_unrolled<C>)
    _Pragma("clang loop unroll(full)") for (int slot = 0; slot < C::layout::capacity; slot++) take_slot(tensor, slots, slot);
  else
    _Pragma("clang loop unroll_count(4)") for (int slot = 0; slot < C::layout::capacity; slot++) take_slot(tensor, slots, slot);
}

// A cooperative tensor, put at the slots. Its rows are lines, or its columns.
template <class Word, class C>
METAL_FUNC tile_operand operand_in_slots(const C &tensor, __smelt_device Word *slots, bool rows, long lines) {
  tile_operand o = {};
  put_slots(tensor, slots);
  o.data = (ulong)slots;
  o.held = held_word<typename C::layout>();
  o.line_stride = rows ? C::layout::own_across * 16 : 1;
  o.term_stride = rows ? 1 : C::layout::own_across * 16;
  o.lines = (ulong)lines;
  return o;
}

// The result, and which of its rows belong to the caller.
struct tile_result {
  ulong data, row_stride, column_stride, held, rows, columns, dealt_rows, dealt_step;
};

#ifdef __SMELT_RELAXED_MATH__
inline constexpr ulong tile_relaxed = 1ul << 25;
#else
inline constexpr ulong tile_relaxed = 0;
#endif
inline constexpr ulong tile_adds = 1ul << 24;

template <class L, class R, class D> constexpr ulong tile_form(bool adds) {
  return (ulong)kind_of<L> | (ulong)kind_of<R> << 8 | (ulong)kind_of<D> << 16 | (adds ? tile_adds : 0) | tile_relaxed;
}

METAL_FUNC void multiply_tile(ulong form, ulong terms, const tile_operand &l, const tile_operand &r, const tile_result &d) {
  __smelt_tile_product(form, d.rows, d.columns, terms, d.dealt_rows, d.dealt_step, d.data, d.row_stride, d.column_stride,
                       d.held, l.data, l.line_stride, l.term_stride, l.first, l.lines, l.held, l.scales, l.scale_line,
                       l.scale_term, l.line_block, l.term_block, r.data, r.line_stride, r.term_stride, r.first, r.lines,
                       r.held, r.scales, r.scale_line, r.scale_term, r.line_block, r.term_block);
}

} // namespace __tensor_ops_detail
} // namespace tensor_ops
} // namespace mpp
