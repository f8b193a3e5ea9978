// QR by Householder reflections, of a panel that lies transposed: p (columns, rows), a column's elements side by side. The columns
// of a leaf are reflected by one threadgroup, with one sum over all threads for each; the groups of the leaves after it apply the
// reflections of the leaf before, H = I - V T Vᵀ, to their own columns. In the end p holds V, with ones and zeros written out,
// and w the columns of R.
struct leaf_size {
    uint rows, first, columns; // of the matrix; the panel's first row; its columns
    uint leaf, previous;       // first columns of a leaf, in the panel; previous NONE: there is none
    uint rank;                 // steps of the whole factorisation
    float tolerance;           // times the largest magnitude; < 0: no norm is too small
    uint pad;
    long p_matrix, p_first;
    long w_matrix, w_row;
    long pivots_matrix; // from matrix to matrix of tau
};

constant constexpr uint LEAF = 8, NONE = 0xffffffffu, STATS = 4;
constant constexpr uint NOT_FINITE = 4, TINY = 5;
// How many products are summed together: what fits in registers.
constant constexpr uint SIDE = ON_CPU ? 2 : 4, ACROSS = ON_CPU ? 1 : 8;

// Rows of a thread: in registers, or where they are.
#if LEAF_ROWS
#define EACH_ROW_OF(q, r, count) SMELT_UNROLL for (uint q = 0, r = s.first + t; q < LEAF_ROWS; q++, r += count) if (r < s.rows)
// All rows of the thread, where those past the end are 0 and stand for the last one: loads do not wait for tests.
#define EVERY_ROW(q, r)                                                                                                          \
    SMELT_UNROLL for (uint q = 0; q < LEAF_ROWS; q++)                                                                             \
        for (uint r = metal::min(s.first + t + q * threads.x, s.rows - 1), once = 1; once; once = 0)
#define X(q, c) kept[q][c]
#else
#define EACH_ROW_OF(q, r, count) for (uint q = 0, r = s.first + t; r < s.rows; r += count)
#define X(q, c) x[(c) * m + r]
#define EVERY_ROW(q, r) EACH_ROW(q, r)
#endif
#define EACH_ROW(q, r) EACH_ROW_OF(q, r, threads.x)

// The lanes with the bit keep the second `half_count` values, the others the first, and add what the other lane gives up.
template <uint count, uint half_count, uint bit>
inline void halve(thread float (&values)[count], uint lane) {
    const bool second = (lane & bit) != 0;
    SMELT_UNROLL for (uint c = 0; c < half_count; c++) {
        const float low = values[c], high = values[c + half_count];
        values[c] = (second ? high : low) + metal::simd_shuffle_xor(second ? low : high, ushort(bit));
    }
}

// Sums of `count` values (8 or 32) over a simdgroup, in parts[]. On GPUs, the lanes halve the values between them until each has
// count / 8 of them or its part of one.
template <uint count>
inline void sum_lanes(threadgroup float *parts, thread float (&values)[count], uint lane) {
#if ON_CPU
    SMELT_UNROLL for (uint c = 0; c < count; c++) {
        const float sum = metal::simd_sum(values[c]);
        if (lane == 0) parts[c] = sum;
    }
#else
    halve<count, count / 2, 16>(values, lane);
    halve<count, count / 4, 8>(values, lane);
    halve<count, count / 8, 4>(values, lane);
    SMELT_UNROLL for (uint c = 0; c < count / 8; c++) {
        values[c] += metal::simd_shuffle_xor(values[c], ushort(2));
        values[c] += metal::simd_shuffle_xor(values[c], ushort(1));
    }
    // Lane bits 16, 8 and 4 chose the halves.
    const uint first = (lane & 16 ? count / 2 : 0) + (lane & 8 ? count / 4 : 0) + (lane & 4 ? count / 8 : 0);
    if (lane % 4 == 0)
        SMELT_UNROLL for (uint c = 0; c < count / 8; c++) parts[first + c] = values[c];
#endif
}

