// A product by square tiles in threadgroup memory, one output per thread. A gang whose sums do not fit in registers runs the loop over
// a tile for one part of its threads after the other. The last tile of a row is partial.
// for side: 8 16 32
// let n = 2 * int(side) + 5
// run: tiled_{side} -b 0:out:float32:6400 --bytes 1=uint32:{side} --groups 3,3 --threadgroup {side},{side}
// let a = lambda r, k: (r * 7 + k * 3) % 11 - 5
// let b = lambda k, c: (k * 5 + c * 2) % 13 - 6
// expect buffer 0: f(i) for i in 6400: sum(a(i // n, k) * b(k, i % n) for k in range(n)) if i < n * n else 0
#include <metal_stdlib>
using namespace metal;

template <uint side> void tiled(device float *out, uint n, threadgroup float (*left)[side], threadgroup float (*right)[side], uint2 at, uint2 me) {
    float sum = 0;
    for (uint base = 0; base < n; base += side) {
        uint k = base + me.x;
        left[me.y][me.x] = k < n ? float(int(at.y * 7 + k * 3) % 11 - 5) : 0;
        k = base + me.y;
        right[me.y][me.x] = k < n ? float(int(k * 5 + at.x * 2) % 13 - 6) : 0;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint j = 0; j < side; j++) sum += left[me.y][j] * right[j][me.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (at.x < n && at.y < n) out[at.y * n + at.x] = sum;
}

#define TILED(side)                                                                                                               \
    kernel void tiled_##side(device float *out [[buffer(0)]], constant uint &from [[buffer(1)]],                                     \
                             uint2 at [[thread_position_in_grid]], uint2 me [[thread_position_in_threadgroup]]) {                 \
        threadgroup float left[side][side];                                                                                       \
        threadgroup float right[side][side];                                                                                      \
        tiled<side>(out, 2 * from + 5, left, right, at, me);                                                                                 \
    }
TILED(8)
TILED(16)
TILED(32)
