// Rows of 8192 bfloats: softmax, and division by the root of the mean square. One group of 256 threads a row, which stays
// in registers: it is read once and written once. A thread has four pieces of eight neighbours, 16 bytes each.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint threads = 256, simdgroups = threads / 32, pieces = 4, width = threads * pieces * 8;

struct piece {
    float v[8];

    piece(uint4 packed) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float2 pair = float2(as_type<bfloat2>(packed[i]));
            v[2 * i] = pair.x;
            v[2 * i + 1] = pair.y;
        }
    }

    uint4 packed() const {
        uint4 result;
#pragma unroll
        for (int i = 0; i < 4; i++) result[i] = as_type<uint>(bfloat2(float2(v[2 * i], v[2 * i + 1])));
        return result;
    }
};

// Each simdgroup takes its exponentials relative to its own largest number, so that one barrier is enough: behind it
// both are put right by exp(own - largest).
kernel void softmax_rows(device const uint4 *in [[buffer(0)]], device uint4 *out [[buffer(1)]],
                         uint row [[threadgroup_position_in_grid]], uint me [[thread_position_in_threadgroup]],
                         uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float2 part[simdgroups];
    const uint first = row * (width / 8) + me;
    const uint4 packed[pieces] = {in[first], in[first + threads], in[first + 2 * threads], in[first + 3 * threads]};
    piece x[pieces] = {packed[0], packed[1], packed[2], packed[3]};

    float top = x[0].v[0];
#pragma unroll
    for (uint p = 0; p < pieces; p++)
#pragma unroll
        for (int i = 0; i < 8; i++) top = x[p].v[i] > top ? x[p].v[i] : top; // NaN comes out of the sum
    top = simd_max(top);

    float sum = 0.0f;
    const float shift = -top * M_LOG2E_F;
#pragma unroll
    for (uint p = 0; p < pieces; p++)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            x[p].v[i] = fast::exp2(fma(x[p].v[i], M_LOG2E_F, shift));
            sum += x[p].v[i];
        }
    sum = simd_sum(sum);
    if (lane == 0) part[simdgroup] = float2(top, sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float largest = part[0].x, whole = 0.0f;
#pragma unroll
    for (uint s = 1; s < simdgroups; s++) largest = part[s].x > largest ? part[s].x : largest;
#pragma unroll
    for (uint s = 0; s < simdgroups; s++) whole += part[s].y * fast::exp2((part[s].x - largest) * M_LOG2E_F);
    const float scale = fast::exp2((top - largest) * M_LOG2E_F) / whole;
#pragma unroll
    for (uint p = 0; p < pieces; p++) {
#pragma unroll
        for (int i = 0; i < 8; i++) x[p].v[i] *= scale;
        out[first + p * threads] = x[p].packed();
    }
}

kernel void rms_norm_rows(device const uint4 *in [[buffer(0)]], device const uint4 *weight [[buffer(1)]],
                          device uint4 *out [[buffer(2)]], constant float &epsilon [[buffer(3)]],
                          uint row [[threadgroup_position_in_grid]], uint me [[thread_position_in_threadgroup]],
                          uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float part[simdgroups];
    const uint first = row * (width / 8) + me;
    const uint4 packed[pieces] = {in[first], in[first + threads], in[first + 2 * threads], in[first + 3 * threads]};
    piece x[pieces] = {packed[0], packed[1], packed[2], packed[3]};

    float sum = 0.0f;
#pragma unroll
    for (uint p = 0; p < pieces; p++)
#pragma unroll
        for (int i = 0; i < 8; i++) sum = fma(x[p].v[i], x[p].v[i], sum);
    sum = simd_sum(sum);
    if (lane == 0) part[simdgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float whole = 0.0f;
#pragma unroll
    for (uint s = 0; s < simdgroups; s++) whole += part[s];
    const float scale = fast::rsqrt(whole * (1.0f / width) + epsilon);
#pragma unroll
    for (uint p = 0; p < pieces; p++) {
        const piece w = weight[me + p * threads];
#pragma unroll
        for (int i = 0; i < 8; i++) x[p].v[i] *= scale * w.v[i];
        out[first + p * threads] = x[p].packed();
    }
}
