// As many multiply-adds as the device can do, on registers: 3 chains of 4096 for each thread, which 16 registers of 256 bits hold for 32 threads.
#include <metal_stdlib>
using namespace metal;

kernel void multiply_adds(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    float chain[3];
    for (int c = 0; c < 3; c++) chain[c] = float(i + c);
    for (int round = 0; round < 4096; round++)
        for (int c = 0; c < 3; c++) chain[c] = fma(chain[c], 0.999f, 0.001f);
    float sum = 0;
    for (int c = 0; c < 3; c++) sum += chain[c];
    out[i] = sum;
}
