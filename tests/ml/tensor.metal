// Products of tiles with Metal 4's tensors: every kind of operand, element type, scope and edge. test_tensor.c runs them.
// Templates only: clang compiles those of the entry that is asked for, and other kernels each time.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

constant constexpr int rest = static_cast<int>(dynamic_extent);

template <typename T> using view = tensor<T, dextents<int32_t, 2>, tensor_inline>;

// size: M, N, K. Both operands and the result in memory; the groups' tiles go past its edges.
template <typename L, typename R, typename D, int m, int n, bool tl, bool tr, bool adds, ushort simdgroups, bool relaxed>
kernel void product(const device uchar *left [[buffer(0)]], const device uchar *right [[buffer(1)]], device D *out [[buffer(2)]],
                    constant int *size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]]) {
  using Left = view<const device L>;
  using Right = view<const device R>;
  const int M = size[0], N = size[1], K = size[2];
  Left a((typename Left::data_handle_type)left, tl ? dextents<int32_t, 2>(M, K) : dextents<int32_t, 2>(K, M));
  Right b((typename Right::data_handle_type)right, tr ? dextents<int32_t, 2>(K, N) : dextents<int32_t, 2>(N, K));
  auto c = tensor(out, dextents<int32_t, 2>(N, M));
  constexpr auto mode = adds ? matmul2d_descriptor::mode::multiply_accumulate : matmul2d_descriptor::mode::multiply;
  matmul2d<matmul2d_descriptor(m, n, rest, tl, tr, relaxed, mode), execution_simdgroups<simdgroups>> op;
  int x = group.x * n, y = group.y * m;
  auto rows = tl ? a.slice(y, 0) : a.slice(0, y);
  auto columns = tr ? b.slice(0, x) : b.slice(x, 0);
  auto tile = c.slice(x, y);
  op.run(rows, columns, tile);
}

#define PRODUCT(name, L, R, D, m, n, tl, tr, adds, simdgroups, ...) \
  template [[host_name(name)]] kernel void product<L, R, D, m, n, tl, tr, adds, simdgroups, bool{__VA_ARGS__}>( \
      const device uchar *, const device uchar *, device D *, constant int *, uint2);
PRODUCT("nn", half, half, float, 32, 48, false, false, false, 1)
PRODUCT("tn", half, float, float, 16, 32, true, false, false, 2)
PRODUCT("nt_adds", float, bfloat, float, 64, 16, false, true, true, 4)
PRODUCT("tt", half, half, half, 48, 32, true, true, false, 3)
PRODUCT("row", half, half, float, 8, 32, false, false, false, 1)
PRODUCT("odd", float, float, float, 20, 24, false, true, false, 2)
PRODUCT("wide", half, half, float, 16, 96, false, false, true, 4)
// As large as GPUs' asynchronous tensor cores take them.
PRODUCT("large nn", half, half, float, 64, 64, false, false, false, 4)
PRODUCT("large tt", bfloat, bfloat, float, 128, 64, true, true, true, 8)
PRODUCT("large nt", half, half, half, 64, 128, false, true, false, 4)
PRODUCT("large tn", bfloat, bfloat, bfloat, 64, 128, true, false, true, 8)
PRODUCT("large char", half, char, float, 64, 64, false, false, true, 4)
PRODUCT("large e4m3", metal_fp8_e4m3_format, metal_fp8_e4m3_format, float, 64, 80, false, true, false, 4)
PRODUCT("relaxed e4m3", metal_fp8_e4m3_format, metal_fp8_e4m3_format, float, 64, 80, false, true, false, 4, true)
PRODUCT("relaxed large e4m3", metal_fp8_e4m3_format, metal_fp8_e4m3_format, float, 128, 256, false, true, false, 8, true)
PRODUCT("relaxed e5m2", metal_fp8_e5m2_format, metal_fp8_e5m2_format, float, 128, 64, false, true, true, 4, true)
#define TYPES(name, L, R, D) PRODUCT(name, L, R, D, 16, 16, false, false, false, 1)
#define TYPES_T(name, L, R, D) PRODUCT(name, L, R, D, 16, 16, false, true, true, 1)
TYPES("types half half half", half, half, half)
TYPES("types half char half", half, char, half)
TYPES_T("types half uchar float", half, uchar, float)
TYPES("types char half float", char, half, float)
TYPES_T("types uchar half half", uchar, half, half)
TYPES("types float half float", float, half, float)
TYPES_T("types float char float", float, char, float)
TYPES("types uchar float float", uchar, float, float)
TYPES("types char char int", char, char, int)
TYPES_T("types uchar uchar int", uchar, uchar, int)
TYPES("types bfloat bfloat bfloat", bfloat, bfloat, bfloat)
TYPES_T("types bfloat bfloat float", bfloat, bfloat, float)
TYPES("types bfloat float float", bfloat, float, float)
TYPES_T("types float bfloat float", float, bfloat, float)
TYPES("types bfloat char bfloat", bfloat, char, bfloat)
TYPES_T("types uchar bfloat float", uchar, bfloat, float)
TYPES("types bfloat half half", bfloat, half, half)
TYPES_T("types half bfloat bfloat", half, bfloat, bfloat)
TYPES_T("types half int4b half", half, int4b_format, half)
TYPES_T("types half uint4b float", half, uint4b_format, float)
TYPES_T("types bfloat int4b float", bfloat, int4b_format, float)
TYPES_T("types bfloat uint4b bfloat", bfloat, uint4b_format, bfloat)
TYPES_T("types char int4b int", char, int4b_format, int)
TYPES_T("types uchar uint4b int", uchar, uint4b_format, int)
TYPES_T("types half int2b float", half, int2b_format, float)
TYPES_T("types half uint2b half", half, uint2b_format, half)
TYPES_T("types bfloat int2b bfloat", bfloat, int2b_format, bfloat)
TYPES_T("types bfloat uint2b float", bfloat, uint2b_format, float)
TYPES_T("types char int2b int", char, int2b_format, int)
TYPES_T("types uchar uint2b int", uchar, uint2b_format, int)
TYPES_T("types half fp4 float", half, metal_fp4_e2m1_format, float)
TYPES_T("types half e4m3 half", half, metal_fp8_e4m3_format, half)
TYPES_T("types half e5m2 float", half, metal_fp8_e5m2_format, float)
TYPES_T("types fp4 fp4 float", metal_fp4_e2m1_format, metal_fp4_e2m1_format, float)
TYPES_T("types e4m3 e4m3 float", metal_fp8_e4m3_format, metal_fp8_e4m3_format, float)
TYPES_T("types e5m2 e5m2 float", metal_fp8_e5m2_format, metal_fp8_e5m2_format, float)

