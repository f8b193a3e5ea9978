// C = A · B, C += A · B or C -= A · B on CPUs: each threadgroup, of one thread, hands its tile to the runtime's blocked product.
struct product_size {
    uint rows, columns, depth;
    uint upper;      // only elements on and above the diagonal of C are needed
    uint adds;       // 0: C = A · B; 1: it is added; 2: it is subtracted
    uint tile_rows, tile_columns;
    uint chunk;      // unused here
    long a_matrix, a_first, a_row, a_column;
    long b_matrix, b_first, b_row, b_column;
    long c_matrix, c_first, c_row, c_part;
};

// Columns of a strip across the diagonal: what lies below its last diagonal element is not computed.
constant constexpr uint STRIP = 64;

inline void multiply(device const float *a, device const float *b, device float *c, constant product_size &s, uint rows,
                     uint columns) {
    // Kinds and flags of abi/tile.h: floats; whether the product is added, and with which sign.
    const ulong form = 1ul | 1ul << 8 | 1ul << 16 | (s.adds ? 1ul << 24 : 0ul) | (s.adds == 2 ? 1ul << 26 : 0ul);
    __smelt_tile_product(form, ulong(rows), ulong(columns), ulong(s.depth), 0ul, 0ul, ulong(c), ulong(s.c_row), 1ul, 0ul,
                         ulong(a), ulong(s.a_row), ulong(s.a_column), 0ul, ulong(rows), 0ul, 0ul, 0ul, 0ul, 0ul, 0ul,
                         ulong(b), ulong(s.b_column), ulong(s.b_row), 0ul, ulong(columns), 0ul, 0ul, 0ul, 0ul, 0ul, 0ul);
}

kernel void linalg_product(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                           device float *c [[buffer(2)]], constant product_size &s [[buffer(3)]],
                           uint3 tile [[threadgroup_position_in_grid]]) {
    const uint row = tile.y * s.tile_rows, column = tile.x * s.tile_columns;
    const uint rows = metal::min(s.tile_rows, s.rows - row), columns = metal::min(s.tile_columns, s.columns - column);
    if (s.upper && row >= column + columns) return;
    a += tile.z * s.a_matrix + s.a_first + row * s.a_row;
    b += tile.z * s.b_matrix + s.b_first + column * s.b_column;
    c += tile.z * s.c_matrix + s.c_first + row * s.c_row + column;
    if (!s.upper || row + rows <= column + 1) {
        multiply(a, b, c, s, rows, columns);
        return;
    }
    for (uint strip = 0; strip < columns; strip += STRIP) {
        const uint wide = metal::min(STRIP, columns - strip), end = column + strip + wide;
        if (end > row) multiply(a, b + strip * s.b_column, c + strip, s, metal::min(rows, end - row), wide);
    }
}
