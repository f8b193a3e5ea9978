// As many multiply-adds as the device can do, on registers: 8 chains of 4096 for each thread.
#include <metal_stdlib>
using namespace metal;

kernel void multiply_adds(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float chain[8];
    for (int c = 0; c < 8; c++) chain[c] = float(i + c);
    for (int round = 0; round < 4096; round++)
        for (int c = 0; c < 8; c++) chain[c] = fma(chain[c], 0.999f, 0.001f);
    float sum = 0;
    for (int c = 0; c < 8; c++) sum += chain[c];
    out[i] = sum;
}
