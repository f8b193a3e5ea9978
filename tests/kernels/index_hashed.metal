// The index of a table is computed in many steps, each of which uses the step before twice.
// run: -b 0=arange:uint32:256 -b 1:out:uint32:64 --grid 64
// let mixed = lambda h, n: mixed((h * 5 + 1) % 2**32 ^ h >> 13, n - 1) if n else h
// expect buffer 1: f(i) for i in 64: mixed(i, 24) & 255
#include <metal_stdlib>

kernel void hashed(device const uint *table [[buffer(0)]], device uint *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    uint h = i;
#pragma unroll
    for (int n = 0; n < 24; n++) h = (h * 5 + 1) ^ (h >> 13);
    out[i] = table[h & 255];
}
