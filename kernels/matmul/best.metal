// C = A · B, as fast as it gets: Metal 4's tensor operation has the tile of C and all of K, so the compiler chooses how operands
// travel and which units multiply them. (Where C has few tiles, several threadgroups share a tile, each with a part of K.) On a
// CPU that is a blocked product in vector registers, on GPUs of compute capability 9.0 the asynchronous tensor cores, fed by tensor
// maps. Half and bfloat are multiplied exactly; float by multiply-adds, or as TF32 in math modes relaxed and fast.
//
// size: M, N, K and the depth of a part of K. A: M × K, B: K × N, C: M × N per part, all parts of a product before those of the next;
// best_sum_… adds the parts. A_DOWN, B_DOWN: the matrix is stored by columns. rows: the elements from one row of A, and of B, to the
// next (from one column, if it is stored by columns); batches: the same from one matrix to the next. Grid: N / BN × M / BM ×
// (products · parts) threadgroups, rounded up, of 32 threads per simdgroup.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

template <typename T, typename O, int BM, int BN, ushort simdgroups, bool A_DOWN, bool B_DOWN>
kernel void best(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device O *c [[buffer(2)]],
                 constant int4 &size [[buffer(3)]], constant int2 &rows [[buffer(4)]], constant long2 &batches [[buffer(5)]],
                 uint3 group [[threadgroup_position_in_grid]]) {
    const int parts = (size.z - 1) / size.w + 1, from = int(group.z) % parts * size.w, depth = min(size.w, size.z - from);
    const long index = int(group.z) / parts; // of the product
    // Operations take tensors of elements that are not const.
    auto left = const_cast<device T *>(a) + index * batches.x + long(from) * (A_DOWN ? rows.x : 1);
    auto right = const_cast<device T *>(b) + index * batches.y + long(from) * (B_DOWN ? 1 : rows.y);
    auto A = tensor(left, A_DOWN ? dextents<int, 2>(size.x, depth) : dextents<int, 2>(depth, size.x), array<int, 2>{1, rows.x});
    auto B = tensor(right, B_DOWN ? dextents<int, 2>(depth, size.y) : dextents<int, 2>(size.y, depth), array<int, 2>{1, rows.y});
    auto C = tensor(c + group.z * (long(size.x) * size.y), dextents<int, 2>(size.y, size.x));
    const int row = int(group.y) * BM, column = int(group.x) * BN;
    auto lines = A.slice(A_DOWN ? row : 0, A_DOWN ? 0 : row);
    auto columns = B.slice(B_DOWN ? 0 : column, B_DOWN ? column : 0);
    auto tile = C.slice(column, row);
    matmul2d<matmul2d_descriptor(BM, BN, static_cast<int>(dynamic_extent), A_DOWN, B_DOWN), execution_simdgroups<simdgroups>> product;
    product.run(lines, columns, tile);
}

#define INSTANTIATE(name, T, O, BM, BN, simdgroups, A_DOWN, B_DOWN)                      \
    template [[host_name(name)]] kernel void best<T, O, BM, BN, simdgroups, A_DOWN, B_DOWN>( \
        device const T *, device const T *, device O *, constant int4 &, constant int2 &, constant long2 &, uint3);
#ifdef BEST_FORM // the parameters of the only form to compile
#define INSTANTIATE_FORM(...) INSTANTIATE(__VA_ARGS__)
INSTANTIATE_FORM(BEST_NAME, BEST_FORM)
#else
INSTANTIATE("best_float", float, float, 128, 256, 8, false, false)
INSTANTIATE("best_float_large", float, float, 512, 256, 1, false, false)
INSTANTIATE("best_half", half, half, 128, 256, 8, false, false)
INSTANTIATE("best_bfloat", bfloat, bfloat, 128, 256, 8, false, false)
#endif

// C = the sums of the parts of each product. size: the elements of C, and the parts. A thread computes 4 elements. Grid: elements / 4 ×
// products, rounded up.
template <typename T>
kernel void best_sum(device const float *parts [[buffer(0)]], device T *c [[buffer(1)]], constant long2 &size [[buffer(2)]],
                     uint2 at [[thread_position_in_grid]]) {
    const long count = size.x, first = long(at.x) * 4;
    parts += at.y * size.y * count;
    c += at.y * count;
    if (count % 4 == 0) {
        float4 sum = 0;
        for (long part = 0; part < size.y; part++) sum += *(device const float4 *)(parts + part * count + first);
        *(device vec<T, 4> *)(c + first) = vec<T, 4>(sum);
        return;
    }
    for (long e = first; e < min(first + 4, count); e++) {
        float sum = 0;
        for (long part = 0; part < size.y; part++) sum += parts[part * count + e];
        c[e] = T(sum);
    }
}
#define INSTANTIATE_SUM(name, T) \
    template [[host_name(name)]] kernel void best_sum<T>(device const float *, device T *, constant long2 &, uint2);
INSTANTIATE_SUM("best_sum_float", float)
INSTANTIATE_SUM("best_sum_half", half)
INSTANTIATE_SUM("best_sum_bfloat", bfloat)

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
