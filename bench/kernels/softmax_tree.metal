// Softmax of each row; 256 threads a row, their parts reduced by halving.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint threads = 256;

kernel void softmax_tree(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                         constant uint &columns [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                         uint me [[thread_position_in_threadgroup]]) {
    threadgroup float part[threads];
    device const float *x = in + size_t(row) * columns;
    device float *y = out + size_t(row) * columns;

    float top = -INFINITY;
    for (uint i = me; i < columns; i += threads) top = max(top, x[i]);
    part[me] = top;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint half_way = threads / 2; half_way > 0; half_way /= 2) {
        if (me < half_way) part[me] = max(part[me], part[me + half_way]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    top = part[0];
    threadgroup_barrier(mem_flags::mem_threadgroup);

    float sum = 0.0f;
    for (uint i = me; i < columns; i += threads) {
        float e = exp(x[i] - top);
        y[i] = e;
        sum += e;
    }
    part[me] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint half_way = threads / 2; half_way > 0; half_way /= 2) {
        if (me < half_way) part[me] += part[me + half_way];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    float scale = 1.0f / part[0];
    for (uint i = me; i < columns; i += threads) y[i] *= scale;
}
