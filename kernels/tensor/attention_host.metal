// Attention on CPUs: the forward kernel of attention.metal for devices on which a product of tiles is one call of the engine
// (src/device/cpu/tile.c). attention_parts.metal precedes this text.
//
// The simdgroup's lanes are queries. Scores lie in threadgroup memory as keys × queries, so each lane walks down a column,
// and no sum or maximum crosses lanes. That is also how the engine reads and writes them without packing: keys are the
// left operand of the first product, line by line; weights are the left operand of the second, column by column.
// The launch allocates scores for min(KEYS, number of keys): threadgroup memory is filled before each group, which for all
// KEYS took a quarter of a call on 16 keys (2.5 of 11 µs).

constant constexpr int LANES = 32, PARTS = ROWS / LANES;
constant constexpr float log2_e = 0x1.715476p0f;
// Columns of queries begin in different sets of the first-level cache.
constant constexpr int LINE = ROWS + 16;

kernel void smelt_attention_host(device const T *q [[buffer(0)]], device const T *k [[buffer(1)]],
                                 device const T *v [[buffer(2)]], device T *out [[buffer(3)]],
                                 constant attention_size &size [[buffer(4)]],
                                 device float *sums [[buffer(5)]] MASK_PARAMETER SINKS_PARAMETER,
                                 threadgroup float *scores [[threadgroup(0)]], uint3 group [[threadgroup_position_in_grid]],
                                 uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float totals[ROWS * D], factors[ROWS];
    const int first = group.x * ROWS, rows = min(ROWS, size.rows - first);
    const int width = (rows + 15) / 16 * 16; // of the scores that are computed
    const long head = (long)group.z * size.heads + group.y;
    const int key_heads = size.key_heads, key_head = group.y / (size.heads / key_heads);
    const head_mask own_mask = MASK_OF(group.z, group.y);
    auto queries = operand_rows(q, 0, group.z, group.y, size.heads, size.depth, size.rows, size).slice(0, first);
    auto keys = operand_rows(k, 1, group.z, key_head, key_heads, size.depth, size.keys, size);
    auto values = operand_rows(v, 2, group.z, key_head, key_heads, size.value_depth, size.keys, size);
    auto total = tensor(totals, dextents<int, 2>(size.value_depth, rows), array<long, 2>{1, D});

    constexpr int any = dynamic_length_v<int>;
    matmul2d<matmul2d_descriptor(KEYS, ROWS, any, false, true), execution_simdgroup> score;
    matmul2d<matmul2d_descriptor(ROWS, D, any, true, false), execution_simdgroup> weigh_first;
    matmul2d<matmul2d_descriptor(ROWS, D, any, true, false, false, adding), execution_simdgroup> weigh;

    const float sink = SINK_OF(group.y);
    float top[PARTS], sum[PARTS];
    for (int p = 0; p < PARTS; p++) top[p] = sink, sum[p] = sink == -INFINITY ? 0.0f : 1.0f;
    // Lanes beyond the width compute with these, and then with their weights.
    if (width % LANES)
        for (int key = 0; key < min(KEYS, size.keys); key++) scores[key * LINE + width / LANES * LANES + lane] = 0;

    const int past = size.keys - size.rows; // keys before the first row's own
    const int end = size.causal ? min(size.keys, first + ROWS + past) : size.keys;
    for (int key = 0; key < end; key += KEYS) {
        const int count = min(KEYS, end - key);
        auto block = tensor(scores, dextents<int, 2>(width, count), array<long, 2>{1, LINE});
        auto weights = tensor(scores, dextents<int, 2>(rows, count), array<long, 2>{1, LINE});
        auto own_keys = keys.slice(0, key);
        auto own_values = values.slice(0, key);
        score.run(own_keys, queries, block);
        const bool all = !ATTENTION_MASK && (!size.causal || key + count - 1 <= first + past);
        bool changed = false;
        for (int p = 0; p < PARTS && p * LANES < rows; p++) {
            threadgroup float *own = scores + p * LANES + lane;
            const int row = first + p * LANES + lane;
            float now = top[p];
            for (int i = 0; i < count; i++) {
                const float score = own[i * LINE], value = all ? score * size.scale : masked(score, row, key + i, size, own_mask);
                own[i * LINE] = value;
                now = max(now, value);
            }
            // How much less what was summed before counts now. A row without any key so far has none.
            const float factor = top[p] == -INFINITY ? 0.0f : exp2_down((top[p] - now) * log2_e);
            const float shift = now == -INFINITY ? 0.0f : now;
            float added = 0;
            for (int i = 0; i < count; i++) {
                const float weight = exp2_down((own[i * LINE] - shift) * log2_e);
                own[i * LINE] = weight;
                added += weight;
            }
            changed |= factor != 1;
            factors[p * LANES + lane] = factor;
            top[p] = now, sum[p] = sum[p] * factor + added;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        if (key == 0) {
            weigh_first.run(weights, own_values, total);
        } else {
            if (simd_any(changed))
                for (int row = 0; row < rows; row++) {
                    const float factor = factors[row];
                    for (int i = lane; i < size.value_depth; i += LANES) totals[row * D + i] *= factor;
                }
            weigh.run(weights, own_values, total);
        }
    }
    for (int p = 0; p < PARTS && p * LANES < rows; p++) {
        const int row = first + p * LANES + lane;
        factors[p * LANES + lane] = sum[p] == 0 ? 0.0f : 1 / sum[p];
        if (row < size.rows) sums[head * size.rows + row] = top[p] + log(sum[p]);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    device T *result = out + result_at(group.z, group.y, first, size);
    for (int row = 0; row < rows; row++) {
        const float factor = factors[row];
        for (int i = lane; i < size.value_depth; i += LANES)
            result[row * size.result.row + i] = end > 0 ? (T)(totals[row * D + i] * factor) : (T)0;
    }
}
