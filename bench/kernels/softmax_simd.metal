// Softmax of each row; 256 threads a row, reduced in simdgroups first, one part a simdgroup afterwards.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint threads = 256;
constant constexpr uint simdgroups = threads / 32;

kernel void softmax_simd(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                         constant uint &columns [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                         uint me [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                         uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float part[simdgroups];
    device const float *x = in + size_t(row) * columns;
    device float *y = out + size_t(row) * columns;

    float top = -INFINITY;
    for (uint i = me; i < columns; i += threads) top = max(top, x[i]);
    top = simd_max(top);
    if (lane == 0) part[simdgroup] = top;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    top = simd_max(lane < simdgroups ? part[lane] : -INFINITY);
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float sum = 0.0f;
    for (uint i = me; i < columns; i += threads) {
        float e = exp(x[i] - top);
        y[i] = e;
        sum += e;
    }
    sum = simd_sum(sum);
    if (lane == 0) part[simdgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = simd_sum(lane < simdgroups ? part[lane] : 0.0f);

    float scale = 1.0f / sum;
    for (uint i = me; i < columns; i += threads) y[i] *= scale;
}
