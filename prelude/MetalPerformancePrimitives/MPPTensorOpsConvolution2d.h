// <MetalPerformancePrimitives/MPPTensorOpsConvolution2d.h>: convolutions of images, of tiles of O channels × W × H × N.
//
// Dimension 0 is the innermost: activations are (C, W, H, N), weights (O, C, KW, KH), results (O, W, H, N). Output (x, y)
// looks at the activations (x, y) · strides + offsets + ((kx, ky) − half) · dilations, where half puts the window's centre
// there, rounded towards the window's end. What is not there counts as 0.
#pragma once

#include "MetalPerformancePrimitives/mpp_product.h"

namespace mpp {
namespace tensor_ops {

enum class convolution2d_activation_layout { nhwc };
enum class convolution2d_weights_layout { hwio };

struct convolution2d_descriptor {
  enum class mode { multiply, multiply_accumulate };
  int4 destination_dimensions, source_dimensions;
  int2 kernel_dimensions;
  convolution2d_activation_layout activation_layout;
  convolution2d_weights_layout weights_layout;
  int2 strides, dilations;
  int groups;
  bool relaxed_precision;
  mode convolution2d_mode;
  constexpr convolution2d_descriptor(int4 destination_dimensions, int4 source_dimensions, int2 kernel_dimensions,
                                     convolution2d_activation_layout activation_layout = convolution2d_activation_layout::nhwc,
                                     convolution2d_weights_layout weights_layout = convolution2d_weights_layout::hwio,
                                     int2 strides = int2(1, 1), int2 dilations = int2(1, 1), int groups = 1,
                                     bool relaxed_precision = false, mode convolution2d_mode = mode::multiply)
      : destination_dimensions(destination_dimensions), source_dimensions(source_dimensions),
        kernel_dimensions(kernel_dimensions), activation_layout(activation_layout), weights_layout(weights_layout),
        strides(strides), dilations(dilations), groups(groups), relaxed_precision(relaxed_precision),
        convolution2d_mode(convolution2d_mode) {}
};

// Of a tile whose rows are pixels, W × H of each of N images, and whose columns are channels.
template <class Tile, int W, int H, class L, class R> struct __image : Tile {
  static constexpr int rank = 4;
  using left = L;
  using right = R;
  static constexpr int extent(int r) { return r == 0 ? Tile::columns : r == 1 ? W : r == 2 ? H : Tile::rows / (W * H); }
  METAL_FUNC static metal::array<int, 4> index(int slot) {
    int pixel = Tile::row(slot);
    return {Tile::column(slot), pixel % W, pixel / W % H, pixel / (W * H)};
  }
};

template <convolution2d_descriptor Descriptor, typename Scope, typename... Args> class convolution2d {
  template <class T> using __element = typename metal::__value_t<T>::value_type;
  static_assert(metal::is_execution_simdgroups_v<Scope>, "convolution2d: the scope is execution_simdgroups<N>");
  static_assert(Descriptor.groups == 1, "convolution2d: groups is 1");
  static constexpr int __width = Descriptor.destination_dimensions.y, __height = Descriptor.destination_dimensions.z;
  static constexpr int __pixels = __width * __height * Descriptor.destination_dimensions.w;
  static_assert(Descriptor.destination_dimensions.x >= 1 && __width >= 1 && __height >= 1 && __pixels >= 1,
                "convolution2d: the dimensions of the destination are at least 1");
  static constexpr bool __adds = Descriptor.convolution2d_mode == convolution2d_descriptor::mode::multiply_accumulate;
  using __result_tile = __tile<__pixels, Descriptor.destination_dimensions.x, (int)Scope::static_size>;
  template <class A, class W> using __layout = __image<__result_tile, __width, __height, __element<A>, __element<W>>;

  int2 __offsets = int2(0, 0);

public:
  static constexpr convolution2d_descriptor descriptor = Descriptor;
  using scope = Scope;

  METAL_FUNC void set_offsets(int2 offsets) { __offsets = offsets; }

  template <class A, class W, class E, class Coord = int, class... X>
  using cooperative_tensor_destination_t = metal::cooperative_tensor<E, metal::dextents<Coord, 4>, __layout<A, W>>;
  template <class A, class W, class E, class Coord = int, class... X> METAL_FUNC auto get_destination_cooperative_tensor() const {
    return cooperative_tensor_destination_t<A, W, E, Coord>();
  }

  template <class A, class W, class D> METAL_FUNC void run(A &&activation, W &&weights, D &&destination) const {
    using namespace __tensor_ops_detail;
    using Activation = metal::__value_t<A>;
    using Weights = metal::__value_t<W>;
    using Result = metal::__value_t<D>;
    static_assert(is_memory<Activation> && is_memory<Weights>, "convolution2d::run: activation and weights are tensors in memory");
    static_assert(Activation::get_rank() == 4 && Weights::get_rank() == 4, "convolution2d::run: a tensor has 4 dimensions");
    static_assert(!Activation::__packed && !Weights::__packed, "convolution2d::run: there are no convolutions of packed formats");
    static_assert(is_product(kind_of<__element<A>>, kind_of<__element<W>>, kind_of<__element<D>>),
                  "convolution2d: there is no product of these element types with this destination type");
    using Sum = sum_t<__element<A>, __element<W>>;
    cooperative_tensor_destination_t<A, W, __element<D>> tile;
    Sum sums[__result_tile::capacity];
    if constexpr (is_cooperative<Result>)
      static_assert(__is_same(typename Result::layout, __layout<A, W>),
                    "convolution2d::run: the cooperative destination was made for other input types or by another operation");
    if constexpr (__adds && is_cooperative<Result>) tile = destination;
    if constexpr (__adds && !is_cooperative<Result>) tile.load(destination);
    _Pragma("clang loop unroll(full)") for (int slot = 0; slot < __result_tile::capacity; slot++) sums[slot] = (Sum)tile.__slots[slot];
    __add_window(activation, weights, sums);
    _Pragma("clang loop unroll(full)") for (int slot = 0; slot < __result_tile::capacity; slot++)
      tile.__slots[slot] = (__element<D>)sums[slot];
    if constexpr (is_cooperative<Result>)
      destination = tile;
    else
      tile.store(destination);
  }

private:
  template <class A, class W, class Sum>
  METAL_FUNC void __add_window(const A &activation, const W &weights, Sum (&sums)[__result_tile::capacity]) const {
    constexpr int2 kernel = Descriptor.kernel_dimensions, dilations = Descriptor.dilations;
    constexpr int half_x = ((kernel.x - 1) * dilations.x + 1) / 2, half_y = ((kernel.y - 1) * dilations.y + 1) / 2;
    int channels = metal::min((int)activation.get_extent(0), (int)weights.get_extent(1));
    for (int ky = 0; ky < kernel.y; ky++)
      for (int kx = 0; kx < kernel.x; kx++)
        for (int block = 0; block * 16 < channels; block++)
          __tensor_ops_detail::add_terms<__result_tile>(
              [&](int i, int upper, int pair, int odd) __attribute__((always_inline)) {
                int pixel = __result_tile::first_row(i) + __tensor_ops_detail::lane_row() + upper * 8;
                long c = block * 16 + __tensor_ops_detail::left_term(pair, odd);
                long x = pixel % __width * Descriptor.strides.x + __offsets.x + kx * dilations.x - half_x;
                long y = pixel / __width % __height * Descriptor.strides.y + __offsets.y + ky * dilations.y - half_y;
                long n = pixel / (__width * __height);
                bool inside = pixel < __pixels && c < channels && (ulong)x < (ulong)activation.get_extent(1) &&
                              (ulong)y < (ulong)activation.get_extent(2) && n < activation.get_extent(3);
                return inside ? (float)activation.__load(activation.__offset(metal::array<long, 4>{c, x, y, n})) : 0;
              },
              [&](int j, int side, int pair, int odd) __attribute__((always_inline)) {
                long o = __result_tile::first_column(j) + __tensor_ops_detail::lane_column() + side * 2 + odd;
                long c = block * 16 + __tensor_ops_detail::right_term(pair);
                bool inside = o < weights.get_extent(0) && c < channels;
                return inside ? (float)weights.__load(weights.__offset(metal::array<long, 4>{o, c, kx, ky})) : 0;
              },
              sums);
  }
};

} // namespace tensor_ops
} // namespace mpp
