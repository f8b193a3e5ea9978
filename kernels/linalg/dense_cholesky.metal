// One diagonal block of a Cholesky factorisation A = Uᵀ U, of at most 64 × 64 elements, by one threadgroup for each matrix. The
// strides say whether a lower or an upper factor is read and written. A matrix of no more than 64 rows is one block.
struct cholesky_size {
    uint n, first, size; // the block: rows first … first + size - 1 of n
    uint clear;          // the elements below the diagonal of U become 0
    uint jitter;         // jitter[matrix] is added to the diagonal
    uint pad;
    long in_matrix, in_first, in_row, in_column;
    long out_matrix, out_first, out_row, out_column;
};

// Codes of dbg: see src/linalg/health.h.
constant constexpr uint NOT_POSITIVE = 6, NOT_FINITE = 4;

// What the block's pivots say of the matrix.
template <typename Size>
inline void report(device float *dbg, Size &s, uint failed, float pivot, float smallest) {
    if (dbg_get(dbg, DBG_ERROR) != 0.0f) return;
    dbg_iterations(dbg, s.first + failed);
    if (failed < s.size) {
        dbg_value(dbg, 0, float(s.first + failed));
        dbg_fail(dbg, metal::isfinite(pivot) ? NOT_POSITIVE : NOT_FINITE, pivot);
        return;
    }
    dbg_value(dbg, 1, s.first ? metal::min(smallest, dbg_get(dbg, DBG_VALUES + 1)) : smallest);
    if (s.first + s.size == s.n) dbg_succeed(dbg);
}

// What is found about a block's pivots.
struct pivots {
    uint failed; // the first that is not positive and finite; none: the block's size
    float value; // of that pivot
    float smallest;
};

#if ON_CPU

constant constexpr uint SIDE = 64; // from row to row of u

// A pivot's row becomes U's: `row` is divided by the root of its element j, which all lanes need.
inline float finish_row(threadgroup float *u, uint j, uint size, float row, uint c, bool has_pivots, thread pivots &found) {
    threadgroup float *line = u + j * SIDE;
    if (!has_pivots) {
        row /= line[j];
        line[c] = row;
        return row;
    }
    line[c] = row;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    const float d = line[j];
    if (found.failed == size && !(d > 0.0f && d < INFINITY)) found.failed = j, found.value = d;
    found.smallest = metal::min(found.smallest, d);
    const float root = metal::precise::sqrt(d), by = 1.0f / root;
    row = c == j ? root : row * by;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    line[c] = row;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    return row;
}

// Rows first … last - 1 in the columns of the lanes: two at a time, whose sums fill half of the registers.
inline void eliminate(threadgroup float *u, uint first, uint last, uint size, uint c, bool has_pivots, thread pivots &found) {
    for (uint j = first; j < last; j += 2) {
        const bool two = j + 1 < last;
        float row = u[j * SIDE + c], next = two ? u[(j + 1) * SIDE + c] : 0.0f;
        for (uint k = 0; k < j; k++) {
            const float value = u[k * SIDE + c];
            row = metal::fma(-u[k * SIDE + j], value, row);
            next = metal::fma(-u[k * SIDE + j + 1], value, next);
        }
        row = finish_row(u, j, size, row, c, has_pivots, found);
        if (!two) return;
        next = metal::fma(-u[j * SIDE + j + 1], row, next);
        finish_row(u, j + 1, size, next, c, has_pivots, found);
    }
}

