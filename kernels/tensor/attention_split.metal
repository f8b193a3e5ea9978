// Attention of few rows, such as the one row of a decoder's next token. attention_parts.metal precedes this text. ATTENTION_ROWS
// is the number of rows per threadgroup; ATTENTION_KEYS is not used. The text that precedes both also defines
//   ATTENTION_WIDE   1: rows of q, k and v are multiples of 8 elements, and begin at multiples of 16 bytes
//
// Few rows leave a GPU idle unless their keys are split into parts. A threadgroup computes one part of the keys, for rows of all
// heads that share these keys: such rows follow each other in memory, and are the lines of one head here. A threadgroup reads
// each key and value of its part once. smelt_attention_join joins the parts; if there is only one, smelt_attention_split writes
// the results.
//
// LANES lanes hold a row, in groups of 8 elements. Other lanes and simdgroups hold the same row for other keys; their sums are
// joined at the end.

constant constexpr int SIMDGROUPS = 4, CHUNK = 8; // 16 elements per lane and row: registers suffice for 4 rows
constant constexpr int LANES = D > 128 ? 16 : 8, CHUNKS = D / (LANES * CHUNK), HELD = CHUNKS * CHUNK;
constant constexpr int AT_ONCE = 32 / LANES, STEP = AT_ONCE * SIMDGROUPS, PAIR = 2;
constant constexpr float log2_e = 1.44269504f;
static_assert(HELD * LANES == D, "lanes hold a row");

inline void widen(uint4 bits, thread float *to, float) {
    for (int i = 0; i < 4; i++) to[i] = as_type<float>(bits[i]);
}

template <typename Half>
inline void widen(uint4 bits, thread float *to, Half) {
    for (int i = 0; i < 4; i++) {
        const vec<Half, 2> two = as_type<vec<Half, 2>>(bits[i]);
        to[2 * i] = (float)two.x, to[2 * i + 1] = (float)two.y;
    }
}

// The lane's elements of a row. Beyond the row's end it reads other elements of the row instead: those of q then count as 0, and
// sums of such values are not stored.
inline void read_row(device const T *row, int depth, int lane, thread float (&held)[HELD]) {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        const int column = (c * LANES + lane) * CHUNK;
#if ATTENTION_WIDE
        device const uint4 *from = (device const uint4 *)(row + (column < depth ? column : 0));
#pragma unroll
        for (int i = 0; i < int(sizeof(T)) / 2; i++) widen(from[i], held + c * CHUNK + i * (16 / sizeof(T)), T());
#else
#pragma unroll
        for (int i = 0; i < CHUNK; i++) held[c * CHUNK + i] = (float)row[min(column + i, depth - 1)];
#endif
    }
}

// The state of a row: the largest score so far times log2(e), and the sum of weights.
struct row_state {
    float top, sum;
};

// The factor that takes a sum of weights relative to `top` to one relative to `now`.
inline float faded(float top, float now) { return now == -INFINITY ? 1.0f : fast::exp2(top - now); }

kernel void smelt_attention_split(device const T *q [[buffer(0)]], device const T *k [[buffer(1)]], device const T *v [[buffer(2)]],
                                  device T *out [[buffer(3)]], constant attention_size &size [[buffer(4)]],
                                  device float *log_sums [[buffer(5)]], device float *part_values [[buffer(6)]],
                                  device float *part_states [[buffer(7)]] MASK_PARAMETER SINKS_PARAMETER,
                                  uint3 group [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
                                  uint lane_index [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float shared_values[SIMDGROUPS][ROWS][D];
    threadgroup row_state shared_states[SIMDGROUPS][ROWS];
    const int part = group.x % size.parts, first = group.x / size.parts * ROWS;
    const int together = size.heads / size.key_heads, lines = together * size.rows;
    const long first_line = ((long)group.z * size.heads + (long)group.y * together) * size.rows; // of q
    const long key_head = (long)group.z * size.key_heads + group.y;
    device const T *keys = k + key_head * size.keys * size.depth, *values = v + key_head * size.keys * size.value_depth;
    const int lane = lane_index % LANES, own = lane_index / LANES;
    const int past = size.keys - size.rows;
    const int begin = part * size.part_keys, end = min(size.keys, begin + size.part_keys);

    float queries[ROWS][HELD], sums[ROWS][HELD];
    row_state states[ROWS];
    int limits[ROWS]; // how many keys the row sees, from the first on
#if ATTENTION_MASK
    head_mask masks[ROWS];
    int mask_rows[ROWS];
#endif
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int line = min(first + r, lines - 1), head = group.y * together + line / size.rows, row = line % size.rows;
        read_row(q + (first_line + line) * size.depth, size.depth, lane, queries[r]);
#pragma unroll
        for (int i = 0; i < HELD; i++) {
            const int column = (i / CHUNK * LANES + lane) * CHUNK + i % CHUNK;
            queries[r][i] = column < size.depth ? queries[r][i] * size.scale * log2_e : 0.0f;
            sums[r][i] = 0;
        }
        limits[r] = size.causal ? min(size.keys, row + past + 1) : size.keys;
#if ATTENTION_MASK
        masks[r] = MASK_OF(group.z, head);
        mask_rows[r] = row;
#endif
        // One thread of each column counts the sink.
        const float sink = part == 0 && simdgroup == 0 && own == 0 ? SINK_OF(head) : -INFINITY;
        states[r] = {sink * log2_e, sink == -INFINITY ? 0.0f : 1.0f};
    }

    for (int base = begin + simdgroup * AT_ONCE; base < end; base += PAIR * STEP) {
        float held_keys[PAIR][HELD], held_values[PAIR][HELD], scores[PAIR][ROWS];
#pragma unroll
        for (int p = 0; p < PAIR; p++) {
            const long at = min(base + p * STEP + own, end - 1);
            read_row(keys + at * size.depth, size.depth, lane, held_keys[p]);
            read_row(values + at * size.value_depth, size.value_depth, lane, held_values[p]);
        }
#pragma unroll
        for (int p = 0; p < PAIR; p++)
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float dot = 0;
#pragma unroll
                for (int i = 0; i < HELD; i++) dot = fma(queries[r][i], held_keys[p][i], dot);
#pragma unroll
                for (int far = 1; far < LANES; far *= 2) dot += simd_shuffle_xor(dot, far);
                const int key = base + p * STEP + own;
#if ATTENTION_MASK
                dot = with_mask(dot, mask_at(masks[r], mask_rows[r], min(key, end - 1), size), log2_e);
#endif
                scores[p][r] = key < end && key < limits[r] ? dot : -INFINITY;
            }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float now = max(states[r].top, max(scores[0][r], scores[1][r])), from = now == -INFINITY ? 0.0f : now;
            const float fade = fast::exp2(states[r].top - from);
            const float weights[PAIR] = {fast::exp2(scores[0][r] - from), fast::exp2(scores[1][r] - from)};
            states[r] = {now, states[r].sum * fade + weights[0] + weights[1]};
#pragma unroll
            for (int i = 0; i < HELD; i++)
                sums[r][i] = fma(weights[1], held_values[1][i], fma(weights[0], held_values[0][i], sums[r][i] * fade));
        }
    }

    // Joins the lanes of a simdgroup that hold the same columns.
