// C = A · B on CPUs, for any strides and any number of matrices: what matmul_tiles.metal and matmul_few.metal share. The host writes
// the types of the elements as A_TYPE, B_TYPE and C_TYPE, and the sizes that src/ops/tiles.c fills in.
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
