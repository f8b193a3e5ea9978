// C = A · B of floats on a GPU's plain cores, as fast as it gets: block_tiled_vectorized, and
//
// - there are two tiles of each matrix in threadgroup memory, and while the threads multiply one, they load the next into registers,
//   so one barrier per tile is enough;
// - a simdgroup has 64 × 64 elements of C, and a thread 8 × 16 of them, in vectors of 4 rows and 4 columns, so what a simdgroup
//   reads from threadgroup memory at a time lies in different banks. (Half of that in best_float_tiles_small, for products whose
//   large tiles would leave much of a GPU idle.)
// - A's tile is stored by columns. Registers with even and with odd numbers are two banks, of which each delivers one operand per
//   cycle. A multiply-add has three operands, so it can reuse one of the multiply-add before it, and the other two must lie in
//   different banks. With vectors along A's rows, the bank of an element of A depends on its row only, and the sums of that row can lie
//   in the other bank. With vectors along k it would change with each k, and half of the multiply-adds would take two cycles.
//
// Elements are added in the order of k, as in all steps before. Where C has few tiles, several threadgroups share a tile, and each has
// a part of K of `depth` elements. They write matrices of their own, which best_float_sum adds up.
//
// size: M, N, K and depth, which is a multiple of 8. A: M × K, B: K × N, C: M × N per part, all parts of a product before those of the
// next. batches: from A and B of a product to those of the next, in elements. Grid: N / 128 × M / 128 × (products · K / depth)
// threadgroups of 128 threads, rounded up; best_float_tiles_small: N / 64 × M / 64 × … of 64 threads.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

constant constexpr int BK = 8;

// The vectors of 4 elements that a thread loads of each tile of `Rows` × `Columns` elements of a matrix; advance() goes to the next
// tile. `Whole`: no tile reaches over the matrix's edge; otherwise elements outside the matrix are 0.
template <int Rows, int Columns, int threads, bool Whole> struct Part {
    static constant constexpr int rows_between = threads / (Columns / 4), count = Rows / rows_between;
    device const float *from;
    int row, column; // of the first vector in a tile
    int2 left;       // rows and columns of the matrix from there on
    float4 values[count];
    Part(device const float *matrix, int2 size, int2 first, int index) : row(index / (Columns / 4)), column(index % (Columns / 4) * 4) {
        from = matrix + long(first.x + row) * size.y + first.y + column;
        left = size - first - int2(row, column);
    }
    void load(int stride) {
        SMELT_UNROLL for (int v = 0; v < count; v++) {
            device const float *vector = from + long(v * rows_between) * stride;
            if (Whole) {
                values[v] = *(device const float4 *)vector;
            } else {
                SMELT_UNROLL for (int e = 0; e < 4; e++) values[v][e] = v * rows_between < left.x && e < left.y ? vector[e] : 0;
            }
        }
    }
    void advance(int rows, int columns, int stride) {
        from += long(rows) * stride + columns;
        left -= int2(rows, columns);
    }
};

