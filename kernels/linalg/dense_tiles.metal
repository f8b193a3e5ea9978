// C += A · B or C = A · B on CPUs: each threadgroup, of one thread, hands its tile to the runtime's blocked product.
struct product_size {
    uint rows, columns, depth;
    uint upper;      // only elements on and above the diagonal of C are needed
    uint adds;
    uint tile_rows, tile_columns;
    uint chunk;      // unused here
    long a_matrix, a_first, a_row, a_column;
    long b_matrix, b_first, b_row, b_column;
    long c_matrix, c_first, c_row, c_part;
};

kernel void linalg_product(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                           device float *c [[buffer(2)]], constant product_size &s [[buffer(3)]],
                           uint3 tile [[threadgroup_position_in_grid]]) {
    const uint row = tile.y * s.tile_rows, column = tile.x * s.tile_columns;
    const uint rows = metal::min(s.tile_rows, s.rows - row), columns = metal::min(s.tile_columns, s.columns - column);
    if (s.upper && row >= column + columns) return;
    a += tile.z * s.a_matrix + s.a_first + row * s.a_row;
    b += tile.z * s.b_matrix + s.b_first + column * s.b_column;
    c += tile.z * s.c_matrix + s.c_first + row * s.c_row + column;
    // Kinds and flags of abi/tile.h: floats, and whether the product is added.
    const ulong form = 1ul | 1ul << 8 | 1ul << 16 | (s.adds ? 1ul << 24 : 0ul);
    __smelt_tile_product(form, ulong(rows), ulong(columns), ulong(s.depth), 0ul, 0ul, ulong(c), ulong(s.c_row), 1ul, 0ul,
                         ulong(a), ulong(s.a_row), ulong(s.a_column), 0ul, ulong(rows), 0ul, 0ul, 0ul, 0ul, 0ul, 0ul,
                         ulong(b), ulong(s.b_column), ulong(s.b_row), 0ul, ulong(columns), 0ul, 0ul, 0ul, 0ul, 0ul, 0ul);
}
