// C = A · Bᵀ of quantised matrices: fp8 codes, and one power of two as the scale of 32 codes along K. A tensor has both,
// slices take both, and the operation applies the scales by itself.
//
// A: M × K, B: N × K, C: M × N, so their extents are (K, M), (K, N), (N, M); K is a multiple of 32. Grid: N / n × M / m
// threadgroups, rounded up, of 128 threads; matmul_mx_128_256 has threadgroups of 256.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

using scales = tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>;
using quantised = tensor<device metal_fp8_e4m3_format, dextents<int32_t, 2>, tensor_handle, scales>;

template <int m, int n, ushort simdgroups>
kernel void matmul_mx(quantised A [[buffer(0)]], quantised B [[buffer(1)]],
                      tensor<device float, dextents<int32_t, 2>> C [[buffer(2)]],
                      uint2 group [[threadgroup_position_in_grid]]) {
    constexpr matmul2d_descriptor tile(m, n, static_cast<int>(dynamic_extent), false, true);
    matmul2d<tile, execution_simdgroups<simdgroups>> op;
    auto rows = A.slice(0, group.y * m);
    auto columns = B.slice(0, group.x * n);
    auto result = C.slice(group.x * n, group.y * m);
    op.run(rows, columns, result);
}

template [[host_name("matmul_mx_32_32")]] kernel void matmul_mx<32, 32, 4>(quantised, quantised,
                                                                          tensor<device float, dextents<int32_t, 2>>, uint2);
template [[host_name("matmul_mx_128_128")]] kernel void matmul_mx<128, 128, 4>(
    quantised, quantised, tensor<device float, dextents<int32_t, 2>>, uint2);
template [[host_name("matmul_mx_128_256")]] kernel void matmul_mx<128, 256, 8>(
    quantised, quantised, tensor<device float, dextents<int32_t, 2>>, uint2);
