// c = a · bᵀ of fp8 matrices by matmul2d, a tile for each threadgroup: sums are rounded to half. Without scales with relaxed
// precision, so that the tensor cores multiply fp8.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

template <class T> using plane = tensor<device T, dextents<int32_t, 2>>;
using scales = tensor_blockwise<tensor_plane_scales, device metal_fp8_ue8m0_format, 32, 1>;
using plain = plane<metal_fp8_e4m3_format>;
using scaled = tensor<device metal_fp8_e4m3_format, dextents<int32_t, 2>, tensor_handle, scales>;

template <class T, int m, int n, ushort simdgroups>
kernel void product(T a [[buffer(0)]], T b [[buffer(1)]], plane<half> c [[buffer(2)]], uint2 group [[threadgroup_position_in_grid]]) {
    constexpr bool relaxed = is_same_v<T, plain>;
    matmul2d<matmul2d_descriptor(m, n, static_cast<int>(dynamic_extent), false, true, relaxed), execution_simdgroups<simdgroups>> op;
    auto rows = a.slice(0, group.y * m);
    auto columns = b.slice(0, group.x * n);
    auto tile = c.slice(group.x * n, group.y * m);
    op.run(rows, columns, tile);
}

#define PRODUCT(name, T, m, n, simdgroups) \
    template [[host_name(name)]] kernel void product<T, m, n, simdgroups>(T, T, plane<half>, uint2);
PRODUCT("tile_128_128", plain, 128, 128, 4)
PRODUCT("tile_128_128_8", plain, 128, 128, 8)
PRODUCT("tile_128_256", plain, 128, 256, 8)
PRODUCT("scaled_128_128_8", scaled, 128, 128, 8)
PRODUCT("scaled_128_256", scaled, 128, 256, 8)
