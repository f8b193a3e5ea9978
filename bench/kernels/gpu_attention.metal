// Attention by simdgroup matrices in two more forms, half, without a mask. D: dimensions of a head.
// queries, out: [head][query][D]; keys, values: [head][key][D]. Queries are multiples of 32, keys too.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

struct sizes {
    uint queries, keys;
    float scale;
};

// A lane's two elements of a matrix lie in one row, which lanes that differ in bits 0 and 3 share.
static float of_row(float value, bool greatest) {
    for (ushort bit = 1; bit <= 8; bit *= 8) {
        const float other = simd_shuffle_xor(value, bit);
        value = greatest ? max(value, other) : value + other;
    }
    return value;
}

// Four simdgroups have eight queries each and share tiles of 32 keys and values in threadgroup memory. Scores, weights and sums stay in
// registers.
template <ushort D>
kernel void staged(device const half *q [[buffer(0)]], device const half *k [[buffer(1)]], device const half *v [[buffer(2)]],
                   device float *out [[buffer(3)]], constant sizes &size [[buffer(4)]], uint2 group [[threadgroup_position_in_grid]],
                   ushort me [[thread_index_in_threadgroup]], ushort simdgroup [[simdgroup_index_in_threadgroup]],
                   ushort lane [[thread_index_in_simdgroup]]) {
    constexpr ushort KEYS = 32, PITCH = D + 8;
    threadgroup half key_tile[KEYS * PITCH], value_tile[KEYS * PITCH];
    const uint head = group.y, first = group.x * 32 + simdgroup * 8;
    simdgroup_half8x8 query[D / 8];
    simdgroup_float8x8 sums[D / 8];
    for (ushort i = 0; i < D / 8; i++) {
        simdgroup_load(query[i], q + (head * size.queries + first) * D + i * 8, D);
        sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    float top = -INFINITY, total = 0;
    for (uint key = 0; key < size.keys; key += KEYS) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort i = me; i < KEYS * D / 8; i += 128) {
            const ushort row = i / (D / 8), column = i % (D / 8) * 8;
            const uint from = (head * size.keys + key + row) * D + column;
            *(threadgroup uint4 *)(key_tile + row * PITCH + column) = *(device const uint4 *)(k + from);
            *(threadgroup uint4 *)(value_tile + row * PITCH + column) = *(device const uint4 *)(v + from);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_float8x8 scores[KEYS / 8];
        float grown = top;
        for (ushort c = 0; c < KEYS / 8; c++) {
            scores[c] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
            for (ushort i = 0; i < D / 8; i++) {
                simdgroup_half8x8 columns;
                simdgroup_load(columns, key_tile + c * 8 * PITCH + i * 8, PITCH, 0, true);
                simdgroup_multiply_accumulate(scores[c], query[i], columns, scores[c]);
            }
            for (ushort e = 0; e < 2; e++) grown = max(grown, scores[c].thread_elements()[e] * size.scale);
        }
        grown = of_row(grown, true);
        const float keep = exp(top - grown);
        float sum = 0;
        simdgroup_half8x8 weights[KEYS / 8];
        for (ushort c = 0; c < KEYS / 8; c++)
            for (ushort e = 0; e < 2; e++) {
                const float weight = exp(scores[c].thread_elements()[e] * size.scale - grown);
                sum += weight;
                weights[c].thread_elements()[e] = half(weight);
            }
        top = grown;
        total = total * keep + of_row(sum, false);
        for (ushort i = 0; i < D / 8; i++) {
            for (ushort e = 0; e < 2; e++) sums[i].thread_elements()[e] *= keep;
            for (ushort c = 0; c < KEYS / 8; c++) {
                simdgroup_half8x8 rows;
                simdgroup_load(rows, value_tile + c * 8 * PITCH + i * 8, PITCH);
                simdgroup_multiply_accumulate(sums[i], weights[c], rows, sums[i]);
            }
        }
    }
    for (ushort i = 0; i < D / 8; i++) {
        for (ushort e = 0; e < 2; e++) sums[i].thread_elements()[e] /= total;
        simdgroup_store(sums[i], out + (head * size.queries + first) * D + i * 8, D);
    }
}

// A threadgroup has eight queries, whose scores, weights and sums lie in threadgroup memory; its four simdgroups share each step's keys, and
// then the dimensions of its values.
template <ushort D>
kernel void eight(device const half *q [[buffer(0)]], device const half *k [[buffer(1)]], device const half *v [[buffer(2)]],
                  device float *out [[buffer(3)]], constant sizes &size [[buffer(4)]], uint2 group [[threadgroup_position_in_grid]],
                  ushort simdgroup [[simdgroup_index_in_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    constexpr ushort KEYS = 64;
    threadgroup half queries[8 * D];
    threadgroup float scores[8 * KEYS], sums[8 * D];
    const uint head = group.y, first = group.x * 8;
    k += head * size.keys * D;
    v += head * size.keys * D;
    for (ushort i = simdgroup * 32 + lane; i < 8 * D; i += 128) {
        queries[i] = q[(head * size.queries + first) * D + i];
        sums[i] = 0;
    }
    float top[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
    for (uint key = 0; key < size.keys; key += KEYS) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort c = simdgroup; c < KEYS / 8; c += 4) {
            simdgroup_float8x8 score = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
            for (ushort i = 0; i < D / 8; i++) {
                simdgroup_half8x8 rows, columns;
                simdgroup_load(rows, queries + i * 8, D);
                simdgroup_load(columns, k + (key + c * 8) * D + i * 8, D, 0, true);
                simdgroup_multiply_accumulate(score, rows, columns, score);
            }
            simdgroup_store(score, scores + c * 8, KEYS);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort r = 0; r < 2; r++) {
            const ushort row = simdgroup * 2 + r;
            const float2 score = ((threadgroup float2 *)(scores + row * KEYS))[lane] * size.scale;
            const float grown = max(top[r], simd_max(max(score.x, score.y)));
            const float keep = exp(top[r] - grown);
            const float2 weight = exp(score - grown);
            top[r] = grown;
            total[r] = total[r] * keep + simd_sum(weight.x + weight.y);
            ((threadgroup float2 *)(scores + row * KEYS))[lane] = weight;
            for (ushort i = lane; i < D; i += 32) sums[row * D + i] *= keep;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_float8x8 own[D / 32];
        for (ushort i = 0; i < D / 32; i++) simdgroup_load(own[i], sums + (i * 4 + simdgroup) * 8, D);
        for (ushort c = 0; c < KEYS / 8; c++) {
            simdgroup_float8x8 weights;
            simdgroup_load(weights, scores + c * 8, KEYS);
            for (ushort i = 0; i < D / 32; i++) {
                simdgroup_half8x8 rows;
                simdgroup_load(rows, v + (key + c * 8) * D + (i * 4 + simdgroup) * 8, D);
                simdgroup_multiply_accumulate(own[i], weights, rows, own[i]);
            }
        }
        for (ushort i = 0; i < D / 32; i++) simdgroup_store(own[i], sums + (i * 4 + simdgroup) * 8, D);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort r = 0; r < 2; r++)
        for (ushort i = lane; i < D; i += 32)
            out[(head * size.queries + first + simdgroup * 2 + r) * D + i] = sums[(simdgroup * 2 + r) * D + i] / total[r];
}

#define INSTANTIATE(NAME, D) template [[host_name(#NAME "_" #D)]] kernel decltype(NAME<D>) NAME<D>;
INSTANTIATE(staged, 64)
INSTANTIATE(staged, 128)
INSTANTIATE(eight, 64)
INSTANTIATE(eight, 128)
