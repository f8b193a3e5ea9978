// LU factorisation with partial pivoting, of a panel that lies transposed: p (columns, rows), a column's elements side by side.
// The columns of a leaf are eliminated by one threadgroup; the groups of the other leaves exchange their rows and subtract the
// products of the leaf before.
struct leaf_size {
    uint rows, first, columns; // of the matrix; the panel's first row; its columns
    uint leaf, previous;       // first columns of a leaf, in the panel; columns or NONE: there is none
    uint rank;                 // steps of the whole factorisation
    float tolerance;           // times the largest magnitude; < 0: no pivot is too small
    uint pad;
    long p_matrix, p_first;
    long w_matrix, w_row;
    long pivots_matrix;
};

constant constexpr uint LEAF = 8, NONE = 0xffffffffu, STATS = 4;
constant constexpr uint NOT_FINITE = 4, TINY = 5;

// Groups: leaves of the panel × matrices.
kernel void linalg_lu_leaf(device float *p [[buffer(0)]], device int *pivots [[buffer(1)]], device float *dbg [[buffer(2)]],
                           device const uint *stats [[buffer(3)]], constant leaf_size &sizes [[buffer(4)]],
                           uint2 group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                           uint2 threads [[dispatch_threads_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                           uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float top[LEAF * LEAF], best_value[32];
    threadgroup uint best_row[32];
    const leaf_size s = sizes; // stores might change what is behind the reference
    const uint c0 = group.x * LEAF, count = metal::min(LEAF, s.columns - c0);
    const long m = s.rows;
    p += group.y * s.p_matrix + s.p_first;
    pivots += group.y * s.pivots_matrix;
    dbg += group.y * DBG_COUNT;
    device float *x = p + c0 * m;
    if (s.previous != NONE && c0 != s.previous) {
        const uint row = s.first + s.previous, before = metal::min(LEAF, s.columns - s.previous);
        device const float *l = p + s.previous * m;
        if (t < count)
            for (uint j = 0; j < before; j++) {
                const uint other = uint(pivots[row + j]);
                const float value = x[t * m + row + j];
                x[t * m + row + j] = x[t * m + other];
                x[t * m + other] = value;
            }
        threadgroup_barrier(mem_flags::mem_device);
        if (c0 > s.previous) {
            if (t < count)
                for (uint i = 0; i < before; i++) {
                    float value = x[t * m + row + i];
                    for (uint k = 0; k < i; k++) value -= l[k * m + row + i] * top[k * LEAF + t];
                    top[i * LEAF + t] = value;
                    x[t * m + row + i] = value;
                }
            threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
            for (uint r = row + before + t; r < s.rows; r += threads.x) {
                float left[LEAF];
                SMELT_UNROLL for (uint k = 0; k < LEAF; k++) left[k] = k < before ? l[k * m + r] : 0.0f;
                for (uint c = 0; c < count; c++) {
                    float value = x[c * m + r];
                    SMELT_UNROLL for (uint k = 0; k < LEAF; k++)
                        if (k < before) value = metal::fma(-left[k], top[k * LEAF + c], value);
                    x[c * m + r] = value;
                }
            }
            threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        }
    }
    if (c0 != s.leaf) return;
    const float largest = as_type<float>(stats[group.y * STATS]);
    float value = -1.0f, smallest = s.first + s.leaf ? dbg_get(dbg, DBG_VALUES + 1) : INFINITY;
    uint at = NONE;
    for (uint r = s.first + s.leaf + t; r < s.rows; r += threads.x) {
        const float size = metal::abs(x[r]);
        if (!(size <= value)) value = metal::isnan(size) ? INFINITY : size, at = r;
    }
    for (uint j = 0; j < count && s.first + s.leaf + j < s.rank; j++) {
        const uint row = s.first + s.leaf + j;
        const float high = metal::simd_max(value);
        const uint where = metal::simd_min(value == high ? at : NONE);
        if (lane == 0) best_value[simdgroup] = high, best_row[simdgroup] = where;
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        float most = best_value[0];
        uint pivot_row = best_row[0];
        for (uint g = 1; g < simdgroups; g++)
            if (best_value[g] > most || (best_value[g] == most && best_row[g] < pivot_row))
                most = best_value[g], pivot_row = best_row[g];
        if (t < count) {
            const float up = x[t * m + pivot_row];
            x[t * m + pivot_row] = x[t * m + row];
            x[t * m + row] = up;
            top[t] = up;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
        const float pivot = top[j];
        if (t == 0) {
            pivots[row] = int(pivot_row);
            smallest = metal::min(smallest, metal::abs(pivot));
            const bool tiny = metal::abs(pivot) <= s.tolerance * largest && s.tolerance >= 0.0f;
            if ((tiny || !metal::isfinite(pivot)) && dbg_get(dbg, DBG_ERROR) == 0.0f) {
                dbg_value(dbg, 0, float(row));
                dbg_fail(dbg, tiny ? TINY : NOT_FINITE, pivot);
            }
        }
        value = -1.0f, at = NONE;
        for (uint r = row + 1 + t; r < s.rows; r += threads.x) {
            const float left = pivot != 0.0f ? x[j * m + r] / pivot : x[j * m + r];
            x[j * m + r] = left;
            for (uint c = j + 1; c < count; c++) x[c * m + r] = metal::fma(-left, top[c], x[c * m + r]);
            if (j + 1 < count) {
                const float size = metal::abs(x[(j + 1) * m + r]);
                if (!(size <= value)) value = metal::isnan(size) ? INFINITY : size, at = r;
            }
        }
    }
    if (t != 0) return;
    const uint done = metal::min(s.first + s.leaf + count, s.rank);
    dbg_iterations(dbg, done);
    dbg_value(dbg, 1, smallest);
    if (done == s.rank) dbg_succeed(dbg);
}

struct exchange_size {
    uint first, count; // pivots first … first + count - 1
    uint columns, skip, skipped; // columns skip … skip + skipped - 1 are left as they are
    uint reverse;      // the exchanges are undone
    long w_matrix, w_row, pivots_matrix;
};

// Exchanges rows. Grid: columns × matrices.
kernel void linalg_exchange(device float *w [[buffer(0)]], device const int *pivots [[buffer(1)]],
                            constant exchange_size &size [[buffer(2)]], uint2 at [[thread_position_in_grid]]) {
    const exchange_size s = size; // stores might change what is behind the reference
    const uint column = at.x >= s.skip ? at.x + s.skipped : at.x;
    w += at.y * s.w_matrix + column;
    pivots += at.y * s.pivots_matrix;
    for (uint j = 0; j < s.count; j++) {
        const uint row = s.first + (s.reverse ? s.count - 1 - j : j), other = uint(pivots[row]);
        if (other == row) continue;
        const float value = w[row * s.w_row];
        w[row * s.w_row] = w[other * s.w_row];
        w[other * s.w_row] = value;
    }
}
