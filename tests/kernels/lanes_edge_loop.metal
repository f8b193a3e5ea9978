// Each thread computes two neighbours, and those at the edge, in a loop, what is left up to a constant size.
// for group: 32 1024 100
// run: -b 0=arange:float32:2099 -b 1:out:float32:2200 --grid 1060 --threadgroup {group}
// expect buffer 1: f(i) for i in 2200: i * 2 + 1 if i < 2099 else 0
#include <metal_stdlib>
using namespace metal;

constant uint size = 2099;

kernel void pairs(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], uint index [[thread_position_in_grid]]) {
    index *= 2;
    if (index + 2 > size) {
        for (int i = 0; index + i < size; ++i) out[index + i] = in[index + i] * 2 + 1;
    } else {
        for (int i = 0; i < 2; ++i) out[index + i] = in[index + i] * 2 + 1;
    }
}
