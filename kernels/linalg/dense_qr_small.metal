// QR of matrices of at most 64 × 64 elements, one in each threadgroup of 256 threads. A thread keeps 4 × 4 elements, 16 rows and
// columns apart, in registers; the 16 threads of a column are neighbours in a simdgroup, so that sums along columns need no barrier.
struct small_size {
    uint rows, columns, rank;
    uint wants_q, q_columns;
    float tolerance; // times the largest magnitude; < 0: no norm is too small
};

constant constexpr uint STATS = 4, NOT_FINITE = 4, TINY = 5;

inline float sum_of_column(float value) {
    SMELT_UNROLL for (ushort step = 1; step < 16; step *= 2) value += metal::simd_shuffle_xor(value, step);
    return value;
}

// What the threads of a matrix have in common.
struct small_state {
    threadgroup float *columns, *weights;
    uint tx, ty, lane, rank;
    float scale, peak, tolerance;
    uint failed;
    float failure, smallest;
    bool tiny;
};

// Columns 16 · block to 16 · block + 15. The block's number is a constant, so that the elements stay in registers.
template <uint block> inline void reflect(thread float (&u)[4][4], thread small_state &t) {
    const uint tx = t.tx, ty = t.ty, lane = t.lane;
    const float scale = t.scale;
    for (uint step = 0; step < 16; step++) {
        const uint j = 16 * block + step;
        if (j >= t.rank) break;
        threadgroup float *column = t.columns + j * 64;
        if (tx == step)
            SMELT_UNROLL for (uint r = 0; r < 4; r++) column[ty + 16 * r] = u[r][block];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float x[4], dots[4], squares = 0.0f;
        SMELT_UNROLL for (uint c = 0; c < 4; c++) dots[c] = 0.0f;
        SMELT_UNROLL for (uint r = 0; r < 4; r++) {
            const bool below = ty + 16 * r > j;
            x[r] = column[ty + 16 * r];
            const float value = below ? x[r] * scale : 0.0f;
            squares = metal::fma(value, value, squares);
            SMELT_UNROLL for (uint c = block; c < 4; c++) dots[c] = metal::fma(value, u[r][c] * scale, dots[c]);
        }
        const float alpha = column[j];
        squares = sum_of_column(squares);
        const float norm = metal::precise::sqrt(metal::fma(alpha * scale, alpha * scale, squares)) / scale;
        const bool turns_it = !(squares == 0.0f);
        const float beta = !turns_it ? alpha : alpha >= 0.0f ? -norm : norm;
        const float factor = turns_it ? 1.0f / (alpha - beta) : 0.0f, weight = turns_it ? (beta - alpha) / beta : 0.0f;
        if (t.failed == t.rank) {
            t.tiny = metal::abs(beta) <= t.tolerance * t.peak && t.tolerance >= 0.0f;
            if (t.tiny || !metal::isfinite(beta)) t.failed = j, t.failure = beta;
        }
        t.smallest = metal::min(t.smallest, metal::abs(beta));
        SMELT_UNROLL for (uint r = 0; r < 4; r++) {
            const uint i = ty + 16 * r;
            x[r] = i > j ? x[r] * factor : i == j ? 1.0f : 0.0f;
        }
        SMELT_UNROLL for (uint c = block; c < 4; c++) {
            const float top = metal::simd_shuffle(u[block][c], ushort((lane & 16) | step));
            const float by = weight * (top + sum_of_column(dots[c]) * factor / scale / scale);
            const bool right = tx + 16 * c > j;
            SMELT_UNROLL for (uint r = 0; r < 4; r++)
                if (right) u[r][c] = metal::fma(-x[r], by, u[r][c]);
        }
        // No thread but the column's own still needs its elements: all have read them.
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (tx == step) {
            SMELT_UNROLL for (uint r = 0; r < 4; r++) {
                const uint i = ty + 16 * r;
                column[i] = x[r];
                if (i == j) u[r][block] = beta;
                if (i > j) u[r][block] = 0.0f;
            }
            if (ty == 0) t.weights[j] = weight;
        }
    }
}

