// c = a · b, square of n: 64 threads a group, 8 x 8 outputs a thread in registers; 64 x 64 outputs a group.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint tile = 64, depth = 16, mine = 8;

kernel void matmul_register(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                            device float *c [[buffer(2)]], constant uint &n [[buffer(3)]],
                            uint2 group [[threadgroup_position_in_grid]],
                            uint me [[thread_index_in_threadgroup]]) {
    threadgroup float left[depth][tile];  // transposed
    threadgroup float right[depth][tile];
    const uint row = me / 8 * mine, column = me % 8 * mine;

    float sum[mine][mine];
    for (uint i = 0; i < mine; i++)
        for (uint j = 0; j < mine; j++) sum[i][j] = 0.0f;

    for (uint base = 0; base < n; base += depth) {
        for (uint k = 0; k < depth; k++) {
            left[k][me] = a[(group.y * tile + me) * n + base + k];
            right[k][me] = b[(base + k) * n + group.x * tile + me];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < depth; k++) {
            float x[mine], y[mine];
            for (uint i = 0; i < mine; i++) x[i] = left[k][row + i];
            for (uint j = 0; j < mine; j++) y[j] = right[k][column + j];
            for (uint i = 0; i < mine; i++)
                for (uint j = 0; j < mine; j++) sum[i][j] += x[i] * y[j];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    for (uint i = 0; i < mine; i++)
        for (uint j = 0; j < mine; j++)
            c[(group.y * tile + row + i) * n + group.x * tile + column + j] = sum[i][j];
}
