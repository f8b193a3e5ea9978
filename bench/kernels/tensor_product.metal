// c = a · b, square of n: each threadgroup of four simdgroups computes a tile by matmul2d, whose operands lie in device memory.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

template <typename T, typename D, int rows, int columns>
kernel void product(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device D *c [[buffer(2)]],
                    constant uint &n [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]]) {
    const int size = (int)n, x = (int)group.x * columns, y = (int)group.y * rows;
    auto left = tensor(a, dextents<int, 2>(size, size)).slice(0, y);
    auto right = tensor(b, dextents<int, 2>(size, size)).slice(x, 0);
    auto out = tensor(c, dextents<int, 2>(size, size)).slice(x, y);
    matmul2d<matmul2d_descriptor(rows, columns, static_cast<int>(dynamic_extent)), execution_simdgroups<4>> op;
    op.run(left, right, out);
}
#define PRODUCT(name, T, D, rows, columns)           \
    template [[host_name(name)]] kernel void product<T, D, rows, columns>( \
        device const T *, device const T *, device D *, constant uint &, uint2);
PRODUCT("float 64 x 32", float, float, 64, 32)
PRODUCT("float 128 x 128", float, float, 128, 128)
PRODUCT("bfloat 128 x 128", bfloat, float, 128, 128)
PRODUCT("int8 128 x 128", char, int, 128, 128)
