// A thread accesses neighbouring elements under a guard: with vectors if all lanes are on. Other lanes access nothing.
// for group: 64 100
// run: -b 0=arange:float16:1100 -b 1:out:float16:1104 -b 2=arange:float32:1100 -b 3:out:float32:1104 -b 4:out:uint8:1104 --bytes 5=uint32:1100 --grid 300 --threadgroup {group}
// expect buffer 1: f(i) for i in 1104: i ^ 3 if i < 1100 else 0
// expect buffer 3: f(i) for i in 1104: i + 1.5 if i < 1100 and i // 4 % 67 != 5 else 0
// expect buffer 4: f(i) for i in 1104: (2 * i) % 256 if i < 800 and i // 8 % 3 else i % 5 if i < 800 else 0
#include <metal_stdlib>
using namespace metal;

kernel void rows(device const half *x [[buffer(0)]], device half *turned [[buffer(1)]], device const float *y [[buffer(2)]],
                 device float *out [[buffer(3)]], device uchar *bytes [[buffer(4)]], constant uint &n [[buffer(5)]],
                 uint i [[thread_position_in_grid]]) {
    if (i * 4 + 4 <= n) {
        half v[4];
        for (uint k = 0; k < 4; k++) v[k] = x[i * 4 + k];
        for (uint k = 0; k < 4; k++) turned[i * 4 + k] = v[3 - k];
    }
    if (i * 4 + 3 < n && i % 67 != 5)
        for (uint k = 0; k < 4; k++) out[i * 4 + k] = y[i * 4 + k] + 1.5f;
    if (i >= 100) return;
    for (uint k = 0; k < 8; k++) bytes[i * 8 + k] = (i * 8 + k) % 5;
    if (i % 3)
        for (uint k = 0; k < 8; k++) bytes[i * 8 + k] = bytes[i * 8 + k] + uchar(int(y[i * 8 + k]) * 2 - int((i * 8 + k) % 5));
}
