// Attention of few rows on CPUs, such as a step of a decoder: attention_host.metal's lanes are rows, and would be idle.
// attention_parts.metal precedes this text, and ATTENTION_FULL: rows of q, k and v have D elements, a multiple of LANES.
//
// A simdgroup computes ROWS lines, which are rows of the heads that share one of k and v, and so reads keys and values once
// for all of them. Its lanes are elements of a head where it multiplies, so that rows of k and v are read as they lie, and
// keys between the two products.

constant constexpr bool FULL = ATTENTION_FULL;
constant constexpr float log2_e = 0x1.715476p0f;
constant constexpr int LANES = 32, HELD = (D + LANES - 1) / LANES; // HELD: elements of a lane
// Keys whose products do not wait for each other, and elements of a lane that are summed in one walk over the values: as many
// as leave registers for the rest.
constant constexpr int AT_ONCE = ROWS < 4 ? 8 / ROWS : 2, PART = ROWS < 4 ? 4 / ROWS : 1;

// An element of the lane, of HELD: 0 beyond the row's last.
inline float element(device const T *row, int i, int size, uint lane) {
    const int column = i * LANES + int(lane);
    return FULL || column < size ? (float)row[column] : 0.0f;
}

inline void read_row(device const T *row, int size, uint lane, thread float (&held)[HELD]) {
#pragma unroll
    for (int i = 0; i < HELD; i++) held[i] = element(row, i, size, lane);
}

kernel void smelt_attention_host_few(device const T *q [[buffer(0)]], device const T *k [[buffer(1)]],
                                     device const T *v [[buffer(2)]], device T *out [[buffer(3)]],
                                     constant attention_size &size [[buffer(4)]],
                                     device float *sums [[buffer(5)]] MASK_PARAMETER SINKS_PARAMETER,
                                     threadgroup float *scores [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
                                     uint lane [[thread_index_in_simdgroup]]) {
    const int together = size.heads / size.key_heads, lines = together * size.rows, first = group.x * ROWS;
    const int batch = group.z, key_head = group.y, past = size.keys - size.rows;
    const int stride = min(KEYS, size.keys); // of the scores of a line
    auto keys = operand_rows(k, 1, batch, key_head, size.key_heads, size.depth, size.keys, size);
    auto values = operand_rows(v, 2, batch, key_head, size.key_heads, size.value_depth, size.keys, size);
    device const T *const own_keys = &keys[0, 0], *const own_values = &values[0, 0];
    const long key_stride = size.places[1].row, value_stride = size.places[2].row;

    float queries[ROWS][HELD], totals[ROWS][HELD], top[ROWS], sum[ROWS];
    int heads[ROWS], rows[ROWS];
    int end = 0; // keys that a line sees
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int line = min(first + r, lines - 1);
        heads[r] = key_head * together + line / size.rows, rows[r] = line % size.rows;
        const auto place = size.places[0];
        read_row(q + place.first + ((long)batch * place.batch + (long)heads[r] * place.head) * place.between + rows[r] * place.row,
                 size.depth, lane, queries[r]);
        for (int i = 0; i < HELD; i++) totals[r][i] = 0;
        const float sink = SINK_OF(heads[r]);
        top[r] = sink, sum[r] = sink == -INFINITY ? 0.0f : 1.0f;
        end = max(end, size.causal ? min(size.keys, rows[r] + past + 1) : size.keys);
    }

    for (int key = 0; key < end; key += KEYS) {
        const int count = min(KEYS, end - key);
        int i = 0;
        for (; i + AT_ONCE <= count; i += AT_ONCE) {
            float dots[ROWS][AT_ONCE];
#pragma unroll
            for (int a = 0; a < AT_ONCE; a++) {
                float held[HELD];
                read_row(own_keys + (key + i + a) * key_stride, size.depth, lane, held);
#pragma unroll
                for (int r = 0; r < ROWS; r++) {
                    dots[r][a] = 0;
                    for (int j = 0; j < HELD; j++) dots[r][a] = fma(queries[r][j], held[j], dots[r][a]);
                }
            }
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                for (int a = 0; a < AT_ONCE; a++) scores[r * stride + i + a] = simd_sum(dots[r][a]);
        }
        for (; i < count; i++) {
            float held[HELD];
            read_row(own_keys + (key + i) * key_stride, size.depth, lane, held);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float dot = 0;
                for (int j = 0; j < HELD; j++) dot = fma(queries[r][j], held[j], dot);
                scores[r * stride + i] = simd_sum(dot);
            }
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            threadgroup float *own = scores + r * stride;
            const head_mask own_mask = MASK_OF(batch, heads[r]);
            float now = -INFINITY, added = 0;
            for (int i = lane; i < count; i += LANES) {
                own[i] = masked(own[i], rows[r], key + i, size, own_mask);
                now = max(now, own[i]);
            }
            now = max(top[r], simd_max(now));
            // How much less what was summed before counts now. A row without any key so far has none.
            const float factor = top[r] == -INFINITY ? 0.0f : exp2_down((top[r] - now) * log2_e);
            const float shift = now == -INFINITY ? 0.0f : now;
            for (int i = lane; i < count; i += LANES) {
                own[i] = exp2_down((own[i] - shift) * log2_e);
                added += own[i];
            }
            top[r] = now, sum[r] = sum[r] * factor + simd_sum(added);
            for (int j = 0; j < HELD; j++) totals[r][j] *= factor;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (int j = 0; j < HELD; j += PART)
            for (int i = 0; i < count; i++) {
                device const T *const row = own_values + (key + i) * value_stride;
#pragma unroll
                for (int p = j; p < min(j + PART, HELD); p++) {
                    const float value = element(row, p, size.value_depth, lane);
#pragma unroll
                    for (int r = 0; r < ROWS; r++) totals[r][p] = fma(scores[r * stride + i], value, totals[r][p]);
                }
            }
        simdgroup_barrier(mem_flags::mem_threadgroup);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (first + r >= lines) continue;
        const float factor = sum[r] == 0 ? 0.0f : 1 / sum[r];
        device T *result = out + result_at(batch, heads[r], rows[r], size);
        for (int i = 0; i < HELD; i++)
            if (i * LANES + int(lane) < size.value_depth) result[i * LANES + lane] = (T)(totals[r][i] * factor);
        if (lane == 0) sums[((long)batch * size.heads + heads[r]) * size.rows + rows[r]] = top[r] + log(sum[r]);
    }
}
