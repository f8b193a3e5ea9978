// c = a · b by Metal 4's matmul2d, a tile for each threadgroup: bfloat matrices of any size, sums in float.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

template <int m, int n, ushort simdgroups>
kernel void product(device bfloat *left [[buffer(0)]], device bfloat *right [[buffer(1)]], device bfloat *out [[buffer(2)]],
                    constant uint &size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]]) {
    const int side = (int)size;
    auto a = tensor(left, dextents<int, 2>(side, side));
    auto b = tensor(right, dextents<int, 2>(side, side));
    auto c = tensor(out, dextents<int, 2>(side, side));
    matmul2d<matmul2d_descriptor(m, n, dynamic_extent), execution_simdgroups<simdgroups>> op;
    auto rows = a.slice(0, group.y * m);
    auto columns = b.slice(group.x * n, 0);
    auto tile = c.slice(group.x * n, group.y * m);
    op.run(rows, columns, tile);
}

#define PRODUCT(name, m, n, simdgroups)                                                                              \
    template [[host_name(name)]] kernel void product<m, n, simdgroups>(device bfloat *, device bfloat *, device bfloat *, \
                                                                       constant uint &, uint2);
PRODUCT("tile_64_64", 64, 64, 4)
PRODUCT("tile_128_128", 128, 128, 4)
PRODUCT("tile_128_256", 128, 256, 8)
