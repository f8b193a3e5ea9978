// X = T⁻¹ B for a lower triangular block T of at most 64 rows; a column of B in each thread. Strides, which may be negative, say
// where the elements of T are, so that upper and transposed blocks are solved, too.
struct solve_size {
    uint size, columns;
    uint diagonal; // 0: divide by T's; 1: it is 1; 2: multiply by scale[i]
    uint store;    // X replaces B
    uint parts;    // T and B are sums of so many arrays
    uint silent;   // -X is not wanted
    long t_matrix, t_first, t_row, t_column, t_part;
    long b_matrix, b_first, b_row, b_part;
    long x_matrix, x_first, x_row; // where -X goes
    long scale_matrix, scale_first, scale_step;
};

#if ON_CPU

// Two rows at a time: the sums of 32 columns fill half of the registers. Rows that are solved are read again from where they went:
// b, or x, negated. T's elements are the same for all columns.
template <bool whole, bool stores>
inline void solve_columns(device const float *t, device float *b, device float *x, device const float *scale,
                          constant solve_size &s, bool exists) {
    device const float *done = stores ? b : x;
    const long done_row = stores ? s.b_row : s.x_row;
    for (uint i = 0; i < s.size; i += 2) {
        const bool two = i + 1 < s.size;
        device const float *upper = t + i * s.t_row, *lower = two ? upper + s.t_row : upper;
        float first = 0.0f, second = 0.0f;
        if (whole || exists) {
            first = b[i * s.b_row];
            second = two ? b[(i + 1) * s.b_row] : 0.0f;
            for (uint k = 0; k < i; k++) {
                const float value = done[k * done_row];
                const float p = upper[k * s.t_column], q = lower[k * s.t_column];
                first = metal::fma(stores ? -p : p, value, first);
                second = metal::fma(stores ? -q : q, value, second);
            }
        }
        // The inverse of a subnormal number overflows.
        const float d = s.diagonal == 0 ? upper[i * s.t_column] : 1.0f;
        const float by = s.diagonal == 0 ? 1.0f / d : s.diagonal == 1 ? 1.0f : scale[i * s.scale_step];
        first = s.diagonal == 0 && !metal::isfinite(by) ? first / d : first * by;
        if (whole || exists) {
            if (stores) b[i * s.b_row] = first;
            if (!s.silent) x[i * s.x_row] = -first;
        }
        if (!two) return;
        const float e = s.diagonal == 0 ? lower[(i + 1) * s.t_column] : 1.0f;
        const float over = s.diagonal == 0 ? 1.0f / e : s.diagonal == 1 ? 1.0f : scale[(i + 1) * s.scale_step];
        second = metal::fma(-lower[i * s.t_column], first, second);
        second = s.diagonal == 0 && !metal::isfinite(over) ? second / e : second * over;
        if (whole || exists) {
            if (stores) b[(i + 1) * s.b_row] = second;
            if (!s.silent) x[(i + 1) * s.x_row] = -second;
        }
    }
}

// Groups: columns / 32 × matrices, of 32 threads. T and B have one part.
kernel void linalg_solve(device const float *t [[buffer(0)]], device float *b [[buffer(1)]], device float *x [[buffer(2)]],
                         device const float *scale [[buffer(3)]], constant solve_size &s [[buffer(4)]],
                         uint2 group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    const uint column = group.x * SOLVE_THREADS + index;
    const bool whole = (group.x + 1) * SOLVE_THREADS <= s.columns, exists = column < s.columns;
    t += group.y * s.t_matrix + s.t_first;
    b += group.y * s.b_matrix + s.b_first + column;
    x += group.y * s.x_matrix + s.x_first + column;
    scale += group.y * s.scale_matrix + s.scale_first;
    if (whole && s.store)
        solve_columns<true, true>(t, b, x, scale, s, true);
    else if (whole)
        solve_columns<true, false>(t, b, x, scale, s, true);
    else if (s.store)
        solve_columns<false, true>(t, b, x, scale, s, exists);
    else
        solve_columns<false, false>(t, b, x, scale, s, exists);
}

#else

constant constexpr uint ROWS = SOLVE_ROWS, THREADS = SOLVE_THREADS; // rows solved together

// Sums of `parts` arrays, of elements `step` apart: loads that do not wait for each other.
template <uint count>
inline void load_sums(device const float *from, long step, long part, uint parts, thread float (&sums)[count]) {
    SMELT_UNROLL for (uint u = 0; u < count; u++) sums[u] = from[u * step];
    for (uint p = 1; p < parts; p++)
        SMELT_UNROLL for (uint u = 0; u < count; u++) sums[u] += from[p * part + u * step];
}

