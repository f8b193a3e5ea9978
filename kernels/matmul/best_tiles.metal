// C = A · B of floats on a GPU's plain cores, as fast as it gets: block_tiled_vectorized, and
//
// - there are two tiles of each matrix in threadgroup memory, and while the threads multiply one, they load the next into registers,
//   so one barrier per tile is enough;
// - a simdgroup has 64 × 64 elements of C, and a thread 8 × 16 of them, in vectors of 4 rows and 4 columns, so what a simdgroup
//   reads from threadgroup memory at a time lies in different banks. (Less than that in smaller tiles, for products whose large tiles
//   would leave much of a GPU idle.)
// - A's tile is stored by columns. Registers with even and with odd numbers are two banks, of which each delivers one operand per
//   cycle. A multiply-add has three operands, so it can reuse one of the multiply-add before it, and the other two must lie in
//   different banks. With vectors along A's rows, the bank of an element of A depends on its row only, and the sums of that row can lie
//   in the other bank. With vectors along k it would change with each k, and half of the multiply-adds would take two cycles.
//
// Elements are added in the order of k, as in all steps before. Where C has few tiles, several threadgroups share a tile, and each has
// a part of K of `depth` elements. They write matrices of their own, which best_sum_float of best.metal adds.
//
// size: M, N, K and depth, which is a multiple of 8. A: M × K, B: K × N, C: M × N per part, all parts of a product before those of the
// next. A_DOWN, B_DOWN: the matrix is stored by columns. batches: the elements from A, and from B, of one product to the next. Grid:
// N / BN × M / BM × (products · K / depth) threadgroups, rounded up, of (BM / WM) · (BN / WN) simdgroups.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

constant constexpr int BK = 8;

// The vectors of 4 elements that a thread loads of each tile of `Rows` × `Columns` elements of a matrix; advance() goes to the next
// tile. `Whole`: no tile reaches past the matrix's edge; otherwise elements outside the matrix are 0.
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

// Stores the vectors of a part: as they lie, or, if `Turned`, each as a column.
template <bool Turned, class P> static void store_part(const thread P &part, threadgroup float *tile, int pitch) {
    SMELT_UNROLL for (int v = 0; v < part.count; v++)
        if (Turned) {
            SMELT_UNROLL for (int e = 0; e < 4; e++)
                tile[(part.column + e) * pitch + part.row + v * part.rows_between] = part.values[v][e];
        } else {
            *(threadgroup float4 *)(tile + (part.row + v * part.rows_between) * pitch + part.column) = part.values[v];
        }
}

template <int BM, int BN, int WM, int WN, bool A_DOWN, bool B_DOWN, bool Whole>
static void multiply(device const float *a, device const float *b, device float *c, int4 size, int3 group, int index,
                     threadgroup float *a_memory, threadgroup float *b_memory) {
    constexpr int TM = WM / 8, TN = WN / 4, threads = BM / WM * (BN / WN) * 32, a_pitch = BM + 4, b_pitch = B_DOWN ? BN + 4 : BN;
    const int simdgroup = index / 32, lane = index % 32;
    const int row = simdgroup / (BN / WN) * WM + lane / 4 * 4, column = simdgroup % (BN / WN) * WN + lane % 4 * 4;
    const int from = group.z * size.w, blocks = (min(size.w, size.z - from) + BK - 1) / BK;
    const int2 a_first = int2(group.y * BM, from), b_first = int2(from, group.x * BN);
    Part<A_DOWN ? BK : BM, A_DOWN ? BM : BK, threads, Whole> a_next(a, A_DOWN ? size.zx : size.xz, A_DOWN ? a_first.yx : a_first, index);
    Part<B_DOWN ? BN : BK, B_DOWN ? BK : BN, threads, Whole> b_next(b, B_DOWN ? size.yz : size.zy, B_DOWN ? b_first.yx : b_first, index);
    // After the last block, load and store take it once more, into the tile that is no longer read: if they depended on a condition,
    // the loads would be moved down to the stores.
    const auto load = [&](bool more) {
        const int step = more ? BK : 0, a_stride = A_DOWN ? size.x : size.z, b_stride = B_DOWN ? size.z : size.y;
        a_next.load(a_stride);
        b_next.load(b_stride);
        a_next.advance(A_DOWN ? step : 0, A_DOWN ? 0 : step, a_stride);
        b_next.advance(B_DOWN ? 0 : step, B_DOWN ? step : 0, b_stride);
    };
    const auto store = [&](int block) {
        store_part<!A_DOWN>(a_next, a_memory + block % 2 * (BK * a_pitch), a_pitch);
        store_part<B_DOWN>(b_next, b_memory + block % 2 * (BK * b_pitch), b_pitch);
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
        threadgroup const float *a_tile = a_memory + block % 2 * (BK * a_pitch) + row;
        threadgroup const float *b_tile = b_memory + block % 2 * (BK * b_pitch) + column;
        SMELT_UNROLL for (int k = 0; k < BK; k++) {
            float4 a_part[TM / 4], b_part[TN / 4];
            SMELT_UNROLL for (int i = 0; i < TM / 4; i++) a_part[i] = *(threadgroup const float4 *)(a_tile + k * a_pitch + i * 32);
            SMELT_UNROLL for (int j = 0; j < TN / 4; j++) b_part[j] = *(threadgroup const float4 *)(b_tile + k * b_pitch + j * 16);
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

template <int BM, int BN, int WM, int WN, bool A_DOWN, bool B_DOWN>
kernel void best_tiles(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *c [[buffer(2)]],
                       constant int4 &size [[buffer(3)]], constant long2 &batches [[buffer(4)]],
                       uint3 group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup float4 a_memory[2 * BK * (BM + 4) / 4], b_memory[2 * BK * (B_DOWN ? BN + 4 : BN) / 4];
    const uint parts = (size.z - 1) / size.w + 1;
    const int3 at = int3(group.x, group.y, group.z % parts);
    a += group.z / parts * batches.x;
    b += group.z / parts * batches.y;
    c += group.z * (long(size.x) * size.y);
    // Whether the stored rows of A and B begin at multiples of 16 bytes.
    const bool aligned = size.z % BK == 0 && (A_DOWN ? size.x : 0) % 4 == 0 && (B_DOWN ? 0 : size.y) % 4 == 0;
    const auto a_tiles = (threadgroup float *)a_memory, b_tiles = (threadgroup float *)b_memory;
    if (aligned && at.y * BM + BM <= size.x && at.x * BN + BN <= size.y)
        multiply<BM, BN, WM, WN, A_DOWN, B_DOWN, true>(a, b, c, size, at, int(index), a_tiles, b_tiles);
    else
        multiply<BM, BN, WM, WN, A_DOWN, B_DOWN, false>(a, b, c, size, at, int(index), a_tiles, b_tiles);
}

#define INSTANTIATE(name, BM, BN, WM, WN, A_DOWN, B_DOWN)                           \
    template [[host_name(name)]] kernel void best_tiles<BM, BN, WM, WN, A_DOWN, B_DOWN>( \
        device const float *, device const float *, device float *, constant int4 &, constant long2 &, uint3, uint);
#ifdef BEST_FORM // the parameters of the only form to compile
#define INSTANTIATE_FORM(...) INSTANTIATE(__VA_ARGS__)
INSTANTIATE_FORM(BEST_NAME, BEST_FORM)
#else
INSTANTIATE("best_float_tiles", 128, 128, 64, 64, false, false)
INSTANTIATE("best_float_tiles_small", 64, 64, 64, 32, false, false)
#endif
