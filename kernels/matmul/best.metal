// C = A · B, as fast as it gets: Metal 4's tensor operation has the tile of C and all of K, so the compiler chooses how operands
// travel and which units multiply them. On a CPU that is a blocked product in vector registers, on GPUs of compute capability
// 9.0 the asynchronous tensor cores, fed by tensor maps. Half and bfloat are multiplied exactly; float by multiply-adds, or as
// TF32 in math modes relaxed and fast.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. rows: how many elements a row of A and one of B is behind the one before; batches:
// the same of whole matrices A and B. Grid: N / 256 × M / 128 × products threadgroups, rounded up, of 256 threads; best_float_large,
// for CPUs: N / 256 × M / 512 of 32. (On GPUs floats take best_tiles.metal.)
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

template <typename T, int BM, int BN, ushort simdgroups>
kernel void best(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
                 constant int3 &size [[buffer(3)]], constant int2 &rows [[buffer(4)]], constant long2 &batches [[buffer(5)]],
                 uint3 group [[threadgroup_position_in_grid]]) {
    // Operations take tensors of elements that are not const.
    auto A = tensor(const_cast<device T *>(a) + group.z * batches.x, dextents<int, 2>(size.z, size.x), array<int, 2>{1, rows.x});
    auto B = tensor(const_cast<device T *>(b) + group.z * batches.y, dextents<int, 2>(size.y, size.z), array<int, 2>{1, rows.y});
    auto C = tensor(c + group.z * (long(size.x) * size.y), dextents<int, 2>(size.y, size.x));
    auto lines = A.slice(0, int(group.y) * BM);
    auto columns = B.slice(int(group.x) * BN, 0);
    auto tile = C.slice(int(group.x) * BN, int(group.y) * BM);
    matmul2d<matmul2d_descriptor(BM, BN, static_cast<int>(dynamic_extent)), execution_simdgroups<simdgroups>> product;
    product.run(lines, columns, tile);
}

#define INSTANTIATE(name, T, BM, BN, simdgroups)                                                                         \
    template [[host_name(name)]] kernel void best<T, BM, BN, simdgroups>(device const T *, device const T *, device T *, \
                                                                         constant int3 &, constant int2 &, constant long2 &, uint3);
INSTANTIATE("best_float", float, 128, 256, 8)
INSTANTIATE("best_float_large", float, 512, 256, 1)
INSTANTIATE("best_half", half, 128, 256, 8)
INSTANTIATE("best_bfloat", bfloat, 128, 256, 8)

// For tensor maps, rows begin at multiples of 16 bytes. Copies rows of `size.x` elements of 16 bits to rows of `size.y`, a multiple
// of 8. A thread copies 8 elements.
kernel void best_rows(device const ushort *from [[buffer(0)]], device uint4 *to [[buffer(1)]], constant int2 &size [[buffer(2)]],
                      uint2 at [[thread_position_in_grid]]) {
    device const ushort *row = from + ulong(at.y) * uint(size.x);
    uint4 value = 0;
    _Pragma("clang loop unroll(full)") for (uint e = 0; e < 8; e++)
        if (int(at.x * 8 + e) < size.x) value[e / 2] |= uint(row[at.x * 8 + e]) << (e % 2 * 16);
    to[ulong(at.y) * uint(size.y / 8) + at.x] = value;
}