// Scales of 32 × 1, of both sides.
template <int m, int n, ushort simdgroups>
kernel void scaled(const device uchar *left [[buffer(0)]], const device uchar *right [[buffer(1)]], device float *out [[buffer(2)]],
                   const device uchar *left_scales [[buffer(4)]], const device uchar *right_scales [[buffer(5)]],
                   constant int *size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]]) {
  using scales = tensor_blockwise<tensor_plane_scales, const device metal_fp8_ue8m0_format, 32, 1>;
  using operand = tensor<const device metal_fp8_e4m3_format, dextents<int, 2>, tensor_inline, scales>;
  const int M = size[0], N = size[1], K = size[2];
  operand a(left, dextents<int, 2>(K, M), array<int, 2>({1, K}), left_scales);
  operand b(right, dextents<int, 2>(K, N), array<int, 2>({1, K}), scales(right_scales));
  auto c = tensor(out, dextents<int, 2>(N, M));
  matmul2d<matmul2d_descriptor(m, n, 64, false, true, false, matmul2d_descriptor::mode::multiply_accumulate), execution_simdgroups<simdgroups>> op;
  auto tile = c.slice(group.x * n, group.y * m);
  auto sums = op.template get_destination_cooperative_tensor<operand, operand, float>();
  for (int k = 0; k < K; k += 64) {
    auto rows = a.slice(k, group.y * m), columns = b.slice(k, group.x * n);
    op.run(rows, columns, sums);
  }
  sums.store(tile);
}
#define SCALED(name, m, n, simdgroups) \
  template [[host_name(name)]] kernel void scaled<m, n, simdgroups>(const device uchar *, const device uchar *, device float *, \
                                                                    const device uchar *, const device uchar *, constant int *, uint2);
SCALED("scaled", 32, 32, 2)
SCALED("scaled large", 64, 64, 4)
SCALED("scaled largest", 128, 256, 8)

// Inputs that lie in registers, loaded from memory or filled by their coordinates, added to a bias for each column.
template <typename T, int m, int n, int k, bool tl, bool tr>
kernel void registers(const device T *left [[buffer(0)]], const device T *right [[buffer(1)]], device float *out [[buffer(2)]],
                      const device float *bias [[buffer(4)]]) {
  auto a = tensor(left, dextents<int, 2>(tl ? m : k, tl ? k : m));
  auto b = tensor(right, dextents<int, 2>(tr ? k : n, tr ? n : k));
  auto c = tensor(out, dextents<int, 2>(n, m));
  matmul2d<matmul2d_descriptor(m, n, k, tl, tr, false, matmul2d_descriptor::mode::multiply_accumulate), execution_simdgroup> op;
  auto l = op.template get_left_input_cooperative_tensor<T, T, float>();
  auto r = op.template get_right_input_cooperative_tensor<T, T, float>();
  l.load(a);
  for (ushort i = 0; i < r.get_capacity(); i++)
    if (r.is_valid_element(i)) {
      auto at = r.get_multidimensional_index(i);
      r[i] = b[at[0], at[1]];
    }
  auto sums = op.template get_destination_cooperative_tensor<decltype(l), decltype(r), float>();
  sums.load(tensor(bias, dextents<int, 2>(n, 1)));
  op.run(l, r, sums);
  sums.store(c);
}
#define REGISTERS(name, T, m, n, k, tl, tr) \
  template [[host_name(name)]] kernel void registers<T, m, n, k, tl, tr>(const device T *, const device T *, device float *, const device float *);
