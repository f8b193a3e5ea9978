// Lanes that follow one another load eight words each, floats and integers, from an address that no vector is aligned to, up to the last
// element; groups at the edge, and lanes that are off.
// for group: 32 96 256
// run: -b 0=arange:float32:6001 -b 1=arange:int32:6000 -b 2:out:float32:750 -b 3:out:int32:750 -b 4:out:int32:750 --bytes 5=uint32:700 --grid 750 --threadgroup {group}
// expect buffer 2: f(i) for i in 750: sum((8 * i + k + 1) * (1, 3, -2, 5, 7, -4, 6, 2)[k] for k in range(8))
// expect buffer 3: f(i) for i in 750: sum((8 * i + k) * (2, -3, 1, 4, 9, 5, -7, 3)[k] for k in range(8))
// expect buffer 4: f(i) for i in 750: sum((8 * i + k) * (1 + k) for k in range(8)) if i < 700 and i % 3 else 0
#include <metal_stdlib>
using namespace metal;

kernel void words(device const float *x [[buffer(0)]], device const int *y [[buffer(1)]], device float *out [[buffer(2)]],
                  device int *sums [[buffer(3)]], device int *some [[buffer(4)]], constant uint &n [[buffer(5)]],
                  uint i [[thread_position_in_grid]]) {
    const float a[8] = {1, 3, -2, 5, 7, -4, 6, 2};
    const int b[8] = {2, -3, 1, 4, 9, 5, -7, 3};
    float sum = 0;
    int whole = 0;
    for (int k = 0; k < 8; k++) sum += x[8 * i + k + 1] * a[k];
    for (int k = 0; k < 8; k++) whole += y[8 * i + k] * b[k];
    out[i] = sum;
    sums[i] = whole;
    if (i < n && i % 3) {
        int other = 0;
        for (int k = 0; k < 8; k++) other += y[8 * i + k] * (1 + k);
        some[i] = other;
    }
}
