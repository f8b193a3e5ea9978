// Threads of a row load several neighbours of the same row of a matrix, whose length is known only at run time: in groups of short
// rows, two rows of threads share a vector. Also halves, four at once, and under a mask that is not a guard.
// for kernel: numbers halves vectors masked
// for threads: 8,8 16,2 4,8 2,16
// run: {kernel} -b 0:out:float32:768 --bytes 1=uint32:19 --grid 16,16 --threadgroup {threads}
// let a = lambda r, k: (r * 5 + k * 3) % 17 - 8
// let on = lambda x, y: kernel != "masked" or (x * 3 + y) % 4 != 0
// expect buffer 0: f(i) for i in 768: sum(a(i // 48, k) * (i % 48 // 3 + k + 1) for k in range(16)) * (i % 3 + 1) if on(i % 48 // 3, i // 48) else 0
#include <metal_stdlib>
using namespace metal;

template <typename T> static T element(uint i, uint length) {
    uint row = i / length, k = i % length;
    return T(int(row * 5 + k * 3) % 17 - 8);
}

#define PARAMETERS                                                            \
    device float *out [[buffer(0)]], constant uint &length [[buffer(1)]],     \
        uint2 at [[thread_position_in_grid]], uint2 me [[thread_position_in_threadgroup]], \
        uint2 size [[threads_per_threadgroup]], uint own [[thread_index_in_threadgroup]]

template <typename T> void write(device float *out, uint length, threadgroup T *rows, uint2 at, uint2 me, uint2 size, uint own, bool on) {
    uint first = at.y - me.y, threads = size.x * size.y;
    for (uint i = own; i < size.y * length; i += threads) rows[i] = element<T>(first * length + i, length);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float sum = 0;
    if (on) {
        threadgroup const T *row = rows + me.y * length;
        for (uint k = 0; k < 16; k += 4) {
            float a = row[k], b = row[k + 1], c = row[k + 2], d = row[k + 3];
            sum += a * float(at.x + k + 1) + b * float(at.x + k + 2) + c * float(at.x + k + 3) + d * float(at.x + k + 4);
        }
    }
    for (uint n = 0; n < 3; n++) out[(at.y * 16 + at.x) * 3 + n] = sum * float(n + 1);
}

kernel void numbers(PARAMETERS) {
    threadgroup float rows[512];
    write(out, length, rows, at, me, size, own, true);
}

kernel void halves(PARAMETERS) {
    threadgroup half rows[512];
    write(out, length, rows, at, me, size, own, true);
}

kernel void masked(PARAMETERS) {
    threadgroup float rows[512];
    write(out, length, rows, at, me, size, own, (at.x * 3 + at.y) % 4 != 0);
}

kernel void vectors(PARAMETERS) {
    threadgroup packed_float4 rows[128];
    uint first = at.y - me.y, threads = size.x * size.y;
    for (uint i = own; i < size.y * 4; i += threads)
        for (uint n = 0; n < 4; n++) rows[i][n] = element<float>((first + i / 4) * length + i % 4 * 4 + n, length);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float sum = 0;
    for (uint k = 0; k < 4; k++) {
        float4 a = float4(rows[me.y * 4 + k]);
        for (uint n = 0; n < 4; n++) sum += a[n] * float(at.x + 4 * k + n + 1);
    }
    for (uint n = 0; n < 3; n++) out[(at.y * 16 + at.x) * 3 + n] = sum * float(n + 1);
}