REGISTERS("registers nn", half, 16, 32, 16, false, false)
REGISTERS("registers nt", half, 16, 32, 32, false, true)
REGISTERS("registers tn", float, 32, 16, 16, true, false)
REGISTERS("registers tt", bfloat, 16, 16, 24, true, true)
REGISTERS("registers few", float, 8, 24, 8, false, true)

// Which element each slot holds: 1000 row + column, or -1.
template <int m, int n, ushort simdgroups>
kernel void slots(device int *out [[buffer(2)]], uint thread_index [[thread_index_in_threadgroup]]) {
  matmul2d<matmul2d_descriptor(m, n, 16), execution_simdgroups<simdgroups>> op;
  using operand = tensor<device half, dextents<int, 2>, tensor_inline>;
  auto c = op.template get_destination_cooperative_tensor<operand, operand, float>();
  for (ushort i = 0; i < c.get_capacity(); i++) {
    auto at = c.get_multidimensional_index(i);
    out[thread_index * c.get_capacity() + i] = c.is_valid_element(i) ? at[1] * 1000 + at[0] : -1;
  }
}
#define SLOTS(name, m, n, simdgroups) template [[host_name(name)]] kernel void slots<m, n, simdgroups>(device int *, uint);
SLOTS("slots 16 32 1", 16, 32, 1)
SLOTS("slots 64 64 4", 64, 64, 4)
SLOTS("slots 16 48 2", 16, 48, 2)
SLOTS("slots 8 40 1", 8, 40, 1)
SLOTS("slots 50 20 3", 50, 20, 3)

// Softmax of the rows of a product, with what the talk on Metal tensors does, times a matrix; its rows' and columns' sums,
// maxima and minima on the way.
template <typename T, int m, int n, int d>
kernel void rows(const device T *left [[buffer(0)]], const device T *right [[buffer(1)]], const device T *values [[buffer(4)]], device float *out [[buffer(2)]],
                 device float *statistics [[buffer(3)]], constant float &low [[buffer(5)]]) {
  using operand = tensor<const device T, dextents<int, 2>, tensor_inline>;
  operand q(left, dextents<int, 2>(d, m)), k(right, dextents<int, 2>(d, n)), v(values, dextents<int, 2>(d, n));
  matmul2d<matmul2d_descriptor(m, n, d, false, true), execution_simdgroup> product;
  matmul2d<matmul2d_descriptor(m, d, n), execution_simdgroup> weigh;
  auto scores = product.template get_destination_cooperative_tensor<operand, operand, float>();
  product.run(q, k, scores);
  auto top = product.template get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
  auto sum = product.template get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
  auto columns = product.template get_column_reduction_destination_cooperative_tensor<operand, operand, float>();
  reduce_columns(scores, columns, reduction_operation::sum);
  columns.store(tensor(statistics, dextents<int, 1>(n)));
  reduce_columns(scores, columns, reduction_operation::min, INFINITY);
  columns.store(tensor(statistics + n, dextents<int, 1>(n)));
  reduce_rows(scores, top, reduction_operation::max, low);
  top.store(tensor(statistics + 2 * n, dextents<int, 1>(m)));
  for (auto it = scores.begin(); it != scores.end(); it++) *it = exp(*it - *top.map_iterator(it));
  reduce_rows(scores, sum, reduction_operation::sum);
  auto weights = weigh.template get_left_input_cooperative_tensor<float, T, float>(scores);
  if (weigh.template is_compatible_as_left_input<float, T, float>(scores)) {
    auto result = weigh.template get_destination_cooperative_tensor<decltype(weights), operand, float>();
    weigh.run(weights, v, result);
    for (auto it = result.begin(); it != result.end(); ++it) *it /= sum[(ushort)(sum.map_iterator(it) - sum.begin())];
    result.store(tensor(out, dextents<int, 2>(d, m)));
  }
}
template [[host_name("rows half")]] kernel void rows<half, 16, 32, 16>(const device half *, const device half *, const device half *, device float *, device float *, constant float &);
template [[host_name("rows float")]] kernel void rows<float, 32, 24, 24>(const device float *, const device float *, const device float *, device float *, device float *, constant float &);