// Groups: columns / THREADS × matrices, of THREADS threads.
kernel void linalg_solve(device const float *t [[buffer(0)]], device float *b [[buffer(1)]], device float *x [[buffer(2)]],
                         device const float *scale [[buffer(3)]], constant solve_size &sizes [[buffer(4)]],
                         uint2 group [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]]) {
    threadgroup float block[64 * 64], inverse[64], solved[64 * THREADS];
    const solve_size s = sizes; // stores might change what is behind the reference
    const uint column = group.x * THREADS + index;
    const bool exists = column < s.columns;
    t += group.y * s.t_matrix + s.t_first;
    b += group.y * s.b_matrix + s.b_first + column;
    x += group.y * s.x_matrix + s.x_first + column;
    scale += group.y * s.scale_matrix + s.scale_first;
    const bool wide = metal::abs(s.t_row) == 1; // neighbouring threads read neighbours
    if (s.size == 64) {
        // Elements above the diagonal have no effect.
        const uint across = index % 64, down = index / 64;
        device const float *from = t + (wide ? across : down) * s.t_row + (wide ? down : across) * s.t_column;
        const long step = THREADS / 64 * (wide ? s.t_column : s.t_row);
        for (uint q = 0; q < 64 * 64 / THREADS; q += 32) {
            float sums[32];
            load_sums(from + q * step, step, s.t_part, s.parts, sums);
            SMELT_UNROLL for (uint u = 0; u < 32; u++) {
                const uint along = down + (q + u) * (THREADS / 64);
                block[wide ? along * 64 + across : across * 64 + along] = sums[u];
            }
        }
        for (uint i = 0; i < 64; i += 32) {
            float sums[32];
            SMELT_UNROLL for (uint u = 0; u < 32; u++) sums[u] = 0.0f;
            if (exists) load_sums(b + i * s.b_row, s.b_row, s.b_part, s.parts, sums);
            SMELT_UNROLL for (uint u = 0; u < 32; u++) solved[(i + u) * THREADS + index] = sums[u];
        }
    } else {
        SMELT_UNROLL_SOME for (uint q = 0; q < 64 * 64 / THREADS; q++) {
            const uint e = index + q * THREADS, k = wide ? e / 64 : e % 64, i = wide ? e % 64 : e / 64;
            float sum = k <= i && i < s.size ? t[i * s.t_row + k * s.t_column] : 0.0f;
            if (k <= i && i < s.size)
                for (uint p = 1; p < s.parts; p++) sum += t[p * s.t_part + i * s.t_row + k * s.t_column];
            block[k * 64 + i] = sum;
        }
        SMELT_UNROLL_SOME for (uint i = 0; i < 64; i++) {
            float sum = exists && i < s.size ? b[i * s.b_row] : 0.0f;
            if (exists && i < s.size)
                for (uint p = 1; p < s.parts; p++) sum += b[p * s.b_part + i * s.b_row];
            solved[i * THREADS + index] = sum;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = index; i < s.size; i += THREADS)
        inverse[i] = s.diagonal == 0 ? 1.0f / block[i * 64 + i] : s.diagonal == 1 ? 1.0f : scale[i * s.scale_step];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint first = 0; first < s.size; first += ROWS) {
        float sums[ROWS];
        SMELT_UNROLL for (uint r = 0; r < ROWS; r++) sums[r] = first + r < 64 ? solved[(first + r) * THREADS + index] : 0.0f;
        SMELT_UNROLL_SOME for (uint k = 0; k < first; k++) {
            const float value = solved[k * THREADS + index];
            SMELT_UNROLL for (uint r = 0; r < ROWS; r++) sums[r] = metal::fma(-block[k * 64 + first + r], value, sums[r]);
        }
        SMELT_UNROLL for (uint r = 0; r < ROWS; r++) {
            const uint i = first + r;
            if (i >= s.size) break;
            // The inverse of a subnormal number overflows.
            const float by = inverse[i];
            const float value = s.diagonal == 0 && !metal::isfinite(by) ? sums[r] / block[i * 64 + i] : sums[r] * by;
            solved[i * THREADS + index] = value;
            if (exists) {
                if (!s.silent) x[i * s.x_row] = -value;
                if (s.store) b[i * s.b_row] = value;
            }
            SMELT_UNROLL for (uint q = r + 1; q < ROWS; q++) sums[q] = metal::fma(-block[i * 64 + first + q], value, sums[q]);
        }
    }
}
#endif
