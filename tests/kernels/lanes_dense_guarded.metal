// Threads of several neighbouring elements under a guard, with a loop for those of the last thread: loads and stores of floats,
// integers, halves and bytes, up to the last element, at addresses that no vector is aligned to; groups at the edge, and lanes that
// are off for another reason.
// for group: 32 96 256
// run: -b 0=arange:float32:1204 -b 1=arange:int32:1204 -b 2=arange:float16:1204 -b 3=arange:uint8:1204 -b 4:out:float32:1204 -b 5:out:int32:1204 -b 6:out:float16:1204 -b 7:out:uint8:1204 -b 8:out:float32:1204 --bytes 9=uint32:1203 --grid 301 --threadgroup {group}
// expect buffer 4: f(i) for i in 1204: 2 * (i + 1) + 1 if i < 1203 else 0
// expect buffer 5: f(i) for i in 1204: 3 * i - 5 if i < 1203 else 0
// expect buffer 6: f(i) for i in 1204: i // 2 * 2 if i < 1203 else 0
// expect buffer 7: f(i) for i in 1204: (i % 256 + 9) % 256 if i < 1203 else 0
// expect buffer 8: f(i) for i in 1204: i + 0.5 if i // 4 % 3 and i // 4 * 4 + 4 <= 1203 else 0
#include <metal_stdlib>
using namespace metal;

template <typename T, typename F> void each(device const T *in, device T *out, uint at, uint n, F change) {
    if (at + 4 > n) {
        for (uint i = at; i < n; i++) out[i] = change(in[i]);
    } else {
        for (uint i = 0; i < 4; i++) out[at + i] = change(in[at + i]);
    }
}

kernel void guarded(device const float *x [[buffer(0)]], device const int *y [[buffer(1)]], device const half *h [[buffer(2)]],
                    device const uchar *b [[buffer(3)]], device float *fs [[buffer(4)]], device int *is [[buffer(5)]],
                    device half *hs [[buffer(6)]], device uchar *bs [[buffer(7)]], device float *some [[buffer(8)]],
                    constant uint &n [[buffer(9)]], uint i [[thread_position_in_grid]]) {
    const uint at = 4 * i;
    each(x, fs, at, n, [](float v) { return 2 * (v + 1) + 1; });
    each(y, is, at, n, [](int v) { return 3 * v - 5; });
    each(h, hs, at, n, [](half v) { return half(int(v) / 2 * 2); });
    each(b, bs, at, n, [](uchar v) { return uchar(v + 9); });
    if (i % 3 && at + 4 <= n)
        for (uint k = 0; k < 4; k++) some[at + k] = x[at + k] + 0.5f;
}
