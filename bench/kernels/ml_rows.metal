// Rows: softmax and RMS norm by a threadgroup (with simdgroup reductions, or a tree), by a simdgroup and by a thread per row.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

constant constexpr uint LANES = 32;

// ---- Softmax, float.

kernel void softmax_group(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], constant uint &columns [[buffer(2)]],
                          uint row [[threadgroup_position_in_grid]], uint me [[thread_index_in_threadgroup]],
                          uint threads [[threads_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                          uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float parts[LANES];
    device const float4 *from = (device const float4 *)(in + row * columns);
    device float4 *to = (device float4 *)(out + row * columns);
    float4 tops = -INFINITY;
    for (uint i = me; i < columns / 4; i += threads) tops = max(tops, from[i]);
    float top = simd_max(max(max(tops[0], tops[1]), max(tops[2], tops[3])));
    if (lane == 0) parts[simdgroup] = top;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    top = simd_max(lane < simdgroups ? parts[lane] : -INFINITY);
    float4 sums = 0;
    for (uint i = me; i < columns / 4; i += threads) {
        const float4 e = exp(from[i] - top);
        sums += e;
        to[i] = e;
    }
    float sum = simd_sum(sums[0] + sums[1] + sums[2] + sums[3]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) parts[simdgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = simd_sum(lane < simdgroups ? parts[lane] : 0);
    for (uint i = me; i < columns / 4; i += threads) to[i] *= 1 / sum;
}

kernel void softmax_tree(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], constant uint &columns [[buffer(2)]],
                         uint row [[threadgroup_position_in_grid]], uint me [[thread_index_in_threadgroup]],
                         uint threads [[threads_per_threadgroup]]) {
    threadgroup float parts[256];
    in += row * columns;
    out += row * columns;
    float top = -INFINITY, sum = 0;
    for (uint i = me; i < columns; i += threads) top = max(top, in[i]);
    parts[me] = top;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = threads / 2; step > 0; step >>= 1) {
        if (me < step) parts[me] = max(parts[me], parts[me + step]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    top = parts[0];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = me; i < columns; i += threads) sum += exp(in[i] - top);
    parts[me] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = threads / 2; step > 0; step >>= 1) {
        if (me < step) parts[me] += parts[me + step];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    sum = parts[0];
    for (uint i = me; i < columns; i += threads) out[i] = exp(in[i] - top) / sum;
}

// A maximum and a sum that grow together.
kernel void softmax_simdgroup(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                              constant uint &columns [[buffer(2)]], uint group [[threadgroup_position_in_grid]],
                              uint simdgroup [[simdgroup_index_in_threadgroup]], uint simdgroups [[simdgroups_per_threadgroup]],
                              uint lane [[thread_index_in_simdgroup]]) {
    const uint row = group * simdgroups + simdgroup;
    in += row * columns;
    out += row * columns;
    float top = -INFINITY, sum = 0;
    for (uint i = lane; i < columns; i += LANES) {
        const float grown = max(top, in[i]);
        sum = sum * exp(top - grown) + exp(in[i] - grown);
        top = grown;
    }
    const float most = simd_max(top);
    sum = simd_sum(sum * exp(top - most));
    for (uint i = lane; i < columns; i += LANES) out[i] = exp(in[i] - most) / sum;
}

kernel void softmax_thread(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], constant uint &columns [[buffer(2)]],
                           uint row [[thread_position_in_grid]]) {
    in += row * columns;
    out += row * columns;
    float top = in[0], sum = 0;
    for (uint i = 1; i < columns; i++) top = max(top, in[i]);
    for (uint i = 0; i < columns; i++) {
        const float e = exp(in[i] - top);
        out[i] = e;
        sum += e;
    }
    for (uint i = 0; i < columns; i++) out[i] /= sum;
}

// ---- RMS norm: half in, float out.

kernel void norm_group(device const half *in [[buffer(0)]], device float *out [[buffer(1)]], constant uint &columns [[buffer(2)]],
                       uint row [[threadgroup_position_in_grid]], uint me [[thread_index_in_threadgroup]],
                       uint threads [[threads_per_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float parts[LANES];
    in += row * columns;
    out += row * columns;
    float sum = 0;
    for (uint first = me * 4; first < columns; first += threads * 4)
        for (uint i = 0; i < 4; i++)
            if (first + i < columns) sum += float(in[first + i]) * float(in[first + i]);
    sum = simd_sum(sum);
    if (lane == 0) parts[simdgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = simd_sum(lane < simdgroups ? parts[lane] : 0);
    const float scale = rsqrt(sum / columns + 1e-5f);
    for (uint first = me * 4; first < columns; first += threads * 4)
        for (uint i = 0; i < 4; i++)
            if (first + i < columns) out[first + i] = float(in[first + i]) * scale;
}

kernel void norm_simdgroup(device const half *in [[buffer(0)]], device float *out [[buffer(1)]], constant uint &columns [[buffer(2)]],
                           uint group [[threadgroup_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                           uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
    const uint row = group * simdgroups + simdgroup;
    device const half4 *from = (device const half4 *)(in + row * columns);
    float sum = 0;
    for (uint i = lane; i < columns / 4; i += LANES) sum += dot(float4(from[i]), float4(from[i]));
    const float scale = rsqrt(simd_sum(sum) / columns + 1e-5f);
    for (uint i = lane; i < columns / 4; i += LANES) ((device float4 *)(out + row * columns))[i] = float4(from[i]) * scale;
}

kernel void norm_thread(device const half *in [[buffer(0)]], device float *out [[buffer(1)]], constant uint &columns [[buffer(2)]],
                        uint row [[thread_position_in_grid]]) {
    in += row * columns;
    out += row * columns;
    float sum = 0;
    for (uint i = 0; i < columns; i++) sum += float(in[i]) * float(in[i]);
    const float scale = rsqrt(sum / columns + 1e-5f);
    for (uint i = 0; i < columns; i++) out[i] = float(in[i]) * scale;
}
