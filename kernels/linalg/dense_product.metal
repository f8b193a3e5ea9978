// C += A · B or C = A · B on GPUs. A threadgroup computes a tile of TILE_ROWS × TILE_COLUMNS elements, a thread 8 × 8 of them;
// parts of A and B lie in threadgroup memory, twice, so that one is filled while the other is used. LEFT_ROWS: A's neighbours
// are along the depth, else along rows. The depth may be dealt out in chunks, whose sums become separate arrays.
struct product_size {
    uint rows, columns, depth;
    uint upper; // only elements on and above the diagonal of C are needed
    uint adds;
    uint tile_rows, tile_columns;
    uint chunk; // of the depth; 0: it is one
    long a_matrix, a_first, a_row, a_column;
    long b_matrix, b_first, b_row, b_column;
    long c_matrix, c_first, c_row, c_part;
};

constant constexpr uint DEPTH = 16, THREADS = TILE_ROWS * TILE_COLUMNS / 64;
constant constexpr uint A_LINE = TILE_ROWS + 4, B_LINE = TILE_COLUMNS;
constant constexpr uint A_LOADS = DEPTH * TILE_ROWS / THREADS, B_LOADS = DEPTH * TILE_COLUMNS / THREADS;

// What a thread loads in turn lies `a_step` and `b_step` apart, from a and b on.
struct thread_parts {
    device const float *a, *b;
    long a_step, b_step;
    uint row, column, a_depth, b_depth; // of its first elements
};
constant constexpr uint A_ROWS = LEFT_ROWS ? THREADS / DEPTH : 0, A_DEPTHS = LEFT_ROWS ? 0 : THREADS / TILE_ROWS,
                        B_DEPTHS = THREADS / TILE_COLUMNS;

// The parts from depth k0 on. whole: none of their elements lies outside of the matrices or past k1.
template <bool whole>
inline void load_parts(thread const thread_parts &from, thread const product_size &s, uint k0, uint k1,
                       thread float (&left)[A_LOADS], thread float (&right)[B_LOADS]) {
    device const float *a = from.a + k0 * s.a_column, *b = from.b + k0 * s.b_row;
    SMELT_UNROLL for (uint q = 0; q < A_LOADS; q++) {
        left[q] = whole || (k0 + from.a_depth + q * A_DEPTHS < k1 && from.row + q * A_ROWS < s.rows) ? *a : 0.0f;
        a += from.a_step;
    }
    SMELT_UNROLL for (uint q = 0; q < B_LOADS; q++) {
        right[q] = whole || (k0 + from.b_depth + q * B_DEPTHS < k1 && from.column < s.columns) ? *b : 0.0f;
        b += from.b_step;
    }
}

inline void load_parts(thread const thread_parts &from, thread const product_size &s, bool inside, uint k0, uint k1,
                       thread float (&left)[A_LOADS], thread float (&right)[B_LOADS]) {
    if (inside && k0 + DEPTH <= k1)
        load_parts<true>(from, s, k0, k1, left, right);
    else
        load_parts<false>(from, s, k0, k1, left, right);
}

inline void store_parts(threadgroup float *a_part, threadgroup float *b_part, uint index, thread float (&left)[A_LOADS],
                        thread float (&right)[B_LOADS]) {
    SMELT_UNROLL for (uint q = 0; q < A_LOADS; q++) {
        const uint e = index + q * THREADS;
        a_part[LEFT_ROWS ? e % DEPTH * A_LINE + e / DEPTH : e / TILE_ROWS * A_LINE + e % TILE_ROWS] = left[q];
    }
    SMELT_UNROLL for (uint q = 0; q < B_LOADS; q++) b_part[index + q * THREADS] = right[q];
}

