// C = A · B, a tile of C for each threadgroup. A tensor operation multiplies the rows of A that belong to the tile with the
// columns of B, over all of K; where the tile goes past an edge, what is missing counts as 0 and is not written.
//
// A: M × K, B: K × N, C: M × N, so their extents are (K, M), (N, K), (N, M). Grid: N / n × M / m threadgroups, rounded up, of
// 32 threads for each simdgroup.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

template <typename T> using table = tensor<device T, dextents<int32_t, 2>>;

// Tensors that the host binds.
template <typename T, int m, int n, ushort simdgroups>
kernel void matmul(table<T> A [[buffer(0)]], table<T> B [[buffer(1)]], table<float> C [[buffer(2)]],
                   uint2 group [[threadgroup_position_in_grid]]) {
    matmul2d<matmul2d_descriptor(m, n, static_cast<int>(dynamic_extent)), execution_simdgroups<simdgroups>> op;
    auto rows = A.slice(0, group.y * m);
    auto columns = B.slice(group.x * n, 0);
    auto tile = C.slice(group.x * n, group.y * m);
    op.run(rows, columns, tile);
}

// Buffers, from which the kernel makes tensors.
struct matmul_size {
    int M, N, K;
};
template <typename T, int m, int n, ushort simdgroups>
kernel void matmul_inline(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device float *c [[buffer(2)]],
                          constant matmul_size &size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]]) {
    // Operations take tensors of elements that are not const.
    auto A = tensor(const_cast<device T *>(a), dextents<int32_t, 2>(size.K, size.M));
    auto B = tensor(const_cast<device T *>(b), dextents<int32_t, 2>(size.N, size.K));
    auto C = tensor(c, dextents<int32_t, 2>(size.N, size.M));
    matmul2d<matmul2d_descriptor(m, n, static_cast<int>(dynamic_extent)), execution_simdgroups<simdgroups>> op;
    auto rows = A.slice(0, group.y * m);
    auto columns = B.slice(group.x * n, 0);
    auto tile = C.slice(group.x * n, group.y * m);
    op.run(rows, columns, tile);
}

#define MATMUL(type, m, n, simdgroups)                                                                                   \
    template [[host_name("matmul_" #type "_" #m "_" #n)]] kernel void matmul<type, m, n, simdgroups>(                    \
        table<type>, table<type>, table<float>, uint2);                                                               \
    template [[host_name("matmul_inline_" #type "_" #m "_" #n)]] kernel void matmul_inline<type, m, n, simdgroups>(      \
        device const type *, device const type *, device float *, constant matmul_size &, uint2);
MATMUL(half, 64, 32, 4)
MATMUL(half, 128, 256, 8)
MATMUL(bfloat, 64, 32, 4)
MATMUL(bfloat, 128, 256, 8)
MATMUL(float, 64, 32, 4)
