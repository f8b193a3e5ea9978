// <MetalPerformancePrimitives/MPPTensorOpsMatMul2d.h>: products of matrices, of tiles of m × k and k × n elements.
//
// Every operand is a tensor in memory or a cooperative_tensor. What a tensor in memory does not have counts as 0 and is not
// written. Sums of real numbers are computed in float, in an order that depends only on k, and rounded once; sums of whole
// numbers are exact modulo 2 to the power of 32.
#pragma once

#include "MetalPerformancePrimitives/mpp_alike.h"
#include "MetalPerformancePrimitives/mpp_fragment.h"
#include "MetalPerformancePrimitives/mpp_warpgroup.h"

extern "C" void __smelt_unsupported_tensor_operations_by_a_part_of_the_threadgroup(void);

namespace mpp {
namespace tensor_ops {

struct matmul2d_descriptor {
  enum class mode { multiply, multiply_accumulate };
  int m, n, k;
  bool transpose_left, transpose_right, relaxed_precision;
  mode matmul_mode;
  // k: static_cast<int>(dynamic_extent), dynamic_length_v<int> or 0 stand for what the operands have.
  constexpr matmul2d_descriptor(int m, int n, int k = (int)metal::dynamic_extent, bool transpose_left = false,
                                bool transpose_right = false, bool relaxed_precision = false, mode matmul_mode = mode::multiply)
      : m(m), n(n), k(k), transpose_left(transpose_left), transpose_right(transpose_right),
        relaxed_precision(relaxed_precision), matmul_mode(matmul_mode) {}
};

template <matmul2d_descriptor Descriptor, typename Scope, class... Args> class matmul2d {
  template <class T> using __bare = metal::__value_t<T>;
  template <class T> using __element = typename __bare<T>::value_type;
  static_assert(Descriptor.m >= 1 && Descriptor.n >= 1, "matmul2d: m and n of the descriptor are at least 1");
  static_assert(metal::is_execution_thread_v<Scope> || metal::is_execution_simdgroups_v<Scope>,
                "matmul2d: the scope is execution_thread, execution_simdgroup or execution_simdgroups<N>");
  static constexpr bool __alone = metal::is_execution_thread_v<Scope>;
  static constexpr int __simdgroups = __alone ? 0 : (int)Scope::static_size;
  static constexpr bool __known_k = Descriptor.k > 0 && Descriptor.k != dynamic_length_v<int>;
  static constexpr int __m = Descriptor.m, __n = Descriptor.n, __k = __known_k ? Descriptor.k : 1;
  static constexpr bool __adds = Descriptor.matmul_mode == matmul2d_descriptor::mode::multiply_accumulate;
  using __result_tile = __tile<__m, __n, __simdgroups>;
  using __left_tile = metal::conditional_t<Descriptor.transpose_left, __tile<__k, __m, __simdgroups>, __tile<__m, __k, __simdgroups>>;
  using __right_tile = metal::conditional_t<Descriptor.transpose_right, __tile<__n, __k, __simdgroups>, __tile<__k, __n, __simdgroups>>;
  template <class C> using __matrix = metal::dextents<C, 2>;
  template <class C> using __vector = metal::dextents<C, 1>;

public:
  static constexpr matmul2d_descriptor descriptor = Descriptor;
  using scope = Scope;

  template <class L, class R, class E, class Coord = int, class... A>
  using cooperative_tensor_left_input_t = metal::cooperative_tensor<L, __matrix<Coord>, __left<__left_tile, L, R>>;
  template <class L, class R, class E, class Coord = int, class... A>
  using cooperative_tensor_right_input_t = metal::cooperative_tensor<R, __matrix<Coord>, __right<__right_tile, L, R>>;
  template <class L, class R, class E, class Coord = int, class... A>
  using cooperative_tensor_destination_t =
      metal::cooperative_tensor<E, __matrix<Coord>, __destination<__result_tile, __element<L>, __element<R>>>;
  template <class L, class R, class E, class Coord = int, class... A>
  using cooperative_tensor_row_reduction_destination_t =
      metal::cooperative_tensor<E, __vector<Coord>, __row_results<__destination<__result_tile, __element<L>, __element<R>>>>;
  template <class L, class R, class E, class Coord = int, class... A>
  using cooperative_tensor_column_reduction_destination_t =
      metal::cooperative_tensor<E, __vector<Coord>, __column_results<__destination<__result_tile, __element<L>, __element<R>>>>;

  template <class L, class R, class E, class Coord = int, class... A> METAL_FUNC auto get_destination_cooperative_tensor() const {
    __check_types<__element<L>, __element<R>, E>();
    return cooperative_tensor_destination_t<L, R, E, Coord>();
  }
  template <class L, class R, class E, class Coord = int, class... A>
  METAL_FUNC auto get_row_reduction_destination_cooperative_tensor() const {
    __check_single();
    return cooperative_tensor_row_reduction_destination_t<L, R, E, Coord>();
  }
  template <class L, class R, class E, class Coord = int, class... A>
  METAL_FUNC auto get_column_reduction_destination_cooperative_tensor() const {
    __check_single();
    return cooperative_tensor_column_reduction_destination_t<L, R, E, Coord>();
  }
  template <class L, class R, class E, class Coord = int, class... A> METAL_FUNC auto get_left_input_cooperative_tensor() const {
    __check_input<L, R, E>();
    return cooperative_tensor_left_input_t<L, R, E, Coord>();
  }
  template <class L, class R, class E, class Coord = int, class... A> METAL_FUNC auto get_right_input_cooperative_tensor() const {
    __check_input<L, R, E>();
    return cooperative_tensor_right_input_t<L, R, E, Coord>();
  }
  // A copy of another operation's destination.
  template <class L, class R, class E, class Coord = int, class... A, class T, class X, class S>
  METAL_FUNC auto get_left_input_cooperative_tensor(const metal::cooperative_tensor<T, X, S> &source) const {
    return __copy<cooperative_tensor_left_input_t<L, R, E, Coord>, L, R, E, L>(source);
  }
  template <class L, class R, class E, class Coord = int, class... A, class T, class X, class S>
  METAL_FUNC auto get_right_input_cooperative_tensor(const metal::cooperative_tensor<T, X, S> &source) const {
    return __copy<cooperative_tensor_right_input_t<L, R, E, Coord>, L, R, E, R>(source);
  }
  // Whether that copy may be had.
  template <class L, class R, class E, class T, class X, class S>
  METAL_FUNC bool is_compatible_as_left_input(const metal::cooperative_tensor<T, X, S> &) const {
    return __compatible<__left_tile, S, T, L>();
  }
  template <class L, class R, class E, class T, class X, class S>
  METAL_FUNC bool is_compatible_as_right_input(const metal::cooperative_tensor<T, X, S> &) const {
    return __compatible<__right_tile, S, T, R>();
  }

  template <class L, class R, class D, class... A> METAL_FUNC void run(L &&left, R &&right, D &&destination) const {
    using Left = __bare<L>;
    using Right = __bare<R>;
    using Result = __bare<D>;
    __check_operand<Left>();
    __check_operand<Right>();
    __check_operand<Result>();
    __check_types<__element<L>, __element<R>, __element<D>>();
    if constexpr (__tensor_ops_detail::is_cooperative<Result>)
      static_assert(__is_same(typename Result::layout, __destination<__result_tile, __element<L>, __element<R>>),
                    "matmul2d::run: the cooperative destination was made for other input types or by another operation");
    else
      static_assert(!Result::__packed && !Result::__scaled, "matmul2d::run: the destination cannot be of a packed format");
    static_assert((!__tensor_ops_detail::is_cooperative<Left> && !__tensor_ops_detail::is_cooperative<Right>) || __alone ||
                      (__simdgroups == 1 && __known_k),
                  "matmul2d::run: cooperative inputs require the scope execution_simdgroup and a static k");
    if constexpr (__alone)
      __run_alone(left, right, destination);
    else if constexpr (__is_tile<Left, Right, Result>) {
      if (__smelt_gpu_target() == 0)
        __run_tile(left, right, destination);
      else
        __run_together(left, right, destination);
    } else
      __run_together(left, right, destination);
  }

private:
  template <class T> static constexpr void __check_operand() {
    static_assert(__tensor_ops_detail::is_cooperative<T> || __tensor_ops_detail::is_memory<T>,
                  "matmul2d::run: an operand is neither a tensor nor a cooperative_tensor");
    if constexpr (__tensor_ops_detail::is_memory<T>)
      static_assert(T::get_rank() == 2, "matmul2d::run: a tensor has 2 dimensions");
  }
  template <class L, class R, class E> static constexpr void __check_types() {
    using namespace __tensor_ops_detail;
    static_assert(is_product(kind_of<L>, kind_of<R>, kind_of<E>),
                  "matmul2d: there is no product of these element types with this destination type");
  }
  static constexpr void __check_single() {
    static_assert(__simdgroups == 1, "matmul2d: reductions and cooperative inputs require the scope execution_simdgroup");
  }
  template <class L, class R, class E> static constexpr void __check_input() {
    static_assert(__simdgroups == 1 || __alone, "matmul2d: reductions and cooperative inputs require the scope execution_simdgroup");
    static_assert(__known_k, "matmul2d: cooperative inputs require a static k in the descriptor");
    __check_types<L, R, E>();
  }

  template <class Tile, class S, class T, class E> static constexpr bool __compatible() {
    if constexpr (requires { typename S::tile; })
      return __is_same(typename S::tile, Tile) && __is_same(T, E);
    else
      return false;
  }
  template <class Input, class L, class R, class E, class Own, class T, class X, class S>
  METAL_FUNC Input __copy(const metal::cooperative_tensor<T, X, S> &source) const {
    __check_input<L, R, E>();
    constexpr bool compatible = __compatible<metal::conditional_t<__is_same(Input, cooperative_tensor_left_input_t<L, R, E>), __left_tile, __right_tile>, S, T, Own>();
    Input input;
    // Kernels ask is_compatible_as_left_input when they run: the branch not taken must compile.
    if constexpr (compatible)
      _Pragma("clang loop unroll(full)") for (int slot = 0; slot < S::capacity; slot++) input.__slots[slot] = source.__slots[slot];
    return input;
  }

  // How many terms a sum has.
  template <class L, class R> METAL_FUNC static long __terms(const L &left, const R &right) {
    long k = __known_k ? __k : 0x7FFFFFFF;
    if constexpr (__tensor_ops_detail::is_memory<L>) k = metal::min(k, (long)left.get_extent(Descriptor.transpose_left ? 1 : 0));
    if constexpr (__tensor_ops_detail::is_memory<R>) k = metal::min(k, (long)right.get_extent(Descriptor.transpose_right ? 0 : 1));
    return k;
  }
  template <class L> METAL_FUNC static long __rows(const L &left) {
    if constexpr (__tensor_ops_detail::is_memory<L>)
      return metal::min((long)__m, (long)left.get_extent(Descriptor.transpose_left ? 0 : 1));
    else
      return __m;
  }
  template <class R> METAL_FUNC static long __columns(const R &right) {
    if constexpr (__tensor_ops_detail::is_memory<R>)
      return metal::min((long)__n, (long)right.get_extent(Descriptor.transpose_right ? 1 : 0));
    else
      return __n;
  }

#ifdef __SMELT_RELAXED_MATH__
  static constexpr bool __is_relaxed = true;
#else
  static constexpr bool __is_relaxed = Descriptor.relaxed_precision;
#endif
  template <class T> static constexpr bool __is_scaled() {
    if constexpr (__tensor_ops_detail::is_memory<T>)
      return T::__scaled;
    else
      return false;
  }

  // What operands in memory have of the tile.
  struct __bounds {
    long rows, columns, terms;
  };

  // ---- One thread.

  template <class L> METAL_FUNC static float __left_at(const L &left, int row, long k) {
    int x = Descriptor.transpose_left ? row : (int)k, y = Descriptor.transpose_left ? (int)k : row;
    if constexpr (__tensor_ops_detail::is_memory<L>)
      return __tensor_ops_detail::element(left, x, y);
    else
      return (float)left.__slots[y * L::layout::columns + x];
  }
  template <class R> METAL_FUNC static float __right_at(const R &right, long k, int column) {
    int x = Descriptor.transpose_right ? (int)k : column, y = Descriptor.transpose_right ? column : (int)k;
    if constexpr (__tensor_ops_detail::is_memory<R>)
      return __tensor_ops_detail::element(right, x, y);
    else
      return (float)right.__slots[y * R::layout::columns + x];
  }
  template <class L, class R, class D> METAL_FUNC static void __run_alone(const L &left, const R &right, D &destination) {
    using Sum = __tensor_ops_detail::sum_t<__element<L>, __element<R>>;
    long terms = __terms(left, right), rows = __rows(left), columns = __columns(right);
    for (int row = 0; row < __m; row++)
      for (int column = 0; column < __n; column++) {
        Sum sum = __before<Sum>(destination, row * __n + column);
        if (row < rows && column < columns)
          for (long k = 0; k < terms; k++) sum += (Sum)__left_at(left, row, k) * (Sum)__right_at(right, k, column);
        __write(destination, row * __n + column, sum);
      }
  }

  // ---- On CPUs: one thread has the engine compute the tile, or its simdgroup's part of a cooperative destination.

  template <class T> static constexpr bool __is_tile_operand() {
    if constexpr (__tensor_ops_detail::is_memory<T>)
      return __tensor_ops_detail::is_shared<typename T::data_handle_type>;
    else
      return __tensor_ops_detail::fits_tile_slots<typename T::layout>;
  }
  // Parts of a destination begin at multiples of 8 lines, which need not begin a block of scales.
  template <class T, int Line> static constexpr bool __is_divisible() {
    if constexpr (__tensor_ops_detail::is_memory<T>) {
      if constexpr (T::__scaled) return T::__plane::block_size(Line) == 1;
    }
    return true;
  }
  static constexpr int __left_line = Descriptor.transpose_left ? 0 : 1, __right_line = Descriptor.transpose_right ? 1 : 0;
  template <class L, class R, class D>
  static constexpr bool __is_tile = __is_tile_operand<L>() && __is_tile_operand<R>() && __is_tile_operand<D>() &&
                                    (__simdgroups == 1 || __tensor_ops_detail::is_memory<D> ||
                                     (__is_divisible<L, __left_line>() && __is_divisible<R, __right_line>()));

  template <class L, class R, class D> METAL_FUNC static void __run_tile(const L &left, const R &right, D &destination) {
    using namespace __tensor_ops_detail;
    using Sum = sum_t<__element<L>, __element<R>>;
    constexpr bool in_slots = is_cooperative<D>;
    tile_result result = {};
    long row = 0, column = 0;
    if constexpr (in_slots) {
      auto slots = tile_slots<2, Sum>();
      if constexpr (__adds) put_slots(destination, slots);
      row = __result_tile::first_row(0), column = __result_tile::first_column(0);
      result.data = (ulong)slots;
      result.held = held_word<__result_tile>();
      result.rows = __result_tile::own_down * __result_tile::tall;
      result.columns = result.row_stride = __result_tile::own_across * 16;
      result.column_stride = 1;
      if (__result_tile::groups_down > 1) {
        result.dealt_rows = __result_tile::tall;
        result.dealt_step = __result_tile::tall * __result_tile::groups_down;
      }
    } else {
      result.data = (ulong)destination.__data;
      result.row_stride = (ulong)destination.__strides[1];
      result.column_stride = (ulong)destination.__strides[0];
      result.rows = (ulong)metal::min((long)__m, (long)destination.get_extent(1));
      result.columns = (ulong)metal::min((long)__n, (long)destination.get_extent(0));
    }
    tile_operand l, r;
    if constexpr (is_cooperative<L>)
      l = operand_in_slots(left, tile_slots<0, Sum>(), !Descriptor.transpose_left, __m);
    else
      l = operand_of(left, __left_line, row, __m);
    if constexpr (is_cooperative<R>)
      r = operand_in_slots(right, tile_slots<1, Sum>(), Descriptor.transpose_right, __n);
    else
      r = operand_of(right, __right_line, column, __n);
    constexpr ulong form = tile_form<__element<L>, __element<R>, metal::conditional_t<in_slots, Sum, __element<D>>>(__adds);
    __smelt_simdgroup_barrier(0);
    if (__smelt_lane() == 0 && (in_slots || (int)__smelt_simdgroup() % __simdgroups == 0))
      multiply_tile(form, (ulong)__terms(left, right), l, r, result);
    __smelt_simdgroup_barrier(0);
    if constexpr (in_slots) take_slots(destination, tile_slots<2, Sum>());
  }

  // ---- Simdgroups.

  // Whether the slot's element exists in memory.
  template <class D> METAL_FUNC static bool __exists(const D &memory, int slot) {
    return __result_tile::valid(slot) && __result_tile::column(slot) < (long)memory.get_extent(0) &&
           __result_tile::row(slot) < (long)memory.get_extent(1);
  }
  template <class D> METAL_FUNC static long __at(const D &memory, int slot) {
    return memory.__offset(metal::array<long, 2>{__result_tile::column(slot), __result_tile::row(slot)});
  }
  // What a sum starts with.
  template <class Sum, class D> METAL_FUNC static Sum __before(const D &destination, int slot) {
    if constexpr (!__adds)
      return (Sum)0;
    else if constexpr (__tensor_ops_detail::is_cooperative<D>)
      return (Sum)destination.__slots[slot];
    else
      return __exists(destination, slot) ? (Sum)destination.__data[__at(destination, slot)] : (Sum)0;
  }
  template <class Sum, class D> METAL_FUNC static void __write(D &destination, int slot, Sum sum) {
    if constexpr (__tensor_ops_detail::is_cooperative<D>)
      destination.__slots[slot] = (__element<D>)sum;
    else if (__exists(destination, slot))
      destination.__data[__at(destination, slot)] = (__element<D>)sum;
  }

  // The lane's elements of the matrices that add_terms multiplies.
  template <bool Checked, class L>
  METAL_FUNC static float __left_element(const L &left, int i, int upper, int block, int pair, int odd, const __bounds &bounds) {
    using namespace __tensor_ops_detail;
    int row = __result_tile::first_row(i) + lane_row() + upper * 8, term = left_term(pair, odd);
    if constexpr (is_cooperative<L>) {
      using layout = typename L::layout;
      if constexpr (Descriptor.transpose_left) {
        float value = fetch<7>(left, block * layout::across + i * __result_tile::tall / 16, (uint)term, (uint)(i * __result_tile::tall + lane_row() + upper * 8) & 15);
        return term + block * 16 < __k ? value : 0;
      } else {
        float value = (float)left.__slots[(i * layout::across + block) * layout::in_fragment + upper * 4 + pair * 2 + odd];
        return __k % 16 == 0 || term + block * 16 < __k ? value : 0;
      }
    } else {
      long k = (long)block * 16 + term;
      bool inside = !Checked || (row < bounds.rows && k < bounds.terms);
      return inside ? (Descriptor.transpose_left ? element(left, row, k) : element(left, k, row)) : 0;
    }
  }
  template <bool Checked, class R>
  METAL_FUNC static float __right_element(const R &right, int j, int side, int block, int pair, int odd, const __bounds &bounds) {
    using namespace __tensor_ops_detail;
    int term = right_term(pair), inner = lane_column() + side * 2 + odd;
    if constexpr (is_cooperative<R>) {
      using layout = typename R::layout;
      float value;
      if constexpr (Descriptor.transpose_right && layout::tall == 16)
        value = fetch<7>(right, j * layout::across + block, (uint)inner, (uint)term);
      else if constexpr (Descriptor.transpose_right)
        value = fetch<3>(right, j * layout::across + block, (uint)inner & 7, (uint)term);
      else
        value = fetch<7>(right, block * layout::across + j, (uint)term, (uint)inner);
      return term + block * 16 < __k && j * 16 + inner < __n ? value : 0;
    } else {
      long k = (long)block * 16 + term;
      int column = __result_tile::first_column(j) + inner;
      bool inside = !Checked || (column < bounds.columns && k < bounds.terms);
      return inside ? (Descriptor.transpose_right ? element(right, k, column) : element(right, column, k)) : 0;
    }
  }

  // Adds the terms 16 block … 16 block + 15.
  template <bool Checked, class Sum, class L, class R>
  METAL_FUNC static void __add_terms(const L &left, const R &right, int block, const __bounds &bounds, Sum (&sums)[__result_tile::capacity]) {
    __tensor_ops_detail::add_terms<__result_tile>(
        [&](int i, int upper, int pair, int odd) __attribute__((always_inline)) {
          return __left_element<Checked>(left, i, upper, block, pair, odd, bounds);
        },
        [&](int j, int side, int pair, int odd) __attribute__((always_inline)) {
          return __right_element<Checked>(right, j, side, block, pair, odd, bounds);
        },
        sums);
  }

  // ---- Warpgroups.

  template <class L, class R>
  using __warpgroups = __tensor_ops_detail::warpgroups<__tensor_ops_detail::wgmma_kind<L, R>(), __m, __n, Descriptor.transpose_left,
                                                       Descriptor.transpose_right, __simdgroups>;
  template <class L, class R> static constexpr bool __may_be_by_warpgroups() {
    if constexpr (__tensor_ops_detail::is_memory<L> && __tensor_ops_detail::is_memory<R>)
      return __warpgroups<L, R>::possible;
    else
      return false;
  }
  template <class L, class R, class D>
  METAL_FUNC static void __run_by_warpgroups(const L &left, const R &right, D &destination, const __bounds &bounds) {
    using W = __warpgroups<L, R>;
    float sums[W::sums];
    if (bounds.rows > 0 && bounds.columns > 0 && bounds.terms > 0)
      __tensor_ops_detail::multiply_by_warpgroups<W, __is_relaxed>(left, right, (uint)bounds.rows, (uint)bounds.columns, (uint)bounds.terms, sums);
    else
      _Pragma("clang loop unroll(full)") for (int at = 0; at < W::sums; at++) sums[at] = 0;
    uint group = __smelt_thread_index() >> 7;
    int first_row = W::first_row(group), first_column = W::first_column(group);
    if constexpr (__tensor_ops_detail::is_cooperative<D>) {
      // Slots lie elsewhere: by way of staging memory, which the products have left. Sums of rows and columns beyond the
      // operands are undefined and become 0.
      __smelt_threadgroup float *all = (__smelt_threadgroup float *)__smelt_staging(W::bytes);
      _Pragma("clang loop unroll(full)") for (int at = 0; at < W::sums; at++) {
        int row = first_row + W::row(at), column = first_column + W::column(at);
        all[row * __n + column] = row < bounds.rows && column < bounds.columns ? sums[at] : 0;
      }
      __smelt_threadgroup_barrier(2, 0, "");
      _Pragma("clang loop unroll(full)") for (int slot = 0; slot < __result_tile::capacity; slot++)
        if (__result_tile::valid(slot)) {
          float sum = all[__result_tile::row(slot) * __n + __result_tile::column(slot)];
          destination.__slots[slot] = (__element<D>)(__adds ? (float)destination.__slots[slot] + sum : sum);
        }
    } else {
      using Pair = metal::vec<__element<D>, 2>;
      long rows = destination.get_extent(1), columns = destination.get_extent(0), stride = destination.__strides[1];
      if constexpr (__tensor_ops_detail::has_wide_rows<W, __element<D>> && !__adds) {
        uint warpgroup = __smelt_ptx_broadcast(group);
        auto begin = destination.__data + destination.__offset(metal::array<long, 2>{W::first_column(warpgroup), W::first_row(warpgroup)});
        if (rows >= __m && columns >= __n && destination.__strides[0] == 1 && stride % 8 == 0 && (ulong)destination.__data % 16 == 0)
          return __tensor_ops_detail::store_wide_rows<W, __element<D>>(begin, stride, sums);
      }
      auto first = destination.__data + destination.__offset(metal::array<long, 2>{first_column + W::column(0), first_row + W::row(0)});
      bool pairs = destination.__strides[0] == 1 && stride % 2 == 0 && (ulong)first % sizeof(Pair) == 0;
      if (!__adds && pairs && rows >= __m && columns >= __n) {
        // In a form that shows the alignment.
        ulong base = (ulong)first & -sizeof(Pair), step = (ulong)(stride / 2) * sizeof(Pair);
        _Pragma("clang loop unroll(full)") for (int at = 0; at < W::sums; at += 2) {
          int row = W::row(at) - W::row(0), column = W::column(at) - W::column(0);
          __tensor_ops_detail::store_pair(first, base + (ulong)row * step + (ulong)(column / 2) * sizeof(Pair),
                                          Pair((__element<D>)sums[at], (__element<D>)sums[at + 1]));
        }
        return;
      }
      _Pragma("clang loop unroll(full)") for (int at = 0; at < W::sums; at++) {
        int row = first_row + W::row(at), column = first_column + W::column(at);
        if (row < rows && column < columns) {
          auto &element = destination.__data[destination.__offset(metal::array<long, 2>{column, row})];
          element = (__element<D>)(__adds ? (float)element + sums[at] : sums[at]);
        }
      }
    }
  }

  // ---- Simdgroups that a whole threadgroup executes alike.

  template <__tensor_ops_detail::cores Cores, class L, class R>
  using __alike = __tensor_ops_detail::alike_product<__result_tile, Cores, Descriptor.transpose_left, Descriptor.transpose_right, __k,
                                                     __known_k, L, R>;
  template <__tensor_ops_detail::cores Cores, class L, class R> static constexpr bool __may_be_alike() {
    using namespace __tensor_ops_detail;
    if constexpr (__simdgroups == 1 && (Cores == cores::halves || Cores == cores::brains))
      return __alike<Cores, L, R>::possible;
    else
      return false;
  }
  template <__tensor_ops_detail::cores Cores, class L, class R>
  METAL_FUNC static bool __run_alike(const L &left, const R &right, float (&sums)[__result_tile::capacity]) {
    using product = __alike<Cores, L, R>;
    long columns = __columns(right), terms = __terms(left, right);
    // All threads must agree on the extent, too: it decides whether rows after the tile are copied ahead.
    uint alike = __smelt_alike(product::bytes, (ulong)right.__data, (ulong)right.__strides[0], (ulong)right.__strides[1],
                               (ulong)columns << 32 | (ulong)terms, (ulong)right.get_extent(1));
    if (alike) product::template run<__adds>(left, right, __rows(left), columns, terms, alike, sums);
    return alike;
  }

  template <class L, class R, class D> METAL_FUNC static void __run_together(const L &left, const R &right, D &destination) {
    using Sum = __tensor_ops_detail::sum_t<__element<L>, __element<R>>;
    if constexpr (__may_be_by_warpgroups<L, R>())
      if (__smelt_gpu_target() == 901) {
        __bounds bounds = {__rows(left), __columns(right), __terms(left, right)};
        if (__smelt_simdgroup_count() != __simdgroups) __smelt_unsupported_tensor_operations_by_a_part_of_the_threadgroup();
        return __run_by_warpgroups(left, right, destination, bounds);
      }
    constexpr bool in_registers = __tensor_ops_detail::is_cooperative<L> || __tensor_ops_detail::is_cooperative<R>;
    Sum sums[__result_tile::capacity];
    _Pragma("clang loop unroll(full)") for (int slot = 0; slot < __result_tile::capacity; slot++)
      sums[slot] = __before<Sum>(destination, slot);
    if (__smelt_whole_warps()) {
      constexpr auto cores = __tensor_ops_detail::cores_of<__element<L>, __element<R>, __is_scaled<L>() || __is_scaled<R>()>(__is_relaxed);
      if constexpr (__may_be_alike<cores, L, R>())
        if (__smelt_gpu_target() == 901 && __smelt_simdgroup_count() % 4 == 0)
          if (__run_alike<cores>(left, right, sums)) {
            _Pragma("clang loop unroll(full)") for (int slot = 0; slot < __result_tile::capacity; slot++)
              __write(destination, slot, sums[slot]);
            return;
          }
      using product = __tensor_ops_detail::fragment_product<__result_tile, cores, Descriptor.transpose_left, Descriptor.transpose_right, __k, L, R>;
      product::run(left, right, __rows(left), __columns(right), __terms(left, right), sums);
      _Pragma("clang loop unroll(full)") for (int slot = 0; slot < __result_tile::capacity; slot++)
        __write(destination, slot, sums[slot]);
      return;
    }
    __bounds bounds = {__rows(left), __columns(right), __terms(left, right)};
    bool whole = bounds.rows >= __result_tile::down * __result_tile::tall && bounds.columns >= __result_tile::across * 16 &&
                 __result_tile::down % __result_tile::groups_down == 0 && __result_tile::across % __result_tile::groups_across == 0;
    if constexpr (in_registers) {
      if (whole && bounds.terms % 16 == 0)
        _Pragma("clang loop unroll(full)") for (int block = 0; block < __tensor_ops_detail::up(__k, 16); block++)
          __add_terms<false>(left, right, block, bounds, sums);
      else
        _Pragma("clang loop unroll(full)") for (int block = 0; block < __tensor_ops_detail::up(__k, 16); block++)
          __add_terms<true>(left, right, block, bounds, sums);
    } else {
      int blocks = (int)((bounds.terms + 15) / 16), whole_blocks = whole ? (int)(bounds.terms / 16) : 0, block = 0;
      for (; block < whole_blocks; block++) __add_terms<false>(left, right, block, bounds, sums);
      for (; block < blocks; block++) __add_terms<true>(left, right, block, bounds, sums);
    }
    _Pragma("clang loop unroll(full)") for (int slot = 0; slot < __result_tile::capacity; slot++)
      __write(destination, slot, sums[slot]);
  }
};

// ---- Reductions of a destination's rows and columns.

enum class reduction_operation { sum, max, min };

template <typename T> struct reduction_operation_identity {
  static constexpr T sum_identity = (T)0;
  static constexpr T max_identity = metal::numeric_limits<T>::lowest();
  static constexpr T min_identity = metal::numeric_limits<T>::max();
};

namespace __tensor_ops_detail {

template <class T> METAL_FUNC T combine(reduction_operation operation, T a, T b) {
  if (operation == reduction_operation::sum) return (T)(a + b);
  // One instruction. Of zeros with different signs, max takes the positive one and min the negative one.
  if constexpr (__is_same(T, float))
    if (__smelt_gpu_target() != 0) return operation == reduction_operation::max ? __builtin_fmaxf(a, b) : __builtin_fminf(a, b);
  bool second = operation == reduction_operation::max ? b > a : b < a;
  // Of a number and a NaN, the number.
  return second || a != a ? b : a;
}

// The value of every lane whose number differs in the bits of `Lanes` alone, combined.
template <uint Lanes, class T> METAL_FUNC T combine_lanes(reduction_operation operation, T value) {
  _Pragma("clang loop unroll(full)") for (uint bit = 1; bit < 32; bit *= 2)
    if (Lanes & bit) value = combine(operation, value, metal::__simd::shuffle(value, __smelt_lane() ^ bit));
  return value;
}

// `Lanes`: the lane bits that tell the elements of one result apart.
template <uint Lanes, class S, class D, class T>
METAL_FUNC void reduce(const S &source, D &destination, reduction_operation operation, T identity) {
  using from = typename S::layout;
  using to = typename D::layout;
  T values[to::capacity];
  _Pragma("clang loop unroll(full)") for (int result = 0; result < to::capacity; result++)
    values[result] = operation == reduction_operation::sum ? (T)0 : identity;
  _Pragma("clang loop unroll(full)") for (int slot = 0; slot < from::capacity; slot++) {
    T &value = values[to::template slot_of<from>(slot)];
    if (from::valid(slot)) value = combine(operation, value, source.__slots[slot]);
  }
  _Pragma("clang loop unroll(full)") for (int result = 0; result < to::capacity; result++)
    destination.__slots[result] = combine(operation, identity, combine_lanes<Lanes>(operation, values[result]));
}

} // namespace __tensor_ops_detail

template <class ElementType, class SrcExtents, class DstExtents, class SrcLayout, class DstLayout>
METAL_FUNC void reduce_rows(metal::cooperative_tensor<ElementType, SrcExtents, SrcLayout> &source,
                            metal::cooperative_tensor<ElementType, DstExtents, DstLayout> &destination,
                            reduction_operation op = reduction_operation::sum,
                            ElementType identity = reduction_operation_identity<ElementType>::sum_identity) {
  static_assert(__is_same(DstLayout, __row_results<SrcLayout>),
                "reduce_rows: the destination must come from get_row_reduction_destination_cooperative_tensor of the operation the source is of");
  __tensor_ops_detail::reduce<9>(source, destination, op, identity);
}

template <class ElementType, class SrcExtents, class DstExtents, class SrcLayout, class DstLayout>
METAL_FUNC void reduce_columns(metal::cooperative_tensor<ElementType, SrcExtents, SrcLayout> &source,
                               metal::cooperative_tensor<ElementType, DstExtents, DstLayout> &destination,
                               reduction_operation op = reduction_operation::sum,
                               ElementType identity = reduction_operation_identity<ElementType>::sum_identity) {
  static_assert(__is_same(DstLayout, __column_results<SrcLayout>),
                "reduce_columns: the destination must come from get_column_reduction_destination_cooperative_tensor of the operation the source is of");
  __tensor_ops_detail::reduce<22>(source, destination, op, identity);
}

template <class SrcElementType, class DstElementType, class SrcExtents, class DstExtents, class SrcLayout, class DstLayout>
METAL_FUNC bool is_iterator_compatible(const metal::cooperative_tensor<SrcElementType, SrcExtents, SrcLayout> &,
                                       const metal::cooperative_tensor<DstElementType, DstExtents, DstLayout> &) {
  if constexpr (requires { typename DstLayout::source; })
    return SrcLayout::rank == 2 && DstLayout::rank == 1 && __is_same(SrcElementType, DstElementType) &&
           (__is_same(DstLayout, __row_results<typename DstLayout::source>) ? (int)SrcLayout::rows == (int)DstLayout::source::rows
                                                                             : (int)SrcLayout::columns == (int)DstLayout::source::columns);
  else
    return false;
}

} // namespace tensor_ops
} // namespace mpp