// The value of every code, and the codes of values.
template <typename F, int count>
kernel void decode(const device uchar *codes [[buffer(0)]], device float *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  tensor<const device F, dextents<int, 1>, tensor_inline> t(codes, dextents<int, 1>(count));
  out[i] = t.get((int)i);
}
template <typename F>
kernel void encode(const device float *values [[buffer(0)]], device uchar *out [[buffer(2)]], device uchar *truncated [[buffer(3)]],
                   device float *unpacked [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  auto four = *(const device float4 *)(values + 4 * i);
  auto packed = pack<F>(four);
  auto down = pack<F, rounding_mode::toward_zero, saturation_mode::none>(four);
  for (uint b = 0; b < sizeof(packed); b++) out[i * sizeof(packed) + b] = packed.storage()[b], truncated[i * sizeof(packed) + b] = down.storage()[b];
  float4 back = unpack<float>(packed);
  half4 twice = packed.template unpack<half>();
  for (int c = 0; c < 4; c++) unpacked[8 * i + c] = back[c], unpacked[8 * i + 4 + c] = (float)twice[c];
}
#define FORMAT(name, F, count) \
  template [[host_name("decode " name)]] kernel void decode<F, count>(const device uchar *, device float *, uint); \
  template [[host_name("encode " name)]] kernel void encode<F>(const device float *, device uchar *, device uchar *, device float *, uint);
FORMAT("int4b", int4b_format, 512)
FORMAT("uint4b", uint4b_format, 512)
FORMAT("int2b", int2b_format, 1024)
FORMAT("uint2b", uint2b_format, 1024)
FORMAT("fp4", metal_fp4_e2m1_format, 512)
FORMAT("e4m3", metal_fp8_e4m3_format, 256)
FORMAT("e5m2", metal_fp8_e5m2_format, 256)
FORMAT("ue8m0", metal_fp8_ue8m0_format, 256)

// Two images of 9 × 8 pixels and 5 channels, to 7 channels, by tiles of 4 × 2 pixels; on top of what is there if `adds`.
template <typename T, typename D, int kx, int ky, int sx, int sy, int dx, int dy, bool adds, ushort simdgroups>
kernel void convolve(const device T *in [[buffer(0)]], const device T *weights [[buffer(1)]], device D *out [[buffer(2)]], constant int *pad [[buffer(3)]],
                     constant int *size [[buffer(4)]], uint3 group [[threadgroup_position_in_grid]]) {
  auto images = tensor(in, dextents<int, 4>(5, 9, 8, 2));
  auto filter = tensor(weights, dextents<int, 4>(7, 5, kx, ky));
  auto results = tensor(out, dextents<int, 4>(7, size[0], size[1], 2));
  constexpr auto mode = adds ? convolution2d_descriptor::mode::multiply_accumulate : convolution2d_descriptor::mode::multiply;
  constexpr convolution2d_descriptor tile(int4(7, 4, 2, 1), int4(5, 9, 8, 1), int2(kx, ky), convolution2d_activation_layout::nhwc,
                                          convolution2d_weights_layout::hwio, int2(sx, sy), int2(dx, dy), 1, false, mode);
  convolution2d<tile, execution_simdgroups<simdgroups>> op;
  int x = group.x * 4, y = group.y * 2;
  op.set_offsets(int2(x * sx - pad[0] + ((kx - 1) * dx + 1) / 2, y * sy - pad[1] + ((ky - 1) * dy + 1) / 2));
  auto image = images.slice(0, 0, 0, group.z);
  auto result = results.slice(0, x, y, group.z);
  if (adds) {
    op.run(image, filter, result);
  } else {
    auto sums = op.template get_destination_cooperative_tensor<decltype(image), decltype(filter), D>();
    op.run(image, filter, sums);
    for (ushort i = 0; i < sums.get_capacity(); i++) {
      auto at = sums.get_multidimensional_index(i);
      if (sums.is_valid_element(i) && at[0] == 6) sums[i] = sums[i] + D(at[1] + 10 * at[2] + 100 * at[3]);
    }
    sums.store(result);
  }
}
#define CONVOLVE(name, T, D, kx, ky, sx, sy, dx, dy, adds, simdgroups) \
  template [[host_name(name)]] kernel void convolve<T, D, kx, ky, sx, sy, dx, dy, adds, simdgroups>( \
      const device T *, const device T *, device D *, constant int *, constant int *, uint3);
CONVOLVE("convolve 3 3", half, float, 3, 3, 1, 1, 1, 1, false, 1)
CONVOLVE("convolve 2 3", float, float, 2, 3, 2, 1, 1, 2, true, 2)
CONVOLVE("convolve bytes", char, int, 4, 1, 1, 2, 1, 1, true, 1)
