// c = a · bᵀ of fp8 matrices by matmul2d with relaxed precision, a tile for each threadgroup: sums are rounded to half.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

template <class T> using plane = tensor<device T, dextents<int32_t, 2>>;

template <class T, int m, int n, ushort simdgroups>
kernel void product(plane<T> a [[buffer(0)]], plane<T> b [[buffer(1)]], plane<half> c [[buffer(2)]],
                    uint2 group [[threadgroup_position_in_grid]]) {
    matmul2d<matmul2d_descriptor(m, n, static_cast<int>(dynamic_extent), false, true, true), execution_simdgroups<simdgroups>> op;
    auto rows = a.slice(0, group.y * m);
    auto columns = b.slice(0, group.x * n);
    auto tile = c.slice(group.x * n, group.y * m);
    op.run(rows, columns, tile);
}

#define PRODUCT(name, m, n, simdgroups)                                                                               \
    template [[host_name(name)]] kernel void product<metal_fp8_e4m3_format, m, n, simdgroups>(plane<metal_fp8_e4m3_format>, \
                                                                                              plane<metal_fp8_e4m3_format>, \
                                                                                              plane<half>, uint2);
PRODUCT("tile_128_128", 128, 128, 4)
PRODUCT("tile_128_128_8", 128, 128, 8)
PRODUCT("tile_128_256", 128, 256, 8)
