// C = A · B, step 6: memory is read and written four elements at a time. The tile of A lies in threadgroup memory by columns,
// so that a thread's elements of it are neighbours, too. Tiles at an edge, and matrices whose rows are not multiples of four
// elements, are copied element by element.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. Grid: N / 128 × M / 128 threadgroups, rounded up, of 256 threads.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

constant constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;

template <typename T>
kernel void block_tiled_vectorized(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]],
                                   device T *c [[buffer(2)]], constant int3 &size [[buffer(3)]],
                                   uint2 group [[threadgroup_position_in_grid]],
                                   uint index [[thread_index_in_threadgroup]]) {
    const auto A = layout_tensor(a, row_major(size.x, size.z));
    const auto B = layout_tensor(b, row_major(size.z, size.y));
    const auto C = layout_tensor(c, row_major(size.x, size.y));
    threadgroup vec<T, 4> a_memory[BM * BK / 4], b_memory[BK * BN / 4];
    const auto a_tile = layout_tensor((threadgroup T *)a_memory, column_major<BM, BK>());
    const auto b_tile = layout_tensor((threadgroup T *)b_memory, row_major<BK, BN>());
    const int row = int(index) / (BN / TN), column = int(index) % (BN / TN), block_row = int(group.y), block_column = int(group.x);
    const bool vectors = size.y % 4 == 0 && size.z % 4 == 0 && (block_row + 1) * BM <= size.x && (block_column + 1) * BN <= size.y;
    LocalTensor<float, TM, TN> sums;
    LocalTensor<float, TM, 1> a_part;
    LocalTensor<float, 1, TN> b_part;
    sums.fill(0);
    for (int block = 0; block * BK < size.z; block++) {
        if (vectors && (block + 1) * BK <= size.z) {
            // One vector of each tile for each thread.
            const auto a_vectors = A.template tile<BM, BK>(block_row, block).template vectorize<4>();
            const int i = int(index) / 2, j = int(index) % 2;
            const vec<T, 4> value = a_vectors(i, j);
            for (int e = 0; e < 4; e++) a_tile(i, j * 4 + e) = value[e];
            const auto b_vectors = B.template tile<BK, BN>(block, block_column).template vectorize<4>();
            copy_async<BK, BN / 4>(b_tile.template vectorize<4>(), b_vectors, int(index));
        } else {
            copy_async<32, BK>(a_tile, A.masked().template tile<BM, BK>(block_row, block), int(index));
            copy_async<2, BN>(b_tile, B.masked().template tile<BK, BN>(block, block_column), int(index));
        }
        copy_async_wait_all();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        // Not unrolled: when ptxas unrolled it by four, the product took 1.5 times as long on an H200 (docs/matmul.md).
        _Pragma("clang loop unroll(disable)") for (int k = 0; k < BK; k++) {
            a_part.copy_from(a_tile.template tile<TM, 1>(row, k));
            b_part.copy_from(b_tile.template tile<1, TN>(k, column));
            outer_product_acc(sums, a_part, b_part);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (vectors) {
        const auto part = C.template tile<BM, BN>(block_row, block_column).template tile<TM, TN>(row, column).template vectorize<4>();
        SMELT_UNROLL for (int i = 0; i < TM; i++)
            SMELT_UNROLL for (int j = 0; j < TN / 4; j++)
                part(i, j) = vec<T, 4>(T(sums(i, 4 * j)), T(sums(i, 4 * j + 1)), T(sums(i, 4 * j + 2)), T(sums(i, 4 * j + 3)));
    } else {
        C.masked().template tile<BM, BN>(block_row, block_column).template tile<TM, TN>(row, column).copy_from(sums);
    }
}

#define INSTANTIATE(name, T)                                                                                             \
    template [[host_name(name)]] kernel void block_tiled_vectorized<T>(device const T *, device const T *, device T *, constant int3 &, uint2, uint);
INSTANTIATE("block_tiled_vectorized_float", float)
INSTANTIATE("block_tiled_vectorized_half", half)
INSTANTIATE("block_tiled_vectorized_bfloat", bfloat)
