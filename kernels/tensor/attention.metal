// Attention of arrays and its derivative: softmax(scale · q kᵀ + mask) v for each head of each batch. attention_parts.metal
// precedes this text.
//
// A simdgroup computes a tile's rows, or for the derivative by k and v a tile's keys, and walks over the others. Scores
// never leave it: they are the destination of one operation, and as weights the left input of the next. The derivative
// computes them again, and weights from the logarithm of each row's sum.

// ---- Forward. sums: batches × heads × rows, the logarithm of the sum of a row's exponentials.

kernel void smelt_attention(device const T *q [[buffer(0)]], device const T *k [[buffer(1)]], device const T *v [[buffer(2)]],
                            device T *out [[buffer(3)]], constant attention_size &size [[buffer(4)]],
                            device float *sums [[buffer(5)]] MASK_PARAMETER SINKS_PARAMETER,
                            uint3 group [[threadgroup_position_in_grid]]) {
    const int first = group.x * ROWS;
    const long head = (long)group.z * size.heads + group.y;
    const int key_heads = size.key_heads, key_head = group.y / (size.heads / key_heads);
    const head_mask own_mask = MASK_OF(group.z, group.y);
    auto queries = operand_rows(q, 0, group.z, group.y, size.heads, size.depth, size.rows, size);
    auto keys = operand_rows(k, 1, group.z, key_head, key_heads, size.depth, size.keys, size);
    auto values = operand_rows(v, 2, group.z, key_head, key_heads, size.value_depth, size.keys, size);
    auto results = tensor(out + result_at(group.z, group.y, 0, size), dextents<int, 2>(size.value_depth, size.rows),
                          array<long, 2>{1, size.result.row});
    auto own_queries = queries.slice(0, first);

    matmul2d<matmul2d_descriptor(ROWS, KEYS, D, false, true), execution_simdgroup> score;
    matmul2d<matmul2d_descriptor(ROWS, D, KEYS, false, false, false, adding), execution_simdgroup> weigh;
    using operand = decltype(own_queries);
    using weights_type = typename decltype(weigh)::template cooperative_tensor_left_input_t<T, T, float>;
    auto scores = score.get_destination_cooperative_tensor<operand, operand, float>();
    auto block_top = score.get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto block_sum = score.get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto top = score.get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto sum = score.get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto weights = score.get_destination_cooperative_tensor<operand, operand, T>();
    auto total = weigh.get_destination_cooperative_tensor<weights_type, operand, float>();
    const float sink = SINK_OF(group.y);
    for (ushort i = 0; i < top.get_capacity(); i++) top[i] = sink;
    for (ushort i = 0; i < sum.get_capacity(); i++) sum[i] = sink == -INFINITY ? 0.0f : 1.0f;
    for (ushort i = 0; i < total.get_capacity(); i++) total[i] = 0;

    const int past = size.keys - size.rows; // keys before the first row's own
    const int end = size.causal ? min(size.keys, first + ROWS + past) : size.keys;
    for (int key = 0; key < end; key += KEYS) {
        auto own_keys = keys.slice(0, key);
        auto own_values = values.slice(0, key);
        score.run(own_queries, own_keys, scores);
        if (sees_all(first, ROWS, key, KEYS, size)) {
            for (ushort i = 0; i < scores.get_capacity(); i++) scores[i] *= size.scale;
        } else {
            for (ushort i = 0; i < scores.get_capacity(); i++) {
                auto at = scores.get_multidimensional_index(i);
                scores[i] = masked(scores[i], first + at[1], key + at[0], size, own_mask);
            }
        }
        reduce_rows(scores, block_top, reduction_operation::max, -INFINITY);
        for (ushort i = 0; i < top.get_capacity(); i++) {
            const float before = top[i], now = max(before, block_top[i]);
            top[i] = now;
            // How much less what was summed before counts now. A row without any key so far has none.
            block_top[i] = before == -INFINITY ? 0.0f : exp(before - now);
            sum[i] *= block_top[i];
        }
        for (ushort i = 0; i < scores.get_capacity(); i++) {
            const float row_top = *top.map_iterator(scores.get_iterator(i));
            scores[i] = exp(scores[i] - (row_top == -INFINITY ? 0.0f : row_top));
            weights[i] = (T)scores[i];
        }
        for (ushort i = 0; i < total.get_capacity(); i++) total[i] *= *block_top.map_iterator(total.get_iterator(i));
        reduce_rows(scores, block_sum, reduction_operation::sum, 0.0f);
        for (ushort i = 0; i < sum.get_capacity(); i++) sum[i] += block_sum[i];
        auto left = weigh.get_left_input_cooperative_tensor<T, T, float>(weights);
        weigh.run(left, own_values, total);
    }
    auto rounded = weigh.get_destination_cooperative_tensor<operand, operand, T>();
    for (ushort i = 0; i < total.get_capacity(); i++) {
        const float all = *sum.map_iterator(total.get_iterator(i));
        rounded[i] = (T)(all == 0 ? 0.0f : total[i] / all);
    }
    rounded.store(results.slice(0, first));
    // Lanes that hold the same row write the same number.
    for (ushort i = 0; i < sum.get_capacity(); i++) {
        const int row = first + sum.get_multidimensional_index(i)[0];
        if (row < size.rows) sums[head * size.rows + row] = top[i] + log(sum[i]);
    }
}

