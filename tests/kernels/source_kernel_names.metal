// A kernel called like functions of Metal's library that a using-directive shows beside it.
// run: transpose -b 0=arange:float32:6 -b 1:out:float32:6 --grid 3,2
// expect buffer 1: 0 3 1 4 2 5
#include <metal_stdlib>
using namespace metal;

kernel void transpose(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                      uint2 at [[thread_position_in_grid]]) {
  out[at.x * 2 + at.y] = in[at.y * 3 + at.x];
}
