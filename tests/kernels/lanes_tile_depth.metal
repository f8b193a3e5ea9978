// Products by tiles 16 deep, whose loop over the depth stays a loop: threads in one dimension, which find their row and column by
// a division; elements of halves; threads that return before the tile; several outputs per thread; and tiles stored by columns, so
// that both factors follow one another. The last tiles are partial.
// for kind: rows halves returns several columns
// for threads: 256 16,16
// let n = 37
// run: {kind} -b 0:out:float32:1369 --bytes 1=uint32:37 --groups 3,3 --threadgroup {threads}
// let a = lambda r, k: (r * 7 + k * 3) % 11 - 5
// let b = lambda k, c: (k * 5 + c * 2) % 13 - 6
// expect buffer 0: f(i) for i in 1369: sum(a(i // n, k) * b(k, i % n) for k in range(n))
#include <metal_stdlib>
using namespace metal;

static float left(uint r, uint k, uint n) {
    return r < n && k < n ? float(int(r * 7 + k * 3) % 11 - 5) : 0;
}
static float right(uint k, uint c, uint n) {
    return k < n && c < n ? float(int(k * 5 + c * 2) % 13 - 6) : 0;
}

template <typename T> void product(device float *out, uint n, threadgroup T *a, threadgroup T *b, uint2 group, uint index) {
    uint row = index / 16, column = index % 16, r = group.y * 16 + row, c = group.x * 16 + column;
    float sum = 0;
    for (uint base = 0; base < n; base += 16) {
        a[row * 16 + column] = T(left(r, base + column, n));
        b[row * 16 + column] = T(right(base + row, c, n));
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < 16; k++) sum += float(a[row * 16 + k]) * float(b[k * 16 + column]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (r < n && c < n) out[r * n + c] = sum;
}

#define PARAMETERS                                                                                     \
    device float *out [[buffer(0)]], constant uint &n [[buffer(1)]], uint2 group [[threadgroup_position_in_grid]], \
        uint index [[thread_index_in_threadgroup]]

kernel void rows(PARAMETERS) {
    threadgroup float a[256], b[256];
    product(out, n, a, b, group, index);
}

kernel void halves(PARAMETERS) {
    threadgroup half a[256], b[256];
    product(out, n, a, b, group, index);
}

kernel void returns(PARAMETERS) {
    threadgroup float a[16][16], b[16][16];
    uint row = index / 16, column = index % 16, r = group.y * 16 + row, c = group.x * 16 + column;
    float sum = 0;
    if (group.x == 3) return;
    for (uint base = 0; base < n; base += 16) {
        a[row][column] = left(r, base + column, n);
        b[row][column] = right(base + row, c, n);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int k = 0; k < 16; ++k) sum = fma(a[row][k], b[k][column], sum);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (r >= n || c >= n) return;
    out[r * n + c] = sum;
}

kernel void several(PARAMETERS) {
    threadgroup float a[16 * 16], b[16 * 17];
    uint row = index / 16, column = index % 16;
    float sums[2] = {0, 0};
    for (uint base = 0; base < n; base += 16) {
        a[index] = left(group.y * 16 + row, base + column, n);
        b[row * 17 + column] = right(base + row, group.x * 16 + column, n);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (row < 8)
            for (uint k = 0; k < 16; k++) {
                float own = b[k * 17 + column];
                for (uint i = 0; i < 2; i++) sums[i] += a[(row * 2 + i) * 16 + k] * own;
            }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint i = 0; row < 8 && i < 2; i++) {
        uint r = group.y * 16 + row * 2 + i, c = group.x * 16 + column;
        if (r < n && c < n) out[r * n + c] = sums[i];
    }
}

kernel void columns(PARAMETERS) {
    threadgroup float a[256], b[256];
    uint row = index % 16, column = index / 16, r = group.y * 16 + row, c = group.x * 16 + column;
    float sum = 0;
    for (uint base = 0; base < n; base += 16) {
        a[row * 16 + column] = left(r, base + column, n);
        b[column * 16 + row] = right(base + row, c, n);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < 16; k++) sum += a[row * 16 + k] * b[column * 16 + k];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (r < n && c < n) out[r * n + c] = sum;
}
