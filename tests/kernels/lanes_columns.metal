// Threads read neighbouring elements, at 32-bit indexes that wrap around while they are computed.
// for group: 64 100
// run: -b 0=arange:float32:9000 -b 1:out:float32:300x8 -b 2:out:float32:300 --bytes 3=uint32:29 --bytes 4=uint32:4294967290 --grid 300 --threadgroup {group}
// expect buffer 1: f(i) for i in 2400: i // 8 * 29 + i % 8
// expect buffer 2: f(i) for i in 300: sum((k + 1) * (i * 29 + k - 2 if i else k + 7) for k in range(4))
#include <metal_stdlib>
using namespace metal;

kernel void columns(device const float *x [[buffer(0)]], device float *rows [[buffer(1)]], device float *sums [[buffer(2)]],
                    constant uint &stride [[buffer(3)]], constant uint &back [[buffer(4)]],
                    uint i [[thread_position_in_grid]]) {
    float row[8];
    for (uint k = 0; k < 8; k++) row[k] = x[i * stride + back + k + 6]; // back is -6
    for (uint k = 0; k < 8; k++) rows[i * 8 + k] = row[k];
    float sum = 0;
    for (uint k = 0; k < 4; k++) sum += (k + 1) * (i ? x[i * stride + (back + k + 4)] : x[k + 7]);
    sums[i] = sum;
}