// Groups: columns / TILE_COLUMNS × rows / TILE_ROWS × matrices · chunks, of THREADS threads.
kernel void linalg_product(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                           device float *c [[buffer(2)]], constant product_size &size [[buffer(3)]],
                           uint3 group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup float4 a_memory[2 * DEPTH * A_LINE / 4], b_memory[2 * DEPTH * B_LINE / 4];
    threadgroup float *a_part = (threadgroup float *)a_memory, *b_part = (threadgroup float *)b_memory;
    const product_size s = size; // stores might change what is behind the reference
    const uint row = group.y * TILE_ROWS, column = group.x * TILE_COLUMNS;
    if (s.upper && row >= column + TILE_COLUMNS) return;
    const uint chunks = s.chunk ? (s.depth + s.chunk - 1) / s.chunk : 1, matrix = group.z / chunks, chunk = group.z % chunks;
    const uint begin = chunk * s.chunk, end = s.chunk ? metal::min(s.depth, begin + s.chunk) : s.depth;
    a += matrix * s.a_matrix + s.a_first;
    b += matrix * s.b_matrix + s.b_first;
    c += matrix * s.c_matrix + s.c_first + chunk * s.c_part;
    // The thread's rows and columns are two runs of four each.
    const uint ty = index / (TILE_COLUMNS / 8), tx = index % (TILE_COLUMNS / 8);
    float sums[8][8], left[A_LOADS], right[B_LOADS];
    SMELT_UNROLL for (uint r = 0; r < 8; r++) SMELT_UNROLL for (uint q = 0; q < 8; q++) sums[r][q] = 0.0f;
    const uint a_row = LEFT_ROWS ? index / DEPTH : index % TILE_ROWS, a_depth = LEFT_ROWS ? index % DEPTH : index / TILE_ROWS,
               b_column = index % TILE_COLUMNS, b_depth = index / TILE_COLUMNS;
    const thread_parts from = {a + (row + a_row) * s.a_row + a_depth * s.a_column,
                               b + b_depth * s.b_row + (column + b_column) * s.b_column,
                               A_ROWS * s.a_row + A_DEPTHS * s.a_column, B_DEPTHS * s.b_row, row + a_row, column + b_column,
                               a_depth, b_depth};
    const bool inside = row + TILE_ROWS <= s.rows && column + TILE_COLUMNS <= s.columns;
    load_parts(from, s, inside, begin, end, left, right);
    store_parts(a_part, b_part, index, left, right);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint turn = 0;
    for (uint k0 = begin; k0 < end; k0 += DEPTH) {
        const bool more = k0 + DEPTH < end;
        if (more) load_parts(from, s, inside, k0 + DEPTH, end, left, right);
        threadgroup const float *a_now = a_part + turn * DEPTH * A_LINE, *b_now = b_part + turn * DEPTH * B_LINE;
        SMELT_UNROLL for (uint k = 0; k < DEPTH; k++) {
            const float4 a0 = *(threadgroup const float4 *)(a_now + k * A_LINE + ty * 4),
                         a1 = *(threadgroup const float4 *)(a_now + k * A_LINE + TILE_ROWS / 2 + ty * 4),
                         b0 = *(threadgroup const float4 *)(b_now + k * B_LINE + tx * 4),
                         b1 = *(threadgroup const float4 *)(b_now + k * B_LINE + TILE_COLUMNS / 2 + tx * 4);
            SMELT_UNROLL for (uint r = 0; r < 8; r++) {
                const float value = r < 4 ? a0[r] : a1[r - 4];
                SMELT_UNROLL for (uint q = 0; q < 4; q++) {
                    sums[r][q] = metal::fma(value, b0[q], sums[r][q]);
                    sums[r][q + 4] = metal::fma(value, b1[q], sums[r][q + 4]);
                }
            }
        }
        turn ^= 1;
        if (more) store_parts(a_part + turn * DEPTH * A_LINE, b_part + turn * DEPTH * B_LINE, index, left, right);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (row + TILE_ROWS <= s.rows && column + TILE_COLUMNS <= s.columns && ((ulong(c) | ulong(s.c_row) * 4) & 15) == 0) {
        SMELT_UNROLL for (uint r = 0; r < 8; r++) {
            const uint i = row + (r < 4 ? ty * 4 + r : TILE_ROWS / 2 + ty * 4 + r - 4);
            SMELT_UNROLL for (uint q = 0; q < 2; q++) {
                device float4 *to = (device float4 *)(c + i * s.c_row + column + q * TILE_COLUMNS / 2 + tx * 4);
                const float4 value = float4(sums[r][4 * q], sums[r][4 * q + 1], sums[r][4 * q + 2], sums[r][4 * q + 3]);
                *to = s.adds ? *to + value : value;
            }
        }
        return;
    }
    SMELT_UNROLL for (uint r = 0; r < 8; r++) {
        const uint i = row + (r < 4 ? ty * 4 + r : TILE_ROWS / 2 + ty * 4 + r - 4);
        SMELT_UNROLL for (uint q = 0; q < 8; q++) {
            const uint j = column + (q < 4 ? tx * 4 + q : TILE_COLUMNS / 2 + tx * 4 + q - 4);
            if (i >= s.rows || j >= s.columns) continue;
            device float *to = c + i * s.c_row + j;
            *to = s.adds ? *to + sums[r][q] : sums[r][q];
        }
    }
}