// Sums of `count` values of each thread, in total[].
inline void sum_all(threadgroup float *parts, threadgroup float *total, uint count, uint t, uint threads, uint simdgroups) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint e = t; e < count; e += threads) {
        float sum = 0.0f;
        SMELT_UNROLL for (uint g = 0; g < LEAF_SIMDGROUPS; g++) sum += g < simdgroups ? parts[g * LEAF * LEAF + e] : 0.0f;
        total[e] = sum;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
}

// What the threads of a leaf have in common.
struct leaf_state {
    threadgroup float *parts, *total, *product, *top, *weights;
    device float *x, *tau, *dbg;
    uint t, threads, simdgroup, simdgroups, lane;
    uint row; // of the leaf's first diagonal element
    float scale, unscale, largest, smallest;
};

// Reflects column j, whose products with the columns after it are in `dots`. A constant j keeps the elements in registers.
#if LEAF_ROWS
#define KEPT thread float (&kept)[LEAF_ROWS][LEAF],
#define STEP(j) if (j < count) reflect(kept, dots, state, s, uint_constant<j>())
#else
#define KEPT
#define STEP(j) if (j < count) reflect(dots, state, s, j)
#endif
template <uint N> struct uint_constant {
    static constant constexpr uint value = N;
    operator uint() const thread { return N; }
};

template <typename Column>
inline void reflect(KEPT thread float (&dots)[LEAF], thread leaf_state &state, thread const leaf_size &s, Column number) {
    threadgroup float *parts = state.parts, *total = state.total, *product = state.product, *top = state.top,
                      *weights = state.weights;
    device float *x = state.x, *tau = state.tau, *dbg = state.dbg;
    const uint t = state.t, simdgroup = state.simdgroup, simdgroups = state.simdgroups, lane = state.lane, row = state.row,
               j = number;
    const uint threads = state.threads;
    const long m = s.rows;
    const float scale = state.scale, unscale = state.unscale, largest = state.largest;
    (void)x;
    (void)m;
    sum_lanes<LEAF>(parts + simdgroup * LEAF * LEAF, dots, lane);
    SMELT_UNROLL for (uint c = 0; c < LEAF; c++) dots[c] = 0.0f;
    sum_all(parts, total, LEAF, t, threads, simdgroups);
    const float alpha = top[j % 2 * LEAF + j], squares = total[j];
    const float norm = metal::precise::sqrt(metal::fma(alpha * scale, alpha * scale, squares)) * unscale;
    // A column that is 0 below its diagonal stays as it is: tau is 0.
    const bool turns_it = !(squares == 0.0f);
    const float beta = !turns_it ? alpha : alpha >= 0.0f ? -norm : norm;
    const float factor = turns_it ? 1.0f / (alpha - beta) : 0.0f, weight = turns_it ? (beta - alpha) / beta : 0.0f;
    float by[LEAF];
    const float shrink = factor * unscale * unscale;
    SMELT_UNROLL for (uint c = 0; c < LEAF; c++)
        by[c] = c > j ? weight * (top[j % 2 * LEAF + c] + total[c] * shrink) : 0.0f;
    if (t == 0) {
        tau[row + j] = weights[j] = weight;
        // What the column of T needs: products with the reflections before.
        if (j > 0) SMELT_UNROLL for (uint i = 0; i < LEAF; i++) product[i * LEAF + j - 1] = total[i];
        state.smallest = metal::min(state.smallest, metal::abs(beta));
        const bool tiny = metal::abs(beta) <= s.tolerance * largest && s.tolerance >= 0.0f;
        if ((tiny || !metal::isfinite(beta)) && dbg_get(dbg, DBG_ERROR) == 0.0f) {
            dbg_value(dbg, 0, float(row + j));
            dbg_fail(dbg, tiny ? TINY : NOT_FINITE, beta);
        }
    }
    const uint diagonal = row + j;
    EACH_ROW_OF(q, r, threads) {
        if (r >= diagonal) {
            const float value = r == diagonal ? 1.0f : X(q, j) * factor;
            X(q, j) = r == diagonal ? beta : value;
            SMELT_UNROLL for (uint c = 0; c < LEAF; c++) {
                if (c > j) X(q, c) = metal::fma(-value, by[c], X(q, c));
                if (c < j) dots[c] = metal::fma(value, X(q, c), dots[c]);
            }
            if (j + 1 < LEAF) {
                if (r > diagonal + 1)
                    SMELT_UNROLL for (uint c = 0; c < LEAF; c++)
                        if (c > j) dots[c] = metal::fma(X(q, (j + 1) % LEAF) * scale, X(q, c) * scale, dots[c]);
                if (r == diagonal + 1)
                    SMELT_UNROLL for (uint c = 0; c < LEAF; c++) top[(j + 1) % 2 * LEAF + c] = X(q, c);
            }
        }
    }
}