// ---- The derivative. g is that of a loss by out. With weights w = exp(score - sum) and dots = Σ g · out of each row,
// that by a score is w · (g · v - dots).

kernel void smelt_attention_dots(device const T *out [[buffer(0)]], device const T *g [[buffer(1)]],
                                 device float *dots [[buffer(3)]], constant attention_size &size [[buffer(4)]],
                                 uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const int depth = size.value_depth;
    float sum = 0;
    for (int i = lane; i < depth; i += 32) sum += (float)out[(long)row * depth + i] * (float)g[(long)row * depth + i];
    sum = simd_sum(sum);
    if (lane == 0) dots[row] = sum;
}

kernel void smelt_attention_vjp_q(device const T *q [[buffer(0)]], device const T *k [[buffer(1)]],
                                  device const T *v [[buffer(2)]], device T *by_q [[buffer(3)]],
                                  constant attention_size &size [[buffer(4)]], device const float *sums [[buffer(5)]],
                                  device const float *dots [[buffer(6)]], device const T *g [[buffer(7)]] MASK_PARAMETER,
                                  uint3 group [[threadgroup_position_in_grid]]) {
    const int first = group.x * ROWS;
    const long head = (long)group.z * size.heads + group.y;
    const long key_head = (long)group.z * size.key_heads + group.y / (size.heads / size.key_heads);
    const head_mask own_mask = MASK_OF(group.z, group.y);
    auto own_queries = rows_of(q + head * size.rows * size.depth, size.depth, size.rows).slice(0, first);
    auto own_g = rows_of(g + head * size.rows * size.value_depth, size.value_depth, size.rows).slice(0, first);
    auto keys = rows_of(k + key_head * size.keys * size.depth, size.depth, size.keys);
    auto values = rows_of(v + key_head * size.keys * size.value_depth, size.value_depth, size.keys);

    matmul2d<matmul2d_descriptor(ROWS, KEYS, D, false, true), execution_simdgroup> score;
    matmul2d<matmul2d_descriptor(ROWS, D, KEYS, false, false, false, adding), execution_simdgroup> weigh;
    using operand = decltype(own_queries);
    using weights_type = typename decltype(weigh)::template cooperative_tensor_left_input_t<T, T, float>;
    auto scores = score.get_destination_cooperative_tensor<operand, operand, float>();
    auto by_weights = score.get_destination_cooperative_tensor<operand, operand, float>();
    auto by_scores = score.get_destination_cooperative_tensor<operand, operand, T>();
    auto row_sums = score.get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto row_dots = score.get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto total = weigh.get_destination_cooperative_tensor<weights_type, operand, float>();
    for (ushort i = 0; i < total.get_capacity(); i++) total[i] = 0;
    for (ushort i = 0; i < row_sums.get_capacity(); i++) {
        const int row = min(first + row_sums.get_multidimensional_index(i)[0], size.rows - 1);
        row_sums[i] = sums[head * size.rows + row];
        row_dots[i] = dots[head * size.rows + row];
    }
    const int end = size.causal ? min(size.keys, first + ROWS + size.keys - size.rows) : size.keys;
    for (int key = 0; key < end; key += KEYS) {
        auto own_keys = keys.slice(0, key);
        auto own_values = values.slice(0, key);
        score.run(own_queries, own_keys, scores);
        score.run(own_g, own_values, by_weights);
        const bool all = sees_all(first, ROWS, key, KEYS, size);
        for (ushort i = 0; i < scores.get_capacity(); i++) {
            auto at = scores.get_multidimensional_index(i);
            const float value = all ? scores[i] * size.scale : masked(scores[i], first + at[1], key + at[0], size, own_mask);
            const float sum = *row_sums.map_iterator(scores.get_iterator(i));
            const float weight = value == -INFINITY ? 0.0f : exp(value - sum);
            by_scores[i] = (T)(weight * (by_weights[i] - *row_dots.map_iterator(scores.get_iterator(i))));
        }
        auto left = weigh.get_left_input_cooperative_tensor<T, T, float>(by_scores);
        weigh.run(left, own_keys, total);
    }
    auto rounded = weigh.get_destination_cooperative_tensor<operand, operand, T>();
    for (ushort i = 0; i < total.get_capacity(); i++) rounded[i] = (T)(total[i] * size.scale);
    rounded.store(rows_of(by_q + head * size.rows * size.depth, size.depth, size.rows).slice(0, first));
}

