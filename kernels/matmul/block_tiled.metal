// C = A · B, step 5: a thread computes 8 × 8 elements of C. For each term it reads 8 elements of A and 8 of B from threadgroup
// memory, and their outer product is 64 multiply-adds.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. Grid: N / 128 × M / 128 threadgroups, rounded up, of 256 threads.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

constant constexpr int BM = 128, BN = 128, BK = 8, TM = 8, TN = 8;

template <typename T>
kernel void block_tiled(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
                        constant int3 &size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                        uint index [[thread_index_in_threadgroup]]) {
    const auto A = layout_tensor(a, row_major(size.x, size.z)).masked();
    const auto B = layout_tensor(b, row_major(size.z, size.y)).masked();
    const auto C = layout_tensor(c, row_major(size.x, size.y)).masked();
    threadgroup T a_memory[BM * BK], b_memory[BK * BN];
    const auto a_tile = layout_tensor(a_memory, row_major<BM, BK>());
    const auto b_tile = layout_tensor(b_memory, row_major<BK, BN>());
    const int row = int(index) / (BN / TN), column = int(index) % (BN / TN);
    LocalTensor<float, TM, TN> sums;
    LocalTensor<float, TM, 1> a_part;
    LocalTensor<float, 1, TN> b_part;
    sums.fill(0);
    for (int block = 0; block * BK < size.z; block++) {
        copy_async<32, BK>(a_tile, A.template tile<BM, BK>(int(group.y), block), int(index));
        copy_async<2, BN>(b_tile, B.template tile<BK, BN>(block, int(group.x)), int(index));
        copy_async_wait_all();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < BK; k++) {
            a_part.copy_from(a_tile.template tile<TM, 1>(row, k));
            b_part.copy_from(b_tile.template tile<1, TN>(k, column));
            outer_product_acc(sums, a_part, b_part);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    C.template tile<BM, BN>(int(group.y), int(group.x)).template tile<TM, TN>(row, column).copy_from(sums);
}

#define INSTANTIATE(name, T)                                                                                             \
    template [[host_name(name)]] kernel void block_tiled<T>(device const T *, device const T *, device T *, constant int3 &, uint2, uint);
INSTANTIATE("block_tiled_float", float)
INSTANTIATE("block_tiled_half", half)
INSTANTIATE("block_tiled_bfloat", bfloat)
