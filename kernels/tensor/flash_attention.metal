// Attention in one pass: out = softmax(scale · q kᵀ + mask) v, for each head of each batch.
//
// A simdgroup computes 16 rows. It walks over the keys in blocks: scores by one tensor operation, their exponentials in place,
// the weighted values by a second operation that takes the weights as they lie in the registers. The largest score of a row so
// far, and the sum of its exponentials, are cooperative tensors too. When a larger score comes, what was summed before is scaled
// down. The simdgroups of a threadgroup walk over the same keys together, so that keys and values can be read once for all.
//
// q and out: batches × heads × rows × D. k and v: batches × key_heads × keys × D, where heads is a multiple of key_heads.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

struct attention_size {
    int rows, keys;
    int heads, key_heads;
    float scale; // positive
    int causal; // 1: row i sees the keys up to i + keys - rows
};

constant bool has_mask [[function_constant(0)]];

template <typename T, int D>
kernel void flash_attention(device const T *q [[buffer(0)]], device const T *k [[buffer(1)]],
                            device const T *v [[buffer(2)]], device T *out [[buffer(3)]], constant attention_size &size [[buffer(4)]],
                            device const float *mask [[buffer(5), function_constant(has_mask)]], // rows × keys, added
                            uint3 group [[threadgroup_position_in_grid]],
                            uint simdgroup [[simdgroup_index_in_threadgroup]],
                            uint simdgroups [[simdgroups_per_threadgroup]]) {
    constexpr int row_block = 16, key_block = D <= 64 ? 128 : D <= 128 ? 112 : 32;
    // Simdgroups without rows do not return: only if all execute the same operations can they share keys and values.
    const int group_rows = simdgroups * row_block, group_first = group.x * group_rows, first = group_first + simdgroup * row_block;
    const long head = (long)group.z * size.heads + group.y;
    const long key_head = (long)group.z * size.key_heads + group.y / (size.heads / size.key_heads);
    // Operations take tensors of elements that are not const.
    auto queries = tensor(const_cast<device T *>(q) + head * size.rows * D, dextents<int, 2>(D, size.rows));
    auto keys = tensor(const_cast<device T *>(k) + key_head * size.keys * D, dextents<int, 2>(D, size.keys));
    auto values = tensor(const_cast<device T *>(v) + key_head * size.keys * D, dextents<int, 2>(D, size.keys));
    auto results = tensor(out + head * size.rows * D, dextents<int, 2>(D, size.rows));
    constexpr auto add = matmul2d_descriptor::mode::multiply_accumulate;
    matmul2d<matmul2d_descriptor(row_block, key_block, D, false, true), execution_simdgroup> score;
    matmul2d<matmul2d_descriptor(row_block, D, key_block, false, false, false, add), execution_simdgroup> weigh;
    using operand = decltype(keys);
    auto own_queries = score.template get_left_input_cooperative_tensor<T, T, float>();
    own_queries.load(queries.slice(0, first));
    auto scores = score.template get_destination_cooperative_tensor<operand, operand, float>();
    auto block_top = score.template get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto block_sum = score.template get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto top = score.template get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    auto sum = score.template get_row_reduction_destination_cooperative_tensor<operand, operand, float>();
    // The weights, rounded to T, in the layout of the scores.
    auto weights = score.template get_destination_cooperative_tensor<operand, operand, T>();
    using weights_type = typename decltype(weigh)::template cooperative_tensor_left_input_t<T, T, float>;
    auto total = weigh.template get_destination_cooperative_tensor<weights_type, operand, float>();
    for (auto it = top.begin(); it != top.end(); it++) *it = -INFINITY;
    for (auto it = sum.begin(); it != sum.end(); it++) *it = 0;
    for (auto it = total.begin(); it != total.end(); it++) *it = 0;

    // Weights are powers of 2. Without a mask, scores are scaled only where they are used: the order is the same before.
    const float scale = size.scale * M_LOG2E_F, factor = has_mask ? 1.0f : scale;
    const int past = size.keys - size.rows; // keys before the first row's own
    const int end = size.causal ? min(size.keys, group_first + group_rows + past) : size.keys;
    for (int key = 0; key < end; key += key_block) {
        auto own_keys = keys.slice(0, key);
        auto own_values = values.slice(0, key);
        score.run(own_queries, own_keys, scores);
        // In most blocks, all rows see all keys.
        const bool all_seen = key + key_block <= (size.causal ? min(size.keys, first + past + 1) : size.keys);
        if (has_mask || !all_seen) {
            for (auto it = scores.begin(); it != scores.end(); it++) {
                auto at = it.get_multidimensional_index();
                const int column = key + at[0], row = first + at[1];
                const bool seen = column < size.keys && (!size.causal || column <= row + past);
                if (has_mask) *it *= scale;
                if (has_mask && seen && row < size.rows) *it += mask[(long)row * size.keys + column] * M_LOG2E_F;
                if (!seen) *it = -INFINITY;
            }
        }
        reduce_rows(scores, block_top, reduction_operation::max, -INFINITY);
        bool higher = false;
        for (ushort i = 0; i < top.get_capacity(); i++) {
            const float before = top[i], now = max(before, block_top[i] * factor);
            top[i] = now;
            // How much less what was summed before counts now. A row without any key so far has none.
            block_top[i] = before == -INFINITY ? 0.0f : fast::exp2(before - now);
            sum[i] *= block_top[i];
            higher |= now > before;
        }
        for (ushort i = 0; i < scores.get_capacity(); i++) {
            const float row_top = *top.map_iterator(scores.get_iterator(i));
            scores[i] = fast::exp2(fma(scores[i], factor, row_top == -INFINITY ? 0.0f : -row_top));
            weights[i] = (T)scores[i];
        }
        if (simd_any(higher))
            for (auto it = total.begin(); it != total.end(); it++) *it *= *block_top.map_iterator(it);
        reduce_rows(scores, block_sum, reduction_operation::sum, 0.0f);
        for (ushort i = 0; i < sum.get_capacity(); i++) sum[i] += block_sum[i];
        if (weigh.template is_compatible_as_left_input<T, T, float>(weights)) {
            auto left = weigh.template get_left_input_cooperative_tensor<T, T, float>(weights);
            weigh.run(left, own_values, total);
        }
    }
    auto rounded = weigh.template get_destination_cooperative_tensor<operand, operand, T>();
    for (ushort i = 0; i < total.get_capacity(); i++) {
        const float all = *sum.map_iterator(total.get_iterator(i));
        rounded[i] = (T)(all > 0 ? total[i] / all : 0.0f);
    }
    rounded.store(results.slice(0, first));
}

#define ATTENTION(type, D)                                                                                         \
    template [[host_name("flash_attention_" #type "_" #D)]] kernel void flash_attention<type, D>(                  \
        device const type *, device const type *, device const type *, device type *, constant attention_size &,   \
        device const float *, uint3, uint, uint);
#define HEADS(type) ATTENTION(type, 64) ATTENTION(type, 80) ATTENTION(type, 96) ATTENTION(type, 128) ATTENTION(type, 256)
HEADS(half)
HEADS(bfloat)
HEADS(float)