// A tile's keys are the rows of the operations here, and all heads that share them are summed.
kernel void smelt_attention_vjp_kv(device const T *q [[buffer(0)]], device const T *k [[buffer(1)]],
                                   device const T *v [[buffer(2)]], device T *by_k [[buffer(3)]],
                                   constant attention_size &size [[buffer(4)]], device const float *sums [[buffer(5)]],
                                   device const float *dots [[buffer(6)]], device const T *g [[buffer(7)]],
                                   device T *by_v [[buffer(8)]] MASK_PARAMETER,
                                   uint3 group [[threadgroup_position_in_grid]]) {
    const int first = group.x * KEYS;
    const long key_head = (long)group.z * size.key_heads + group.y;
    const int together = size.heads / size.key_heads, past = size.keys - size.rows;
    auto own_keys = rows_of(k + key_head * size.keys * size.depth, size.depth, size.keys).slice(0, first);
    auto own_values = rows_of(v + key_head * size.keys * size.value_depth, size.value_depth, size.keys).slice(0, first);

    matmul2d<matmul2d_descriptor(KEYS, ROWS, D, false, true), execution_simdgroup> score;
    matmul2d<matmul2d_descriptor(KEYS, D, ROWS, false, false, false, adding), execution_simdgroup> weigh;
    using operand = decltype(own_keys);
    using weights_type = typename decltype(weigh)::template cooperative_tensor_left_input_t<T, T, float>;
    auto scores = score.get_destination_cooperative_tensor<operand, operand, float>();
    auto by_weights = score.get_destination_cooperative_tensor<operand, operand, float>();
    auto weights = score.get_destination_cooperative_tensor<operand, operand, T>();
    auto by_scores = score.get_destination_cooperative_tensor<operand, operand, T>();
    auto row_sums = score.get_column_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto row_dots = score.get_column_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto total_k = weigh.get_destination_cooperative_tensor<weights_type, operand, float>();
    auto total_v = weigh.get_destination_cooperative_tensor<weights_type, operand, float>();
    for (ushort i = 0; i < total_k.get_capacity(); i++) total_k[i] = total_v[i] = 0;
    // No row before this one sees any of the keys.
    const int begin = size.causal ? max(0, first - past) / ROWS * ROWS : 0;
    for (int h = group.y * together; h < ((int)group.y + 1) * together; h++) {
        const long head = (long)group.z * size.heads + h;
        const head_mask own_mask = MASK_OF(group.z, h);
        auto queries = rows_of(q + head * size.rows * size.depth, size.depth, size.rows);
        auto all_g = rows_of(g + head * size.rows * size.value_depth, size.value_depth, size.rows);
        for (int row = begin; row < size.rows; row += ROWS) {
            auto own_queries = queries.slice(0, row);
            auto own_g = all_g.slice(0, row);
            score.run(own_keys, own_queries, scores);
            score.run(own_values, own_g, by_weights);
            for (ushort i = 0; i < row_sums.get_capacity(); i++) {
                const int at = min(row + row_sums.get_multidimensional_index(i)[0], size.rows - 1);
                row_sums[i] = sums[head * size.rows + at];
                row_dots[i] = dots[head * size.rows + at];
            }
            const bool all = sees_all(row, ROWS, first, KEYS, size);
            for (ushort i = 0; i < scores.get_capacity(); i++) {
                auto at = scores.get_multidimensional_index(i);
                const float value = all ? scores[i] * size.scale : masked(scores[i], row + at[0], first + at[1], size, own_mask);
                const float sum = *row_sums.map_iterator(scores.get_iterator(i));
                const float weight = value == -INFINITY ? 0.0f : exp(value - sum);
                weights[i] = (T)weight;
                by_scores[i] = (T)(weight * (by_weights[i] - *row_dots.map_iterator(scores.get_iterator(i))));
            }
            auto left_weights = weigh.get_left_input_cooperative_tensor<T, T, float>(weights);
            weigh.run(left_weights, own_g, total_v);
            auto left_scores = weigh.get_left_input_cooperative_tensor<T, T, float>(by_scores);
            weigh.run(left_scores, own_queries, total_k);
        }
    }
    auto rounded = weigh.get_destination_cooperative_tensor<operand, operand, T>();
    for (ushort i = 0; i < total_k.get_capacity(); i++) rounded[i] = (T)(total_k[i] * size.scale);
    rounded.store(rows_of(by_k + key_head * size.keys * size.depth, size.depth, size.keys).slice(0, first));
    for (ushort i = 0; i < total_v.get_capacity(); i++) rounded[i] = (T)total_v[i];
    rounded.store(rows_of(by_v + key_head * size.keys * size.value_depth, size.value_depth, size.keys).slice(0, first));
}