#pragma unroll
    for (int far = LANES; far < 32; far *= 2)
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const float other = simd_shuffle_xor(states[r].top, far), now = max(states[r].top, other);
            const float fade = faded(states[r].top, now), other_fade = faded(other, now);
            states[r] = {now, states[r].sum * fade + simd_shuffle_xor(states[r].sum, far) * other_fade};
#pragma unroll
            for (int i = 0; i < HELD; i++) sums[r][i] = sums[r][i] * fade + simd_shuffle_xor(sums[r][i], far) * other_fade;
        }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (own == 0)
            for (int i = 0; i < HELD; i++) shared_values[simdgroup][r][(i / CHUNK * LANES + lane) * CHUNK + i % CHUNK] = sums[r][i];
        if (lane_index == 0) shared_states[simdgroup][r] = states[r];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (int r = 0; r < ROWS && first + r < lines; r++) {
        float now = -INFINITY, sum = 0, fades[SIMDGROUPS];
        for (int s = 0; s < SIMDGROUPS; s++) now = max(now, shared_states[s][r].top);
        for (int s = 0; s < SIMDGROUPS; s++) {
            fades[s] = faded(shared_states[s][r].top, now);
            sum += shared_states[s][r].sum * fades[s];
        }
        const int own_line = first + r, head = group.y * together + own_line / size.rows;
        const long line = first_line + own_line, result = result_at(group.z, head, own_line % size.rows, size);
        for (int i = thread_index; i < size.value_depth; i += 32 * SIMDGROUPS) {
            float value = 0;
            for (int s = 0; s < SIMDGROUPS; s++) value += shared_values[s][r][i] * fades[s];
            if (size.parts == 1)
                out[result + i] = (T)(sum == 0 ? 0.0f : value / sum);
            else
                part_values[(line * size.parts + part) * size.value_depth + i] = value;
        }
        if (thread_index > 0) continue;
        if (size.parts == 1) {
            log_sums[line] = log_of_sum(now, sum);
        } else {
            part_states[(line * size.parts + part) * 2] = now;
            part_states[(line * size.parts + part) * 2 + 1] = sum;
        }
    }
}

// A threadgroup per row of `out`.
kernel void smelt_attention_join(device const float *part_values [[buffer(0)]], device const float *part_states [[buffer(1)]],
                                 device T *out [[buffer(3)]], constant attention_size &size [[buffer(4)]],
                                 device float *log_sums [[buffer(5)]], uint group [[threadgroup_position_in_grid]],
                                 uint thread_index [[thread_index_in_threadgroup]]) {
    const long line = group;
    const int head = group / size.rows;
    const long result = result_at(head / size.heads, head % size.heads, group % size.rows, size);
    device const float *states = part_states + line * size.parts * 2;
    device const float *values = part_values + line * size.parts * size.value_depth;
    float now = -INFINITY, sum = 0;
    for (int p = 0; p < size.parts; p++) now = max(now, states[2 * p]);
    for (int p = 0; p < size.parts; p++) sum += states[2 * p + 1] * faded(states[2 * p], now);
    for (int i = thread_index; i < size.value_depth; i += 128) {
        float value = 0;
#pragma unroll 8
        for (int p = 0; p < size.parts; p++) value = fma(values[p * size.value_depth + i], faded(states[2 * p], now), value);
        out[result + i] = (T)(sum == 0 ? 0.0f : value / sum);
    }
    if (thread_index == 0) log_sums[line] = log_of_sum(now, sum);
}
