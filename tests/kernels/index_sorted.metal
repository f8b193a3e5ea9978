// An index of a table is the median of many values, by a sorting network: each of its steps is computed from both of the two before.
// run: -b 0=arange:int32:34 -b 1:out:int32:64 --grid 64
// expect buffer 1: f(i) for i in 64: 17
#include <metal_stdlib>
using namespace metal;

kernel void sorted(device const int *table [[buffer(0)]], device int *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    int v[34];
#pragma unroll
    for (int k = 0; k < 34; k++) v[k] = (table[k] * 7 + int(i)) % 34;
#pragma unroll
    for (int step = 0; step < 34; step++)
#pragma unroll
        for (int k = step % 2; k < 33; k += 2) {
            const int least = min(v[k], v[k + 1]), most = max(v[k], v[k + 1]);
            v[k] = least;
            v[k + 1] = most;
        }
    out[i] = table[v[17]];
}
