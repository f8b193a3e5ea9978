// Products with few columns, after the text of matmul_sizes.metal. The host defines KERNEL, the kernel's name; PRODUCT, one of
// the functions below; and B_STRIDE, the distance between terms in a column of B. A tile has all columns. Functions read ROWS rows
// of A and COLUMNS columns of B at a time; where fewer are left, they read the last one again.
inline device const B_TYPE *column_of(device const B_TYPE *b, constant matrices &m, long j) {
    return b + min(j, m.columns - 1) * m.stride[1][1];
}

// The terms of a row of A are contiguous. A simdgroup computes ROWS × COLUMNS sums at a time; each lane adds every 32nd term.
template <int ROWS, int COLUMNS>
inline void add_along(device const A_TYPE *a, device const B_TYPE *b, device C_TYPE *c, constant matrices &m, long rows, uint lane) {
    const long b_stride = B_STRIDE;
    for (long row = 0; row < rows; row += ROWS)
        for (long column = 0; column < m.columns; column += COLUMNS) {
            device const A_TYPE *line[ROWS];
            device const B_TYPE *other[COLUMNS];
            float sums[ROWS][COLUMNS] = {};
            for (int i = 0; i < ROWS; i++) line[i] = a + min(row + i, rows - 1) * m.stride[0][0];
            for (int j = 0; j < COLUMNS; j++) other[j] = column_of(b, m, column + j);
            for (long k = long(lane); k < m.depth; k += 32) {
                float x[COLUMNS];
                for (int j = 0; j < COLUMNS; j++) x[j] = float(other[j][k * b_stride]);
                for (int i = 0; i < ROWS; i++)
                    for (int j = 0; j < COLUMNS; j++) sums[i][j] = fma(float(line[i][k]), x[j], sums[i][j]);
            }
            for (int i = 0; i < ROWS; i++)
                for (int j = 0; j < COLUMNS; j++) {
                    const float sum = simd_sum(sums[i][j]);
                    if (lane == 0 && row + i < rows && column + j < m.columns)
                        c[(row + i) * m.stride[2][0] + (column + j) * m.stride[2][1]] = C_TYPE(sum);
                }
        }
}

// The rows of a column of A are contiguous. Each lane computes the sums of ROWS rows and adds the terms in order.
template <int ROWS, int COLUMNS>
inline void add_across(device const A_TYPE *a, device const B_TYPE *b, device C_TYPE *c, constant matrices &m, long rows, uint lane) {
    const long a_stride = m.stride[0][1], b_stride = B_STRIDE;
    for (long row = 0; row < rows; row += 32 * ROWS)
        for (long column = 0; column < m.columns; column += COLUMNS) {
            device const B_TYPE *other[COLUMNS];
            float sums[ROWS][COLUMNS] = {};
            for (int j = 0; j < COLUMNS; j++) other[j] = column_of(b, m, column + j);
            for (long k = 0; k < m.depth; k++)
                for (int i = 0; i < ROWS; i++) {
                    const long at = row + 32 * i + long(lane);
                    const float term = at < rows ? float(a[at + k * a_stride]) : 0.0f;
                    for (int j = 0; j < COLUMNS; j++) sums[i][j] = fma(term, float(other[j][k * b_stride]), sums[i][j]);
                }
            for (int i = 0; i < ROWS; i++) {
                const long at = row + 32 * i + long(lane);
                for (int j = 0; j < COLUMNS; j++)
                    if (at < rows && column + j < m.columns)
                        c[at * m.stride[2][0] + (column + j) * m.stride[2][1]] = C_TYPE(sums[i][j]);
            }
        }
}

// The same for one column. The sums of 32 STRIP rows are kept in memory, and TERMS terms at a time are added to them. So A and the
// sums are read in the order of their rows, which hardware prefetches, and few registers are needed.
constant constexpr int STRIP = 32, TERMS = 8;
template <int terms> inline float add_terms(device const A_TYPE *a, long stride, thread const float *x, float sum) {
    for (int t = 0; t < terms; t++) sum = fma(float(a[t * stride]), x[t], sum);
    return sum;
}
template <int terms>
inline void add_strip(device const A_TYPE *a, long stride, thread const float *x, thread float *sums, long rows, long lane) {
    const int whole = int(rows / 32);
    for (int i = 0; i < whole; i++) sums[i] = add_terms<terms>(a + 32 * i + lane, stride, x, sums[i]);
    if (32 * whole + lane < rows) sums[whole] = add_terms<terms>(a + 32 * whole + lane, stride, x, sums[whole]);
}
inline void add_across_column(device const A_TYPE *a, device const B_TYPE *b, device C_TYPE *c, constant matrices &m, long rows, uint lane) {
    const long a_stride = m.stride[0][1], b_stride = B_STRIDE;
    for (long row = 0; row < rows; row += 32 * STRIP) {
        const long here = min(rows - row, 32l * STRIP);
        float sums[STRIP + 1] = {}, x[TERMS];
        long k = 0;
        for (; k + TERMS <= m.depth; k += TERMS) {
            for (int t = 0; t < TERMS; t++) x[t] = float(b[(k + t) * b_stride]);
            add_strip<TERMS>(a + row + k * a_stride, a_stride, x, sums, here, long(lane));
        }
        for (; k < m.depth; k++) {
            x[0] = float(b[k * b_stride]);
            add_strip<1>(a + row + k * a_stride, a_stride, x, sums, here, long(lane));
        }
        for (int i = 0; i <= int(here / 32); i++)
            if (32 * i + long(lane) < here) c[(row + 32 * i + long(lane)) * m.stride[2][0]] = C_TYPE(sums[i]);
    }
}

// One row and one column. Each lane has four sums.
inline void add_dot(device const A_TYPE *a, device const B_TYPE *b, device C_TYPE *c, constant matrices &m, long, uint lane) {
    const long b_stride = B_STRIDE;
    float sums[4] = {};
    long first = 0;
    for (; first + 128 <= m.depth; first += 128)
        for (int i = 0; i < 4; i++) {
            const long k = first + 32 * i + long(lane);
            sums[i] = fma(float(a[k]), float(b[k * b_stride]), sums[i]);
        }
    for (long k = first + long(lane); k < m.depth; k += 32) sums[0] = fma(float(a[k]), float(b[k * b_stride]), sums[0]);
    const float sum = simd_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    if (lane == 0) c[0] = C_TYPE(sum);
}

kernel void KERNEL(device const A_TYPE *a [[buffer(0)]], device const B_TYPE *b [[buffer(1)]], device C_TYPE *c [[buffer(2)]],
                   constant matrices &m [[buffer(3)]], uint3 tile [[threadgroup_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]]) {
    long at[3];
    find_tile(m, tile, at);
    PRODUCT(a + at[0], b + at[1], c + at[2], m, min(m.tile_rows, m.rows - long(tile.y) * m.tile_rows), lane);
}
