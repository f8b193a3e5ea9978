// C = A · B, step 3: a threadgroup computes 32 × 32 elements of C, and its threads load the tiles of A and B that these need
// into threadgroup memory together. Each element is then loaded once for 32 uses.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. Grid: N / 32 × M / 32 threadgroups, rounded up, of 1024 threads.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

constant constexpr int BM = 32, BN = 32, BK = 32;

template <typename T>
kernel void tiled(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
                  constant int3 &size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                  uint index [[thread_index_in_threadgroup]]) {
    const auto A = layout_tensor(a, row_major(size.x, size.z)).masked();
    const auto B = layout_tensor(b, row_major(size.z, size.y)).masked();
    const auto C = layout_tensor(c, row_major(size.x, size.y)).masked();
    threadgroup T a_memory[BM * BK], b_memory[BK * BN];
    const auto a_tile = layout_tensor(a_memory, row_major<BM, BK>());
    const auto b_tile = layout_tensor(b_memory, row_major<BK, BN>());
    const int row = int(index) / BN, column = int(index) % BN;
    float sum = 0;
    for (int block = 0; block * BK < size.z; block++) {
        copy_async<BM, BK>(a_tile, A.template tile<BM, BK>(int(group.y), block), int(index));
        copy_async<BK, BN>(b_tile, B.template tile<BK, BN>(block, int(group.x)), int(index));
        copy_async_wait_all();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < BK; k++) sum = fma(float(a_tile(row, k)), float(b_tile(k, column)), sum);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    C.template tile<BM, BN>(int(group.y), int(group.x)).store(row, column, T(sum));
}

#define INSTANTIATE(name, T)                                                                                             \
    template [[host_name(name)]] kernel void tiled<T>(device const T *, device const T *, device T *, constant int3 &, uint2, uint);
INSTANTIATE("tiled_float", float)
INSTANTIATE("tiled_half", half)
INSTANTIATE("tiled_bfloat", bfloat)
