// LU factorisation with partial pivoting of matrices of at most 64 × 64 elements, in place: one threadgroup per matrix.
struct small_size {
    uint rows, columns, rank;
    float tolerance; // times the largest magnitude; < 0: no pivot is too small
};

constant constexpr uint STATS = 4, NOT_FINITE = 4, TINY = 5;

// Reports a pivot that is not finite or too small. Called by one thread per matrix.
inline void report_pivot(device float *dbg, uint j, float pivot, float tiny_to) {
    const bool tiny = metal::abs(pivot) <= tiny_to;
    if ((!tiny && metal::isfinite(pivot)) || dbg_get(dbg, DBG_ERROR) != 0.0f) return;
    dbg_value(dbg, 0, float(j));
    dbg_fail(dbg, tiny ? TINY : NOT_FINITE, pivot);
}
inline void report_end(device float *dbg, uint rank, float smallest) {
    dbg_iterations(dbg, rank);
    dbg_value(dbg, 1, smallest);
    dbg_succeed(dbg);
}
inline float tiny_of(constant small_size &s, device const uint *stats, uint matrix) {
    return s.tolerance >= 0.0f ? s.tolerance * as_type<float>(stats[matrix * STATS]) : -1.0f;
}

#if ON_CPU

// 32 threads: each computes two columns, 32 apart; in the search for a pivot, it looks at two rows.
kernel void linalg_lu_small(device float *a [[buffer(0)]], device int *pivots [[buffer(1)]], device float *dbg [[buffer(2)]],
                            device const uint *stats [[buffer(3)]], constant small_size &s [[buffer(4)]],
                            uint matrix [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float u[64 * 64], column[64];
    const uint rows = s.rows, columns = s.columns, rank = s.rank;
    const float tiny = tiny_of(s, stats, matrix);
    a += long(matrix) * rows * columns;
    pivots += matrix * rank;
    dbg += matrix * DBG_COUNT;
    for (uint i = 0; i < rows; i++)
        for (uint c = lane; c < 64; c += 32) u[i * 64 + c] = c < columns ? a[i * columns + c] : 0.0f;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    float smallest = INFINITY;
    for (uint j = 0; j < rank; j++) {
        float size = -1.0f, high = -1.0f;
        if (lane >= j && lane < rows) size = metal::abs(u[lane * 64 + j]);
        if (lane + 32 >= j && lane + 32 < rows) high = metal::abs(u[(lane + 32) * 64 + j]);
        size = metal::isnan(size) ? INFINITY : size, high = metal::isnan(high) ? INFINITY : high;
        const float most = metal::simd_max(metal::max(size, high));
        const uint chosen = metal::simd_min(size == most ? lane : high == most ? lane + 32 : 64u);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (uint c = lane; c < columns; c += 32) {
            const float value = u[j * 64 + c];
            u[j * 64 + c] = u[chosen * 64 + c];
            u[chosen * 64 + c] = value;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        const float pivot = u[j * 64 + j], by = 1.0f / pivot;
        for (uint i = lane; i < rows; i += 32) {
            const float mine = u[i * 64 + j];
            // As LAPACK does: by the reciprocal, unless that would overflow.
            column[i] = metal::abs(pivot) >= 0x1p-126f ? mine * by : pivot != 0.0f ? mine / pivot : mine;
        }
        if (lane == 0) {
            pivots[j] = int(chosen);
            report_pivot(dbg, j, pivot, tiny);
        }
        smallest = metal::min(smallest, metal::abs(pivot));
        simdgroup_barrier(mem_flags::mem_threadgroup);
        const float left = u[j * 64 + lane], right = u[j * 64 + lane + 32];
        for (uint i = j + 1; i < rows; i++) {
            const float factor = column[i];
            threadgroup float *row = u + i * 64;
            if (j < 32) {
                const float old = row[lane];
                row[lane] = lane > j ? metal::fma(-factor, left, old) : lane == j ? factor : old;
                row[lane + 32] = metal::fma(-factor, right, row[lane + 32]);
            } else {
                const float old = row[lane + 32];
                row[lane + 32] = lane + 32 > j ? metal::fma(-factor, right, old) : lane + 32 == j ? factor : old;
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; i < rows; i++)
        for (uint c = lane; c < columns; c += 32) a[i * columns + c] = u[i * 64 + c];
    if (lane == 0) report_end(dbg, rank, smallest);
}

#else

// 8 × 16 threads. A thread keeps 8 × 4 elements, 8 rows and 16 columns apart, in registers. Rows are not moved: `place` maps each
// row to its place in the result. The row of a pivot does not change afterwards.
constant constexpr uint DOWN = 8, ACROSS = 16, HIGH = 64 / DOWN, WIDE = 64 / ACROSS;

struct small_state {
    threadgroup float *column, *row;  // of the step
    threadgroup uint *place, *holder; // the place of each row; the row at each place
    device int *pivots;
    device float *dbg;
    uint tx, ty, lane, index, rank;
    float tiny, smallest;
};

// Steps 16 · block to 16 · block + 15. The block's number is a constant, so that the elements stay in registers.
template <uint block> inline void eliminate(thread float (&x)[HIGH][WIDE], thread bool (&left)[HIGH], thread small_state &t) {
    for (uint step = 0; step < ACROSS; step++) {
        const uint j = ACROSS * block + step;
        if (j >= t.rank) break;
        // -1: the row is not to be chosen. NaN is above all.
        if (t.tx == step)
            SMELT_UNROLL for (uint r = 0; r < HIGH; r++) {
                const float size = metal::abs(x[r][block]);
                t.column[t.ty + DOWN * r] = !left[r] ? -1.0f : metal::isnan(size) ? INFINITY : size;
            }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const float low = t.column[t.lane], high = t.column[t.lane + 32], most = metal::simd_max(metal::max(low, high));
        const uint low_place = low == most ? t.place[t.lane] : 64u, high_place = high == most ? t.place[t.lane + 32] : 64u;
        const uint chosen = metal::simd_min(metal::min(low_place, high_place));
        const uint pivot_row = t.holder[chosen], other = t.holder[j];
        SMELT_UNROLL for (uint r = 0; r < HIGH; r++)
            if (t.ty + DOWN * r == pivot_row)
                SMELT_UNROLL for (uint c = block; c < WIDE; c++) t.row[t.tx + ACROSS * c] = x[r][c];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const float pivot = t.row[j], by = 1.0f / pivot;
        if (t.index == 0) {
            t.place[other] = chosen, t.holder[chosen] = other;
            t.place[pivot_row] = j, t.holder[j] = pivot_row;
            t.pivots[j] = int(chosen);
            report_pivot(t.dbg, j, pivot, t.tiny);
        }
        t.smallest = metal::min(t.smallest, metal::abs(pivot));
        // All threads of a row need its element of the column: from the lane that has it.
        SMELT_UNROLL for (uint r = 0; r < HIGH; r++) {
            if (t.ty + DOWN * r == pivot_row) left[r] = false;
            const float mine = metal::simd_shuffle(x[r][block], ushort((t.lane & 16) + step));
            // As LAPACK does: by the reciprocal, unless that would overflow.
            const float factor = metal::abs(pivot) >= 0x1p-126f ? mine * by : pivot != 0.0f ? mine / pivot : mine;
            SMELT_UNROLL for (uint c = block; c < WIDE; c++) {
                const uint column = t.tx + ACROSS * c;
                const float less = metal::fma(-factor, t.row[column], x[r][c]);
                const float value = column > j ? less : column == j ? factor : x[r][c];
                x[r][c] = left[r] ? value : x[r][c];
            }
        }
    }
}

kernel void linalg_lu_small(device float *a [[buffer(0)]], device int *pivots [[buffer(1)]], device float *dbg [[buffer(2)]],
                            device const uint *stats [[buffer(3)]], constant small_size &size [[buffer(4)]],
                            uint matrix [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float column[64], row[64];
    threadgroup uint place[64], holder[64];
    const small_size s = size; // stores might change what is behind the reference
    const uint ty = index / ACROSS, tx = index % ACROSS;
    a += long(matrix) * s.rows * s.columns;
    small_state t = {column, row, place, holder, pivots + matrix * s.rank, dbg + matrix * DBG_COUNT, tx, ty, lane, index,
                     s.rank, tiny_of(size, stats, matrix), INFINITY};
    float x[HIGH][WIDE];
    bool left[HIGH];
    if (index < 64) place[index] = holder[index] = index;
    SMELT_UNROLL for (uint r = 0; r < HIGH; r++) {
        const uint i = ty + DOWN * r;
        left[r] = i < s.rows;
        SMELT_UNROLL for (uint c = 0; c < WIDE; c++) {
            const uint j = tx + ACROSS * c;
            x[r][c] = i < s.rows && j < s.columns ? a[i * s.columns + j] : 0.0f;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    eliminate<0>(x, left, t);
    eliminate<1>(x, left, t);
    eliminate<2>(x, left, t);
    eliminate<3>(x, left, t);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    SMELT_UNROLL for (uint r = 0; r < HIGH; r++) {
        const uint i = ty + DOWN * r;
        SMELT_UNROLL for (uint c = 0; c < WIDE; c++) {
            const uint j = tx + ACROSS * c;
            if (i < s.rows && j < s.columns) a[place[i] * s.columns + j] = x[r][c];
        }
    }
    if (index == 0) report_end(t.dbg, s.rank, t.smallest);
}
#endif