// Groups: leaves from `leaf` on × matrices.
kernel void linalg_qr_leaf(device float *p [[buffer(0)]], device float *w [[buffer(1)]], device float *tau [[buffer(2)]],
                           device float *turns [[buffer(3)]], device float *dbg [[buffer(4)]],
                           device const uint *stats [[buffer(5)]], constant leaf_size &size [[buffer(6)]],
                           uint2 group [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                           uint2 threads [[dispatch_threads_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                           uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float parts[LEAF_SIMDGROUPS * LEAF * LEAF], total[LEAF * LEAF], product[LEAF * LEAF], top[2 * LEAF], weights[LEAF];
    const leaf_size s = size; // stores might change what is behind the reference
    const uint c0 = s.leaf + group.x * LEAF, count = metal::min(LEAF, s.columns - c0);
    const long m = s.rows;
    p += group.y * s.p_matrix + s.p_first;
    w += group.y * s.w_matrix;
    tau += group.y * s.pivots_matrix;
    turns += group.y * 2 * LEAF * LEAF;
    dbg += group.y * DBG_COUNT;
    device float *x = p + c0 * m;
#if LEAF_ROWS
    float kept[LEAF_ROWS][LEAF];
    SMELT_UNROLL for (uint q = 0; q < LEAF_ROWS; q++) SMELT_UNROLL for (uint c = 0; c < LEAF; c++) kept[q][c] = 0.0f;
    EACH_ROW(q, r) SMELT_UNROLL for (uint c = 0; c < LEAF; c++) kept[q][c] = x[c * m + r];
#endif
    if (s.previous != NONE) {
        // x -= V (Tᵀ (Vᵀ x))
        device const float *v = p + s.previous * m, *turn = turns + s.previous / LEAF % 2 * LEAF * LEAF;
        for (uint a0 = 0; a0 < LEAF; a0 += SIDE)
            for (uint b0 = 0; b0 < LEAF; b0 += ACROSS) {
                float sums[SIDE * ACROSS];
                SMELT_UNROLL for (uint e = 0; e < SIDE * ACROSS; e++) sums[e] = 0.0f;
                EVERY_ROW(q, r) {
                    float left[SIDE];
                    SMELT_UNROLL for (uint a = 0; a < SIDE; a++) left[a] = v[(a0 + a) * m + r];
                    SMELT_UNROLL for (uint b = 0; b < ACROSS; b++) {
                        const float right = X(q, b0 + b);
                        SMELT_UNROLL for (uint a = 0; a < SIDE; a++)
                            sums[a * ACROSS + b] = metal::fma(left[a], right, sums[a * ACROSS + b]);
                    }
                }
#if ON_CPU
                SMELT_UNROLL for (uint a = 0; a < SIDE; a++) {
                    const float sum = metal::simd_sum(sums[a]);
                    if (lane == 0) parts[simdgroup * LEAF * LEAF + (a0 + a) * LEAF + b0] = sum;
                }
#else
                sum_lanes<SIDE * ACROSS>(parts + simdgroup * LEAF * LEAF + a0 * LEAF, sums, lane);
#endif
            }
        sum_all(parts, total, LEAF * LEAF, t, threads.x, simdgroups);
        for (uint e = t; e < LEAF * LEAF; e += threads.x) {
            float sum = 0.0f;
            for (uint a = 0; a <= e / LEAF; a++) sum += turn[a * LEAF + e / LEAF] * total[a * LEAF + e % LEAF];
            product[e] = sum;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        EVERY_ROW(q, r) {
            float left[LEAF];
            SMELT_UNROLL for (uint a = 0; a < LEAF; a++) left[a] = v[a * m + r];
            SMELT_UNROLL for (uint b = 0; b < LEAF; b++) {
                float value = X(q, b);
                SMELT_UNROLL for (uint a = 0; a < LEAF; a++) value = metal::fma(-left[a], product[a * LEAF + b], value);
                X(q, b) = value;
            }
        }
    }
    if (group.x != 0) {
#if LEAF_ROWS
        EACH_ROW(q, r) SMELT_UNROLL for (uint c = 0; c < LEAF; c++) x[c * m + r] = kept[q][c];
#endif
        return;
    }

    // Sums of squares are of scaled elements, which neither overflow nor vanish: the largest is about 1.
    const float largest = as_type<float>(stats[group.y * STATS]);
    int power = 0;
    if (largest > 0.0f && largest < INFINITY) metal::frexp(largest, power);
    power = metal::clamp(power, -126, 126);
    const float scale = metal::ldexp(1.0f, -power), unscale = metal::ldexp(1.0f, power);
    const uint row = s.first + s.leaf;
    float dots[LEAF], smallest = row ? dbg_get(dbg, DBG_VALUES + 1) : INFINITY;
    SMELT_UNROLL for (uint c = 0; c < LEAF; c++) dots[c] = 0.0f;
    EACH_ROW(q, r) {
        if (r > row) SMELT_UNROLL for (uint c = 0; c < LEAF; c++) dots[c] = metal::fma(X(q, 0) * scale, X(q, c) * scale, dots[c]);
        if (r == row) SMELT_UNROLL for (uint c = 0; c < LEAF; c++) top[c] = X(q, c);
    }
    leaf_state state = {parts, total, product, top, weights, x, tau, dbg, t, threads.x, simdgroup, simdgroups, lane, row,
                        scale, unscale, largest, smallest};
#if LEAF_ROWS
    STEP(0);
    STEP(1);
    STEP(2);
    STEP(3);
    STEP(4);
    STEP(5);
    STEP(6);
    STEP(7);
#else
    for (uint j = 0; j < count; j++) STEP(j);
#endif
    smallest = state.smallest;
    sum_lanes<LEAF>(parts + simdgroup * LEAF * LEAF, dots, lane);
    sum_all(parts, total, LEAF, t, threads.x, simdgroups);
    EACH_ROW(q, r) SMELT_UNROLL for (uint c = 0; c < LEAF; c++) {
        if (c >= count) continue;
        if (r <= row + c) w[r * s.w_row + row + c] = X(q, c);
        x[c * m + r] = r > row + c ? X(q, c) : r == row + c ? 1.0f : 0.0f;
    }
    // T, upper triangular: its column j is -tau[j] T Vᵀ v[j], and tau[j]. A row in each thread.
    device float *turn = turns + s.leaf / LEAF % 2 * LEAF * LEAF;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < LEAF) {
        float line[LEAF];
        SMELT_UNROLL for (uint j = 0; j < LEAF; j++) {
            float sum = 0.0f;
            SMELT_UNROLL for (uint k = 0; k < j; k++)
                if (k >= t) sum = metal::fma(line[k], j + 1 == count ? total[k] : product[k * LEAF + j], sum);
            line[j] = j >= count ? 0.0f : j < t ? 0.0f : j == t ? weights[j] : -weights[j] * sum;
            turn[t * LEAF + j] = line[j];
        }
    }
    if (t == 0) {
        dbg_iterations(dbg, row + count);
        dbg_value(dbg, 1, smallest);
        if (row + count == s.rank) dbg_succeed(dbg);
    }
}