template <int BM, int BN, int WM, int WN, bool Whole>
static void multiply(device const float *a, device const float *b, device float *c, int4 size, int3 group, int index,
                     threadgroup float *a_memory, threadgroup float *b_memory) {
    constexpr int TM = WM / 8, TN = WN / 4, threads = BM / WM * (BN / WN) * 32, pitch = BM + 4;
    const int simdgroup = index / 32, lane = index % 32;
    const int row = simdgroup / (BN / WN) * WM + lane / 4 * 4, column = simdgroup % (BN / WN) * WN + lane % 4 * 4;
    const int from = group.z * size.w, blocks = (min(size.w, size.z - from) + BK - 1) / BK;
    Part<BM, BK, threads, Whole> a_next(a, size.xz, int2(group.y * BM, from), index);
    Part<BK, BN, threads, Whole> b_next(b, size.zy, int2(from, group.x * BN), index);
    // After the last block, load and store take it once more, into the tile that is no longer read: if they depended on a condition,
    // the loads would be moved down to the stores.
    const auto load = [&](bool more) {
        a_next.load(size.z);
        b_next.load(size.y);
        a_next.advance(0, more ? BK : 0, size.z);
        b_next.advance(more ? BK : 0, 0, size.y);
    };
    const auto store = [&](int block) {
        threadgroup float *a_tile = a_memory + block % 2 * (BK * pitch), *b_tile = b_memory + block % 2 * (BK * BN);
        SMELT_UNROLL for (int v = 0; v < a_next.count; v++)
            SMELT_UNROLL for (int e = 0; e < 4; e++)
                a_tile[(a_next.column + e) * pitch + a_next.row + v * a_next.rows_between] = a_next.values[v][e];
        SMELT_UNROLL for (int v = 0; v < b_next.count; v++)
            *(threadgroup float4 *)(b_tile + (b_next.row + v * b_next.rows_between) * BN + b_next.column) = b_next.values[v];
    };
    LocalTensor<float, TM, TN> sums;
    sums.fill(0);
    if (blocks > 0) {
        load(blocks > 1);
        store(0);
    }
    for (int block = 0; block < blocks; block++) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        load(block + 2 < blocks);
        threadgroup const float *a_tile = a_memory + block % 2 * (BK * pitch) + row, *b_tile = b_memory + block % 2 * (BK * BN) + column;
        SMELT_UNROLL for (int k = 0; k < BK; k++) {
            float4 a_part[TM / 4], b_part[TN / 4];
            SMELT_UNROLL for (int i = 0; i < TM / 4; i++) a_part[i] = *(threadgroup const float4 *)(a_tile + k * pitch + i * 32);
            SMELT_UNROLL for (int j = 0; j < TN / 4; j++) b_part[j] = *(threadgroup const float4 *)(b_tile + k * BN + j * 16);
            SMELT_UNROLL for (int j = 0; j < TN; j++)
                SMELT_UNROLL for (int i = 0; i < TM; i++) sums(i, j) = fma(a_part[i / 4][i % 4], b_part[j / 4][j % 4], sums(i, j));
        }
        store(block + 1);
    }
    SMELT_UNROLL for (int i = 0; i < TM; i++)
        SMELT_UNROLL for (int j = 0; j < TN; j += 4) {
            const int at = group.y * BM + row + i / 4 * 32 + i % 4, from = group.x * BN + column + j * 4;
            volatile device float *to = c + long(at) * size.y + from;
            // One by one, and volatile, so that they stay so: a store of a vector would need its sums in adjacent registers.
            SMELT_UNROLL for (int e = 0; e < 4; e++)
                if (Whole || (at < size.x && from + e < size.y)) to[e] = sums(i, j + e);
        }
}

template <int BM, int BN, int WM, int WN>
kernel void best_tiles(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *c [[buffer(2)]],
                       constant int4 &size [[buffer(3)]], constant long2 &batches [[buffer(4)]],
                       uint3 group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup float4 a_memory[2 * BK * (BM + 4) / 4], b_memory[2 * BK * BN / 4];
    const uint parts = (size.z - 1) / size.w + 1;
    const int3 at = int3(group.x, group.y, group.z % parts);
    a += group.z / parts * batches.x;
    b += group.z / parts * batches.y;
    c += group.z * (long(size.x) * size.y);
    // Whether rows of A, B and C begin at multiples of 16 bytes, and the tile of C lies inside.
    if (size.z % BK == 0 && size.y % 4 == 0 && at.y * BM + BM <= size.x && at.x * BN + BN <= size.y)
        multiply<BM, BN, WM, WN, true>(a, b, c, size, at, int(index), (threadgroup float *)a_memory, (threadgroup float *)b_memory);
    else
        multiply<BM, BN, WM, WN, false>(a, b, c, size, at, int(index), (threadgroup float *)a_memory, (threadgroup float *)b_memory);
}

#define INSTANTIATE(name, BM, BN, WM, WN)                                                                                    \
    template [[host_name(name)]] kernel void best_tiles<BM, BN, WM, WN>(device const float *, device const float *, device float *, \
                                                                        constant int4 &, constant long2 &, uint3, uint);
INSTANTIATE("best_float_tiles", 128, 128, 64, 64)
INSTANTIATE("best_float_tiles_small", 64, 64, 64, 32)

// C = the sums of the parts of each product. size: the elements of C, and the parts. A thread computes 4 elements. Grid: elements / 4 ×
// products, rounded up.
kernel void best_float_sum(device const float *parts [[buffer(0)]], device float *c [[buffer(1)]], constant long2 &size [[buffer(2)]],
                           uint2 at [[thread_position_in_grid]]) {
    const long count = size.x, first = long(at.x) * 4;
    parts += at.y * size.y * count;
    c += at.y * count;
    if (count % 4 == 0) {
        float4 sum = 0;
        for (long part = 0; part < size.y; part++) sum += *(device const float4 *)(parts + part * count + first);
        *(device float4 *)(c + first) = sum;
        return;
    }
    for (long e = first; e < min(first + 4, count); e++) {
        float sum = 0;
        for (long part = 0; part < size.y; part++) sum += parts[part * count + e];
        c[e] = sum;
    }
}
