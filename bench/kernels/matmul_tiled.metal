// c = a · b, square of n: 32 x 32 threads a group, both tiles in threadgroup memory, one output a thread.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint tile = 32;

kernel void matmul_tiled(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                         device float *c [[buffer(2)]], constant uint &n [[buffer(3)]],
                         uint2 at [[thread_position_in_grid]], uint2 me [[thread_position_in_threadgroup]]) {
    threadgroup float left[tile][tile];
    threadgroup float right[tile][tile];
    float sum = 0.0f;
    for (uint base = 0; base < n; base += tile) {
        left[me.y][me.x] = a[at.y * n + base + me.x];
        right[me.y][me.x] = b[(base + me.y) * n + at.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < tile; k++) sum += left[me.y][k] * right[k][me.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    c[at.y * n + at.x] = sum;
}