// 32 threads: a column each, first of the left half, then of the right one.
kernel void linalg_cholesky(device const float *a [[buffer(0)]], device float *out [[buffer(1)]], device float *dbg [[buffer(2)]],
                            device const float *jitter [[buffer(3)]], constant cholesky_size &s [[buffer(4)]],
                            uint matrix [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float u[SIDE * SIDE];
    const float more = s.jitter ? jitter[matrix] : 0.0f;
    const uint half_size = metal::min(s.size, 32u);
    const bool by_rows = s.in_column == 1; // of U; else the lanes read rows of the lower factor
    a += matrix * s.in_matrix + s.in_first;
    out += matrix * s.out_matrix + s.out_first;
    for (uint q = 0; q < s.size; q++)
        for (uint c = lane; c < s.size; c += 32) {
            const uint i = by_rows ? q : c, j = by_rows ? c : q;
            if (i <= j) u[i * SIDE + j] = (by_rows ? a[q * s.in_row + c] : a[q * s.in_column + c]) + (i == j ? more : 0.0f);
        }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    pivots found = {s.size, 0.0f, INFINITY};
    eliminate(u, 0, half_size, s.size, lane, true, found);
    if (s.size > 32) {
        eliminate(u, 0, 32, s.size, lane + 32, false, found);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        eliminate(u, 32, s.size, s.size, lane + 32, true, found);
    }
    for (uint q = 0; q < s.size; q++)
        for (uint c = lane; c < s.size; c += 32) {
            const uint i = by_rows ? q : c, j = by_rows ? c : q;
            const float value = i <= j ? u[i * SIDE + j] : 0.0f;
            if (i <= j || s.clear) out[by_rows ? q * s.out_row + c : q * s.out_column + c] = value;
        }
    if (lane == 0) report(dbg + matrix * DBG_COUNT, s, found.failed, found.value, found.smallest);
}

#else

// DOWN × ACROSS threads: each keeps 64 / DOWN × 64 / ACROSS elements, DOWN rows and ACROSS columns apart, in registers. Row by row,
// the pivot's row is published, and its products are subtracted from the rows below, except where all of a thread's elements lie
// below the diagonal. In large batches a matrix has one simdgroup, of 4 × 8 lanes; in small ones 16 × 16 threads, whose steps take
// less time.
constant constexpr uint HIGH = 64 / DOWN, WIDE = 64 / ACROSS, LINE = BESIDE ? 128 : 64;

inline void barrier_of_matrix() {
    if (DOWN * ACROSS == 32)
        simdgroup_barrier(mem_flags::mem_threadgroup);
    else
        threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Rows DOWN · block to DOWN · block + DOWN - 1. The block's number is a constant, so that the elements stay in registers.
// With BESIDE, the rows continue in b with another 64 columns.
template <uint block>
inline void eliminate(thread float (&u)[HIGH][WIDE], thread float (&b)[HIGH][WIDE], threadgroup float *rows, uint ty, uint tx,
                      uint size, thread pivots &found) {
    constexpr uint left = block * DOWN / ACROSS;
    for (uint step = 0; step < DOWN; step++) {
        const uint j = DOWN * block + step;
        if (j >= size) break;
        threadgroup float *row = rows + (j & 1) * LINE;
        if (ty == step) {
            SMELT_UNROLL for (uint c = left; c < WIDE; c++) row[tx + ACROSS * c] = u[block][c];
            if (BESIDE)
                SMELT_UNROLL for (uint c = 0; c < WIDE; c++) row[64 + tx + ACROSS * c] = b[block][c];
        }
        barrier_of_matrix();
        const float d = row[j];
        if (found.failed == size && !(d > 0.0f && d < INFINITY)) found.failed = j, found.value = d;
        found.smallest = metal::min(found.smallest, d);
        // One step of Newton's method: the root is then within two units in the last place.
        float scale = d < 0x1p-100f ? metal::rsqrt(d) : metal::fast::rsqrt(d);
        scale = metal::fma(0.5f * scale, metal::fma(-d * scale, scale, 1.0f), scale);
        float across[WIDE], further[WIDE];
        SMELT_UNROLL for (uint c = left; c < WIDE; c++) across[c] = row[tx + ACROSS * c] * scale;
        if (BESIDE)
            SMELT_UNROLL for (uint c = 0; c < WIDE; c++) further[c] = row[64 + tx + ACROSS * c] * scale;
        SMELT_UNROLL for (uint r = block; r < HIGH; r++) {
            const float down = row[ty + DOWN * r] * scale;
            SMELT_UNROLL for (uint c = r * DOWN / ACROSS; c < WIDE; c++) {
                const float less = u[r][c] - down * across[c];
                // Selected, not multiplied by 0: after a failure the products are NaN.
                u[r][c] = r > block || ty > step ? less : ty == step ? across[c] : u[r][c];
            }
            if (BESIDE)
                SMELT_UNROLL for (uint c = 0; c < WIDE; c++) {
                    const float less = b[r][c] - down * further[c];
                    b[r][c] = r > block || ty > step ? less : ty == step ? further[c] : b[r][c];
                }
        }
    }
}

inline void eliminate_all(thread float (&u)[HIGH][WIDE], thread float (&b)[HIGH][WIDE], threadgroup float *rows, uint ty, uint tx,
                          uint size, thread pivots &found) {
    eliminate<0>(u, b, rows, ty, tx, size, found);
    eliminate<1>(u, b, rows, ty, tx, size, found);
    eliminate<2>(u, b, rows, ty, tx, size, found);
    eliminate<3>(u, b, rows, ty, tx, size, found);
#if DOWN == 4
    eliminate<4>(u, b, rows, ty, tx, size, found);
    eliminate<5>(u, b, rows, ty, tx, size, found);
    eliminate<6>(u, b, rows, ty, tx, size, found);
    eliminate<7>(u, b, rows, ty, tx, size, found);
    eliminate<8>(u, b, rows, ty, tx, size, found);
    eliminate<9>(u, b, rows, ty, tx, size, found);
    eliminate<10>(u, b, rows, ty, tx, size, found);
    eliminate<11>(u, b, rows, ty, tx, size, found);
    eliminate<12>(u, b, rows, ty, tx, size, found);
    eliminate<13>(u, b, rows, ty, tx, size, found);
    eliminate<14>(u, b, rows, ty, tx, size, found);
    eliminate<15>(u, b, rows, ty, tx, size, found);
#endif
}

#if BESIDE

// A block of the diagonal and the elements right of it, which together become rows of U. Each threadgroup has 64 of the columns.
// All of them factorise the block, so that none waits for another; the first stores the factor in `corners`.
struct row_size {
    cholesky_size corner;          // in: the rows of the matrix; out: the place of the block's factor
    uint columns, pad;             // columns right of the block
    long x_matrix, x_first, x_row; // the place of the negated rows
};

// Groups: columns / 64, rounded up, × matrices, of DOWN * ACROSS threads.
kernel void linalg_cholesky_row(device float *a [[buffer(0)]], device float *corners [[buffer(1)]], device float *dbg [[buffer(2)]],
                                device float *x [[buffer(3)]], constant row_size &size [[buffer(4)]],
                                uint2 group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup float rows[2 * LINE];
    const row_size s = size; // stores might change what is behind the reference
    const cholesky_size k = s.corner;
    const uint ty = index / ACROSS, tx = index % ACROSS, first = group.x * 64;
    a += group.y * k.in_matrix + k.in_first;
    corners += group.y * k.out_matrix + k.out_first;
    x += group.y * s.x_matrix + s.x_first + first;
    dbg += group.y * DBG_COUNT;
    float u[HIGH][WIDE], b[HIGH][WIDE];
    SMELT_UNROLL for (uint r = 0; r < HIGH; r++)
        SMELT_UNROLL for (uint c = 0; c < WIDE; c++) {
            const uint i = ty + DOWN * r, j = tx + ACROSS * c;
            u[r][c] = c < r * DOWN / ACROSS ? 0.0f : a[i * k.in_row + j];
            b[r][c] = first + j < s.columns ? a[i * k.in_row + 64 + first + j] : 0.0f;
        }
    pivots found = {64, 0.0f, INFINITY};
    eliminate_all(u, b, rows, ty, tx, 64, found);
    SMELT_UNROLL for (uint r = 0; r < HIGH; r++)
        SMELT_UNROLL for (uint c = 0; c < WIDE; c++) {
            const uint i = ty + DOWN * r, j = tx + ACROSS * c;
            if (first + j < s.columns) {
                a[i * k.in_row + 64 + first + j] = b[r][c];
                x[i * s.x_row + j] = -b[r][c];
            }
            if (group.x == 0) corners[i * k.out_row + j] = i <= j ? u[r][c] : 0.0f;
        }
    if (group.x == 0 && index == 0) report(dbg, k, found.failed, found.value, found.smallest);
}

#else

// Threadgroups of DOWN * ACROSS threads, one per matrix.
kernel void linalg_cholesky(device const float *a [[buffer(0)]], device float *out [[buffer(1)]], device float *dbg [[buffer(2)]],
                            device const float *jitter [[buffer(3)]], constant cholesky_size &size [[buffer(4)]],
                            uint matrix [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup float rows[2 * LINE];
    const cholesky_size s = size; // stores might change what is behind the reference
    const uint ty = index / ACROSS, tx = index % ACROSS;
    const float more = s.jitter ? jitter[matrix] : 0.0f;
    a += matrix * s.in_matrix + s.in_first;
    out += matrix * s.out_matrix + s.out_first;
    dbg += matrix * DBG_COUNT;
    float u[HIGH][WIDE];
    if (s.size == 64) {
        // What lies below the diagonal is read, too, and has no effect.
        SMELT_UNROLL for (uint r = 0; r < HIGH; r++)
            SMELT_UNROLL for (uint c = 0; c < WIDE; c++)
                u[r][c] = c < r * DOWN / ACROSS ? 0.0f : a[(ty + DOWN * r) * s.in_row + (tx + ACROSS * c) * s.in_column];
        SMELT_UNROLL for (uint r = 0; r < HIGH; r++)
            u[r][r * DOWN / ACROSS] += ty + DOWN * r == tx + ACROSS * (r * DOWN / ACROSS) ? more : 0.0f;
    } else {
        SMELT_UNROLL for (uint r = 0; r < HIGH; r++)
            SMELT_UNROLL for (uint c = 0; c < WIDE; c++) {
                const uint i = ty + DOWN * r, j = tx + ACROSS * c;
                u[r][c] = i == j ? 1.0f : 0.0f;
                if (c >= r * DOWN / ACROSS && i <= j && j < s.size)
                    u[r][c] = a[i * s.in_row + j * s.in_column] + (i == j ? more : 0.0f);
            }
    }
    pivots found = {s.size, 0.0f, INFINITY};
    float none[HIGH][WIDE];
    eliminate_all(u, none, rows, ty, tx, s.size, found);
    const bool whole = s.size == 64 && s.clear;
    SMELT_UNROLL for (uint r = 0; r < HIGH; r++)
        SMELT_UNROLL for (uint c = 0; c < WIDE; c++) {
            const uint i = ty + DOWN * r, j = tx + ACROSS * c;
            if (whole || (i < s.size && j < s.size && (i <= j || s.clear)))
                out[i * s.out_row + j * s.out_column] = c >= r * DOWN / ACROSS && i <= j ? u[r][c] : 0.0f;
        }
    if (index == 0) report(dbg, s, found.failed, found.value, found.smallest);
}

#endif
#endif
