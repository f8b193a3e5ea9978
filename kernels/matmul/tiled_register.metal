// C = A · B, step 4: a thread computes TM elements of a column of C. An element of B that it has read from threadgroup memory
// is used TM times from a register.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. Grid: N / 64 × M / 64 threadgroups, rounded up, of 512 threads.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

constant constexpr int BM = 64, BN = 64, BK = 8, TM = 8;

template <typename T>
kernel void tiled_register(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
                           constant int3 &size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                           uint index [[thread_index_in_threadgroup]]) {
    const auto A = layout_tensor(a, row_major(size.x, size.z)).masked();
    const auto B = layout_tensor(b, row_major(size.z, size.y)).masked();
    const auto C = layout_tensor(c, row_major(size.x, size.y)).masked();
    threadgroup T a_memory[BM * BK], b_memory[BK * BN];
    const auto a_tile = layout_tensor(a_memory, row_major<BM, BK>());
    const auto b_tile = layout_tensor(b_memory, row_major<BK, BN>());
    const int row = int(index) / BN, column = int(index) % BN;
    LocalTensor<float, TM, 1> sums;
    sums.fill(0);
    for (int block = 0; block * BK < size.z; block++) {
        copy_async<BM, BK>(a_tile, A.template tile<BM, BK>(int(group.y), block), int(index));
        copy_async<BK, BN>(b_tile, B.template tile<BK, BN>(block, int(group.x)), int(index));
        copy_async_wait_all();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const auto rows = a_tile.template tile<TM, BK>(row, 0);
        for (int k = 0; k < BK; k++) {
            const float b_value = float(b_tile(k, column));
            for (int t = 0; t < TM; t++) sums(t, 0) = fma(float(rows(t, k)), b_value, sums(t, 0));
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    C.template tile<BM, BN>(int(group.y), int(group.x)).template tile<TM, 1>(row, column).copy_from(sums);
}

#define INSTANTIATE(name, T)                                                                                             \
    template [[host_name(name)]] kernel void tiled_register<T>(device const T *, device const T *, device T *, constant int3 &, uint2, uint);
INSTANTIATE("tiled_register_float", float)
INSTANTIATE("tiled_register_half", half)
INSTANTIATE("tiled_register_bfloat", bfloat)
