// C = A · B, step 7: products of 8 × 8 matrices by whole simdgroups, which GPUs have units for. Each of four simdgroups computes
// 32 × 32 elements of C, 4 × 4 matrices, and each matrix it loads is used four times. Elements of float are multiplied by the
// units of NVIDIA's GPUs as TF32, in math modes relaxed and fast only.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. Grid: N / 64 × M / 64 threadgroups, rounded up, of 128 threads.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

constant constexpr int BM = 64, BN = 64, BK = 32, WM = 32, WN = 32;

template <typename T>
kernel void tensor_core(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
                        constant int3 &size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                        uint index [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    typedef TensorCore<T> core;
    const auto A = layout_tensor(a, row_major(size.x, size.z)).masked();
    const auto B = layout_tensor(b, row_major(size.z, size.y)).masked();
    const auto C = layout_tensor(c, row_major(size.x, size.y)).masked();
    // Both tiles; after the last product, sums on their way to C.
    threadgroup float memory[BM * BN];
    const auto a_tile = layout_tensor((threadgroup T *)memory, row_major<BM, BK>());
    const auto b_tile = layout_tensor((threadgroup T *)memory + BM * BK, row_major<BK, BN>());
    const auto c_tile = layout_tensor((threadgroup float *)memory, row_major<BM, BN>());
    const int row = int(simdgroup) / (BN / WN), column = int(simdgroup) % (BN / WN);
    typename core::result sums[WM / 8][WN / 8];
    for (int i = 0; i < WM / 8; i++)
        for (int j = 0; j < WN / 8; j++) sums[i][j] = core::zero();
    for (int block = 0; block * BK < size.z; block++) {
        copy_async<4, BK>(a_tile, A.template tile<BM, BK>(int(group.y), block), int(index));
        copy_async<2, BN>(b_tile, B.template tile<BK, BN>(block, int(group.x)), int(index));
        copy_async_wait_all();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < BK / 8; k++) {
            typename core::operand left[WM / 8], right[WN / 8];
            for (int i = 0; i < WM / 8; i++)
                left[i] = core::load_a(a_tile.template tile<WM, BK>(row, 0).template tile<8, 8>(i, k));
            for (int j = 0; j < WN / 8; j++)
                right[j] = core::load_b(b_tile.template tile<BK, WN>(0, column).template tile<8, 8>(k, j));
            for (int i = 0; i < WM / 8; i++)
                for (int j = 0; j < WN / 8; j++) sums[i][j] = core::mma_op(left[i], right[j], sums[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (int i = 0; i < WM / 8; i++)
        for (int j = 0; j < WN / 8; j++)
            core::store_d(c_tile.template tile<WM, WN>(row, column).template tile<8, 8>(i, j), sums[i][j]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    copy_async<2, BN>(C.template tile<BM, BN>(int(group.y), int(group.x)), c_tile, int(index));
}

#define INSTANTIATE(name, T)                                                                                             \
    template [[host_name(name)]] kernel void tensor_core<T>(device const T *, device const T *, device T *, constant int3 &, uint2, uint, uint);
INSTANTIATE("tensor_core_float", float)
INSTANTIATE("tensor_core_half", half)
INSTANTIATE("tensor_core_bfloat", bfloat)
