// Tiles that reach over the edges of matrices, loaded element by element behind guards (test_guards.py).
#include <metal_stdlib>
using namespace metal;

// C = A · B by tiles of 8 × 8: each of 32 threads loads two elements of either tile. A: rows × depth, B: depth × columns.
kernel void tiles(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *c [[buffer(2)]], constant uint &rows_at [[buffer(3)]],
                  constant uint &columns_at [[buffer(4)]], constant uint &depth_at [[buffer(5)]], uint3 group [[threadgroup_position_in_grid]],
                  uint t [[thread_index_in_threadgroup]]) {
    threadgroup float left[8][8], right[8][8];
    const uint rows = rows_at, columns = columns_at, depth = depth_at;
    const uint row = t / 4, column = t % 4 * 2, across = (columns + 7) / 8, down = group.x / across * 8, from = group.x % across * 8;
    float2 sum = 0;
    for (uint k = 0; k < depth; k += 8) {
        for (uint i = 0; i < 2; i++) {
            left[row][column + i] = down + row < rows && k + column + i < depth ? a[(down + row) * depth + k + column + i] : 0;
            right[row][column + i] = k + row < depth && from + column + i < columns ? b[(k + row) * columns + from + column + i] : 0;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint i = 0; i < 8; i++) sum += left[row][i] * float2(right[i][column], right[i][column + 1]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; i < 2; i++)
        if (down + row < rows && from + column + i < columns) c[(down + row) * columns + from + column + i] = sum[i];
}

// Values that are computed between guards are used after them. The second load reads what the first guard's block stored.
kernel void between(device int *a [[buffer(0)]], device const int *b [[buffer(1)]], device int *o [[buffer(2)]], constant uint &n_at [[buffer(3)]],
                    uint t [[thread_index_in_threadgroup]]) {
    threadgroup int shared[64];
    const uint n = n_at;
    for (uint k = 0; k < 2; k++) {
        const uint i = t + k * 32;
        int x = -1, y = -2, z = -3;
        if (i < n) { x = b[i]; a[i] = x * 5; }
        const int between = x ^ int(i);
        if (i * 2 < n + 7) { y = a[i] + between; shared[t] = y; }
        const int more = between * 3 + y;
        if (i + 9 < n) z = b[i + 9] - more;
        threadgroup_barrier(mem_flags::mem_device);
        o[i] = x + 11 * y + 101 * z + more * 7 + between;
        threadgroup_barrier(mem_flags::mem_device);
    }
}
