// C = A · B of floats on a GPU's plain cores, as fast as it gets: block_tiled_vectorized, and
//
// - there are two tiles of each matrix in threadgroup memory, and while the threads multiply one, copies of the next are under way,
//   so one barrier per tile is enough;
// - a simdgroup has 64 × 64 elements of C, and a thread 8 × 16 of them: rows 8 apart, so that the vectors which a simdgroup reads
//   from threadgroup memory lie in different banks, and columns in vectors. (A quarter of that in best_float_tiles_small, for
//   products whose large tiles would leave much of a GPU idle.)
//
// Elements are added in the order of k, as in all steps before.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. batches: by how many elements the next product's A and B lie behind. Grid: N / 128 ×
// M / 128 × products threadgroups, rounded up, of 128 threads; best_float_tiles_small: N / 64 × M / 64 of 128.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

constant constexpr int BK = 16;
constant constexpr int LANES_DOWN = 8, LANES_ACROSS = 4; // of a simdgroup, which has WM x WN elements of C
constant constexpr int A_WIDTH = BK + 4;                 // of a row of A's tile: eight rows meet different banks

template <int BM, int BN, int WM, int WN, bool Whole>
static void multiply(device const float *a, device const float *b, device float *c, int3 size, int2 group, int index,
                     threadgroup float *a_memory, threadgroup float *b_memory) {
    constexpr int TM = WM / LANES_DOWN, TN = WN / LANES_ACROSS, threads = BM / WM * (BN / WN) * 32;
    const auto A = layout_tensor(a, row_major(size.x, size.z));
    const auto B = layout_tensor(b, row_major(size.z, size.y));
    const auto C = layout_tensor(c, row_major(size.x, size.y));
    const int simdgroup = index / 32, lane = index % 32;
    const int row = simdgroup / (BN / WN) * WM + lane / LANES_ACROSS, column = simdgroup % (BN / WN) * WN + lane % LANES_ACROSS * 4;
    const auto copy = [&](int block) {
        const auto a_tile = layout_tensor(a_memory + block % 2 * (BM * A_WIDTH), Layout<BM, BK, A_WIDTH, 1>());
        const auto b_tile = layout_tensor(b_memory + block % 2 * (BK * BN), row_major<BK, BN>());
        if (Whole) {
            copy_async<threads * 4 / BK, BK / 4>(a_tile.template vectorize<4>(), A.template tile<BM, BK>(group.y, block).template vectorize<4>(), index);
            copy_async<threads * 4 / BN, BN / 4>(b_tile.template vectorize<4>(), B.template tile<BK, BN>(block, group.x).template vectorize<4>(), index);
        } else {
            copy_async<threads / BK, BK>(a_tile, A.masked().template tile<BM, BK>(group.y, block), index);
            copy_async<threads / BN, BN>(b_tile, B.masked().template tile<BK, BN>(block, group.x), index);
        }
    };
    LocalTensor<float, TM, TN> sums;
    sums.fill(0);
    if (size.z > 0) copy(0);
    for (int block = 0; block * BK < size.z; block++) {
        copy_async_wait_all();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if ((block + 1) * BK < size.z) copy(block + 1);
        threadgroup const float *a_tile = a_memory + block % 2 * (BM * A_WIDTH) + row * A_WIDTH;
        threadgroup const float *b_tile = b_memory + block % 2 * (BK * BN) + column;
        SMELT_UNROLL for (int k = 0; k < BK; k += 4) {
            float4 a_part[TM];
            SMELT_UNROLL for (int i = 0; i < TM; i++) a_part[i] = *(threadgroup const float4 *)(a_tile + i * LANES_DOWN * A_WIDTH + k);
            SMELT_UNROLL for (int e = 0; e < 4; e++) {
                float4 b_part[TN / 4];
                SMELT_UNROLL for (int j = 0; j < TN / 4; j++)
                    b_part[j] = *(threadgroup const float4 *)(b_tile + (k + e) * BN + j * LANES_ACROSS * 4);
                SMELT_UNROLL for (int i = 0; i < TM; i++)
                    SMELT_UNROLL for (int j = 0; j < TN; j++) sums(i, j) = fma(a_part[i][e], b_part[j / 4][j % 4], sums(i, j));
            }
        }
    }
    SMELT_UNROLL for (int i = 0; i < TM; i++)
        SMELT_UNROLL for (int j = 0; j < TN; j += 4) {
            const int at = group.y * BM + row + i * LANES_DOWN, from = group.x * BN + column + j * LANES_ACROSS;
            if (Whole) {
                *(device float4 *)&C(at, from) = float4(sums(i, j), sums(i, j + 1), sums(i, j + 2), sums(i, j + 3));
            } else {
                SMELT_UNROLL for (int e = 0; e < 4; e++) C.masked().store(at, from + e, sums(i, j + e));
            }
        }
}

template <int BM, int BN, int WM, int WN>
kernel void best_tiles(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *c [[buffer(2)]],
                       constant int3 &size [[buffer(3)]], constant long2 &batches [[buffer(4)]],
                       uint3 group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup float4 a_memory[2 * BM * A_WIDTH / 4], b_memory[2 * BK * BN / 4];
    const int2 at = int2(group.xy);
    a += group.z * batches.x;
    b += group.z * batches.y;
    c += group.z * (long(size.x) * size.y);
    // Rows of A, B and C begin at multiples of 16 bytes, and the tile of C is a whole one.
    if (size.z % BK == 0 && size.y % 4 == 0 && at.y * BM + BM <= size.x && at.x * BN + BN <= size.y)
        multiply<BM, BN, WM, WN, true>(a, b, c, size, at, int(index), (threadgroup float *)a_memory, (threadgroup float *)b_memory);
    else
        multiply<BM, BN, WM, WN, false>(a, b, c, size, at, int(index), (threadgroup float *)a_memory, (threadgroup float *)b_memory);
}

#define INSTANTIATE(name, BM, BN, WM, WN)                                                                                    \
    template [[host_name(name)]] kernel void best_tiles<BM, BN, WM, WN>(device const float *, device const float *, device float *, \
                                                                        constant int3 &, constant long2 &, uint3, uint);
INSTANTIATE("best_float_tiles", 128, 128, 64, 64)
INSTANTIATE("best_float_tiles_small", 64, 64, 32, 32)
