// C = A · B on CPUs, for any strides and any number of matrices. The host writes the types of the elements as A_TYPE, B_TYPE
// and C_TYPE, and the sizes that src/ops/tiles.c fills in.
struct matrices {
    long rows, columns, depth;    // of one product: C has rows × columns elements
    long tile_rows, tile_columns; // of a threadgroup's part of C
    long first[3];                // first elements of A, B and C
    long stride[3][2];            // from row to row, from column to column
    uint batch_rank;              // the dimensions before, the innermost first
    uint batch_size[14];
    long batch_stride[3][14];
};

// The first elements that belong to a threadgroup's tile: rows of A, columns of B, elements of C.
inline void find_tile(constant matrices &m, uint3 tile, thread long (&at)[3]) {
    const long row = long(tile.y) * m.tile_rows, column = long(tile.x) * m.tile_columns;
    at[0] = m.first[0] + row * m.stride[0][0];
    at[1] = m.first[1] + column * m.stride[1][1];
    at[2] = m.first[2] + row * m.stride[2][0] + column * m.stride[2][1];
    uint rest = tile.z;
    for (uint d = 0; d < m.batch_rank; d++) {
        const long index = long(rest % m.batch_size[d]);
        rest /= m.batch_size[d];
        for (uint i = 0; i < 3; i++) at[i] += index * m.batch_stride[i][d];
    }
}

// The runtime's numbers of types (abi/tile.h).
template <typename T> struct kind;
template <> struct kind<float> { static constant constexpr ulong value = 1; };
template <> struct kind<half> { static constant constexpr ulong value = 2; };
template <> struct kind<bfloat> { static constant constexpr ulong value = 3; };
constant constexpr ulong FORM = kind<A_TYPE>::value | kind<B_TYPE>::value << 8 | kind<C_TYPE>::value << 16;

// Tiles. The one thread of a threadgroup hands its tile to the runtime's blocked product.
kernel void smelt_matmul(device const A_TYPE *a [[buffer(0)]], device const B_TYPE *b [[buffer(1)]],
                         device C_TYPE *c [[buffer(2)]], constant matrices &m [[buffer(3)]],
                         uint3 tile [[threadgroup_position_in_grid]]) {
    long at[3];
    find_tile(m, tile, at);
    const ulong rows = ulong(min(m.tile_rows, m.rows - long(tile.y) * m.tile_rows));
    const ulong columns = ulong(min(m.tile_columns, m.columns - long(tile.x) * m.tile_columns));
    __smelt_tile_product(FORM, rows, columns, ulong(m.depth), 0ul, 0ul, ulong(c + at[2]), ulong(m.stride[2][0]),
                         ulong(m.stride[2][1]), 0ul,
                         // The left operand: lines are rows of A.
                         ulong(a + at[0]), ulong(m.stride[0][0]), ulong(m.stride[0][1]), 0ul, rows, 0ul, 0ul, 0ul, 0ul, 0ul, 0ul,
                         // The right operand: lines are columns of B.
                         ulong(b + at[1]), ulong(m.stride[1][1]), ulong(m.stride[1][0]), 0ul, columns, 0ul, 0ul, 0ul, 0ul, 0ul,
                         0ul);
}

// A vector B, and rows of A whose elements are neighbours. A simdgroup sums ROWS rows at a time: lanes add every 32nd term.
constant constexpr int ROWS = 4;

kernel void smelt_matmul_vector(device const A_TYPE *a [[buffer(0)]], device const B_TYPE *b [[buffer(1)]],
                                device C_TYPE *c [[buffer(2)]], constant matrices &m [[buffer(3)]],
                                uint3 tile [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    long at[3];
    find_tile(m, tile, at);
    const long rows = min(m.tile_rows, m.rows - long(tile.y) * m.tile_rows), b_stride = m.stride[1][0];
    for (long row = 0; row < rows; row += ROWS) {
        device const A_TYPE *line[ROWS];
        for (int i = 0; i < ROWS; i++) line[i] = a + at[0] + min(row + i, rows - 1) * m.stride[0][0];
        float sums[ROWS] = {};
        for (long k = long(lane); k < m.depth; k += 32) {
            const float x = float(b[at[1] + k * b_stride]);
            for (int i = 0; i < ROWS; i++) sums[i] = fma(float(line[i][k]), x, sums[i]);
        }
        for (int i = 0; i < ROWS; i++) {
            const float sum = simd_sum(sums[i]);
            if (lane == 0 && row + i < rows) c[at[2] + (row + i) * m.stride[2][0]] = C_TYPE(sum);
        }
    }
}