// Groups: matrices.
kernel void linalg_qr_small(device const float *a [[buffer(0)]], device float *q_out [[buffer(1)]], device float *r_out [[buffer(2)]],
                            device float *dbg [[buffer(3)]], device uint *stats [[buffer(4)]], constant small_size &s [[buffer(5)]],
                            uint matrix [[threadgroup_position_in_grid]], uint index [[thread_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float columns[64 * 64], weights[64], peaks[8];
    const uint tx = index / 16, ty = index % 16;
    const uint elements = s.rows * s.columns;
    a += ulong(matrix) * elements;
    dbg += matrix * DBG_COUNT;
    float u[4][4], peak = 0.0f;
    uint bad = 0xffffffffu;
    SMELT_UNROLL for (uint r = 0; r < 4; r++)
        SMELT_UNROLL for (uint c = 0; c < 4; c++) {
            const uint i = ty + 16 * r, j = tx + 16 * c;
            const bool exists = i < s.rows && j < s.columns;
            u[r][c] = exists ? a[i * s.columns + j] : 0.0f;
            if (!metal::isfinite(u[r][c])) bad = metal::min(bad, i * s.columns + j);
            peak = metal::max(peak, metal::abs(u[r][c]));
        }
    peak = metal::simd_max(peak);
    bad = metal::simd_min(bad);
    threadgroup uint first_bad[8];
    if (lane == 0) peaks[simdgroup] = peak, first_bad[simdgroup] = bad;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint g = 0; g < 8; g++) peak = metal::max(peak, peaks[g]), bad = metal::min(bad, first_bad[g]);
    if (index == 0) {
        stats[matrix * STATS] = bad != 0xffffffffu ? 0x7f800000u : as_type<uint>(peak);
        stats[matrix * STATS + 1] = bad;
    }
    int power = 0;
    if (peak > 0.0f && peak < INFINITY) metal::frexp(peak, power);
    const float scale = metal::ldexp(1.0f, metal::clamp(-power, -126, 126));
    small_state state = {columns, weights, tx, ty, lane, s.rank, scale, peak, s.tolerance, s.rank, 0.0f, INFINITY, false};
    reflect<0>(u, state);
    reflect<1>(u, state);
    reflect<2>(u, state);
    reflect<3>(u, state);
    const uint failed = state.failed;
    r_out += ulong(matrix) * (s.q_columns * s.columns);
    SMELT_UNROLL for (uint r = 0; r < 4; r++)
        SMELT_UNROLL for (uint c = 0; c < 4; c++) {
            const uint i = ty + 16 * r, j = tx + 16 * c;
            if (i < s.q_columns && j < s.columns) r_out[i * s.columns + j] = i <= j ? u[r][c] : 0.0f;
        }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (s.wants_q) {
        SMELT_UNROLL for (uint r = 0; r < 4; r++)
            SMELT_UNROLL for (uint c = 0; c < 4; c++) u[r][c] = ty + 16 * r == tx + 16 * c ? 1.0f : 0.0f;
        for (uint j = s.rank; j-- > 0;) {
            float x[4];
            SMELT_UNROLL for (uint r = 0; r < 4; r++) x[r] = columns[j * 64 + ty + 16 * r];
            const float weight = weights[j];
            SMELT_UNROLL for (uint c = 0; c < 4; c++) {
                float dot = 0.0f;
                SMELT_UNROLL for (uint r = 0; r < 4; r++) dot = metal::fma(x[r], u[r][c], dot);
                dot = weight * sum_of_column(dot);
                SMELT_UNROLL for (uint r = 0; r < 4; r++) u[r][c] = metal::fma(-x[r], dot, u[r][c]);
            }
        }
        q_out += ulong(matrix) * (s.rows * s.q_columns);
        SMELT_UNROLL for (uint r = 0; r < 4; r++)
            SMELT_UNROLL for (uint c = 0; c < 4; c++) {
                const uint i = ty + 16 * r, j = tx + 16 * c;
                if (i < s.rows && j < s.q_columns) q_out[i * s.q_columns + j] = u[r][c];
            }
    }
    if (index != 0) return;
    dbg_iterations(dbg, failed);
    dbg_value(dbg, 1, state.smallest);
    if (failed < s.rank) {
        dbg_value(dbg, 0, float(failed));
        dbg_fail(dbg, state.tiny ? TINY : NOT_FINITE, state.failure);
    } else {
        dbg_succeed(dbg);
    }
}
