// Attention with 64 dimensions per head, half, without a mask: simdgroup matrices, a simdgroup per query, a thread per query.
// queries, out: [head][query][64]; keys, values: [head][key][64].
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant constexpr uint D = 64, LANES = 32;

struct sizes {
    uint queries, keys;
    float scale;
};

// Each simdgroup has eight queries and takes 32 keys at a time. Scores, weights and factors pass through threadgroup memory. Queries
// are a multiple of 8 times the simdgroups, keys of 32.
kernel void matrices(device const half *q [[buffer(0)]], device const half *k [[buffer(1)]], device const half *v [[buffer(2)]],
                     device float *out [[buffer(3)]], constant sizes &size [[buffer(4)]],
                     uint2 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                     uint simdgroups [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float scores_of[4][8 * 32], diagonal_of[4][64];
    threadgroup half weights_of[4][8 * 32];
    threadgroup float *scores = scores_of[simdgroup], *diagonal = diagonal_of[simdgroup];
    threadgroup half *weights = weights_of[simdgroup];
    const uint head = group.y, first = (group.x * simdgroups + simdgroup) * 8;
    k += head * size.keys * D;
    v += head * size.keys * D;
    simdgroup_half8x8 query[D / 8];
    simdgroup_float8x8 sums[D / 8];
    for (ushort i = 0; i < D / 8; i++) {
        simdgroup_load(query[i], q + (head * size.queries + first) * D + i * 8, D);
        sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
    float top[8], total[8];
    for (ushort r = 0; r < 8; r++) top[r] = -INFINITY, total[r] = 0;
    for (ushort i = lane; i < 64; i += LANES) diagonal[i] = 0;
    for (uint key = 0; key < size.keys; key += LANES) {
        for (ushort c = 0; c < 4; c++) {
            simdgroup_float8x8 score = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
            for (ushort i = 0; i < D / 8; i++) {
                simdgroup_half8x8 columns;
                simdgroup_load(columns, k + (key + c * 8) * D + i * 8, D, 0, true);
                simdgroup_multiply_accumulate(score, query[i], columns, score);
            }
            simdgroup_store(score, scores + c * 8, 32);
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort r = 0; r < 8; r++) {
            const float score = scores[r * 32 + lane] * size.scale;
            const float grown = max(top[r], simd_max(score));
            const float keep = exp(top[r] - grown), weight = exp(score - grown);
            top[r] = grown;
            total[r] = total[r] * keep + simd_sum(weight);
            weights[r * 32 + lane] = half(weight);
            if (lane == r) diagonal[r * 9] = keep;
        }
        simdgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_float8x8 keep;
        simdgroup_load(keep, diagonal, 8);
        for (ushort i = 0; i < D / 8; i++) simdgroup_multiply(sums[i], keep, sums[i]);
        for (ushort c = 0; c < 4; c++) {
            simdgroup_half8x8 weight;
            simdgroup_load(weight, weights + c * 8, 32);
            for (ushort i = 0; i < D / 8; i++) {
                simdgroup_half8x8 rows;
                simdgroup_load(rows, v + (key + c * 8) * D + i * 8, D);
                simdgroup_multiply_accumulate(sums[i], weight, rows, sums[i]);
            }
        }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort r = 0; r < 8; r++)
        if (lane == r) diagonal[r * 9] = 1.0f / total[r];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_float8x8 factors;
    simdgroup_load(factors, diagonal, 8);
    for (ushort i = 0; i < D / 8; i++) {
        simdgroup_multiply(sums[i], factors, sums[i]);
        simdgroup_store(sums[i], out + (head * size.queries + first) * D + i * 8, D);
    }
}

// The simdgroups of a group share the keys of one query; a lane has two dimensions.
kernel void simdgroup_query(device const half *q [[buffer(0)]], device const half *k [[buffer(1)]], device const half *v [[buffer(2)]],
                            device float *out [[buffer(3)]], constant sizes &size [[buffer(4)]],
                            uint2 group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                            uint simdgroups [[simdgroups_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]]) {
    threadgroup float2 sums_of[8][LANES];
    threadgroup float tops[8], totals[8];
    const uint head = group.y, query = group.x;
    const float2 mine = float2(((device const half2 *)(q + (head * size.queries + query) * D))[lane]) * size.scale;
    float2 sum = 0;
    float top = -INFINITY, total = 0;
    for (uint key = simdgroup; key < size.keys; key += simdgroups) {
        const uint row = (head * size.keys + key) * D / 2 + lane;
        const float score = simd_sum(dot(mine, float2(((device const half2 *)k)[row])));
        const float grown = max(top, score), keep = exp(top - grown), weight = exp(score - grown);
        top = grown;
        total = total * keep + weight;
        sum = sum * keep + weight * float2(((device const half2 *)v)[row]);
    }
    sums_of[simdgroup][lane] = sum;
    if (lane == 0) tops[simdgroup] = top, totals[simdgroup] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup > 0) return;
    float most = -INFINITY, all = 0;
    for (uint s = 0; s < simdgroups; s++) most = max(most, tops[s]);
    sum = 0;
    for (uint s = 0; s < simdgroups; s++) {
        const float share = exp(tops[s] - most);
        all += share * totals[s];
        sum += share * sums_of[s][lane];
    }
    ((device float2 *)(out + (head * size.queries + query) * D))[lane] = sum / all;
}

kernel void thread_query(device const half *q [[buffer(0)]], device const half *k [[buffer(1)]], device const half *v [[buffer(2)]],
                         device float *out [[buffer(3)]], constant sizes &size [[buffer(4)]],
                         uint2 at [[thread_position_in_grid]]) {
    const uint head = at.y, query = at.x;
    float mine[D], sum[D], top = -INFINITY, total = 0;
    for (uint i = 0; i < D; i++) mine[i] = q[(head * size.queries + query) * D + i] * size.scale, sum[i] = 0;
    for (uint key = 0; key < size.keys; key++) {
        device const half *row = k + (head * size.keys + key) * D;
        float score = 0;
        for (uint i = 0; i < D; i++) score += mine[i] * float(row[i]);
        const float grown = max(top, score), keep = exp(top - grown), weight = exp(score - grown);
        top = grown;
        total = total * keep + weight;
        row = v + (head * size.keys + key) * D;
        for (uint i = 0; i < D; i++) sum[i] = sum[i] * keep + weight * float(row[i]);
    }
    for (uint i = 0; i < D; i++) out[(head * size.queries + query) * D + i] = sum[i] / total;
}
