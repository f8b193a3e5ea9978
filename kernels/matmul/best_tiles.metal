// C = A · B of floats on a GPU's plain cores, as fast as it gets: block_tiled_vectorized, and
//
// - the next tiles of A and B are read into registers while the threads multiply the last ones, and there are two of each in
//   threadgroup memory, so one barrier per tile is enough;
// - a simdgroup has 64 × 64 elements of C, and a thread 8 × 16 of them, in parts of 4 × 4, so that its reads of threadgroup memory
//   are vectors that lie side by side with those of its neighbours.
//
// Elements are added in the order of k, as in all steps before.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. Grid: N / 128 × M / 128 threadgroups, rounded up, of 128 threads.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;

constant constexpr int BM = 128, BN = 128, BK = 16, THREADS = 128;
constant constexpr int WM = 64, WN = 64, LANES_DOWN = 8, LANES_ACROSS = 4; // of a simdgroup
constant constexpr int TM = 8, TN = 16, DOWN = LANES_DOWN * 4, ACROSS = LANES_ACROSS * 4; // from one part of a thread to the next
constant constexpr int A_WIDTH = BM + 4; // of A's tile, which lies by columns: fewer writes of a simdgroup meet in a bank
// A tile in vectors: of a row, rows that all threads copy at once, and vectors of each thread.
constant constexpr int A_ACROSS = BK / 4, A_ROWS = THREADS / A_ACROSS, A_VECTORS = BM / A_ROWS;
constant constexpr int B_ACROSS = BN / 4, B_ROWS = THREADS / B_ACROSS, B_VECTORS = BK / B_ROWS;

// Four neighbours in a row; what lies outside is 0. `whole`: nothing does, and rows are multiples of vectors.
static float4 read_four(device const float *matrix, int row, int column, int rows, int columns, bool whole) {
    device const float *at = matrix + (ulong(row) * uint(columns) + uint(column));
    if (whole) return *(device const float4 *)at;
    float4 value = 0;
    SMELT_UNROLL for (int e = 0; e < 4; e++)
        if (row < rows && column + e < columns) value[e] = at[e];
    return value;
}

static void write_four(device float *matrix, int row, int column, int rows, int columns, bool whole, float4 value) {
    device float *at = matrix + (ulong(row) * uint(columns) + uint(column));
    if (whole) {
        *(device float4 *)at = value;
        return;
    }
    SMELT_UNROLL for (int e = 0; e < 4; e++)
        if (row < rows && column + e < columns) at[e] = value[e];
}

template <bool Whole>
static void multiply(device const float *a, device const float *b, device float *c, int3 size, int2 group, int index,
                     threadgroup float4 *a_memory, threadgroup float4 *b_memory) {
    const int simdgroup = index / 32, lane = index % 32, top = group.y * BM, left = group.x * BN;
    const int row = simdgroup / (BN / WN) * WM + lane / LANES_ACROSS * 4;
    const int column = simdgroup % (BN / WN) * WN + lane % LANES_ACROSS * 4;
    const int a_row = index / A_ACROSS, a_k = index % A_ACROSS * 4, b_k = index / B_ACROSS, b_column = index % B_ACROSS * 4;
    float4 a_next[A_VECTORS], b_next[B_VECTORS];
    const auto read = [&](int k) {
        SMELT_UNROLL for (int v = 0; v < A_VECTORS; v++)
            a_next[v] = read_four(a, top + a_row + v * A_ROWS, k + a_k, size.x, size.z, Whole);
        SMELT_UNROLL for (int v = 0; v < B_VECTORS; v++)
            b_next[v] = read_four(b, k + b_k + v * B_ROWS, left + b_column, size.z, size.y, Whole);
    };
    float sums[TM][TN];
    SMELT_UNROLL for (int i = 0; i < TM; i++)
        SMELT_UNROLL for (int j = 0; j < TN; j++) sums[i][j] = 0;
    read(0);
    for (int block = 0, second = 0; block < size.z; block += BK, second ^= 1) {
        threadgroup float *a_tile = (threadgroup float *)a_memory + second * (BK * A_WIDTH);
        threadgroup float4 *b_tile = b_memory + second * (BK * B_ACROSS);
        SMELT_UNROLL for (int v = 0; v < A_VECTORS; v++)
            SMELT_UNROLL for (int e = 0; e < 4; e++) a_tile[(a_k + e) * A_WIDTH + a_row + v * A_ROWS] = a_next[v][e];
        SMELT_UNROLL for (int v = 0; v < B_VECTORS; v++) b_tile[(b_k + v * B_ROWS) * B_ACROSS + b_column / 4] = b_next[v];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (block + BK < size.z) read(block + BK);
        SMELT_UNROLL for (int k = 0; k < BK; k++) {
            float4 a_part[TM / 4], b_part[TN / 4];
            SMELT_UNROLL for (int i = 0; i < TM / 4; i++)
                a_part[i] = *(threadgroup const float4 *)(a_tile + k * A_WIDTH + row + i * DOWN);
            SMELT_UNROLL for (int j = 0; j < TN / 4; j++) b_part[j] = b_tile[k * B_ACROSS + (column + j * ACROSS) / 4];
            SMELT_UNROLL for (int i = 0; i < TM; i++)
                SMELT_UNROLL for (int j = 0; j < TN; j++) sums[i][j] = fma(a_part[i / 4][i % 4], b_part[j / 4][j % 4], sums[i][j]);
        }
    }
    SMELT_UNROLL for (int i = 0; i < TM; i++)
        SMELT_UNROLL for (int j = 0; j < TN; j += 4)
            write_four(c, top + row + i / 4 * DOWN + i % 4, left + column + j / 4 * ACROSS, size.x, size.y, Whole,
                       float4(sums[i][j], sums[i][j + 1], sums[i][j + 2], sums[i][j + 3]));
}

kernel void best_float_tiles(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                             device float *c [[buffer(2)]], constant int3 &size [[buffer(3)]],
                             uint2 group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup float4 a_memory[2 * BK * A_WIDTH / 4], b_memory[2 * BK * B_ACROSS];
    if (size.x % BM == 0 && size.y % BN == 0 && size.z % BK == 0)
        multiply<true>(a, b, c, size, int2(group), int(index), a_memory, b_memory);
    else
        multiply<false>(a, b, c, size, int2(group), int(index), a_memory, b_memory);
}
