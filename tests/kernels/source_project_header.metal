// A header whose name begins like those of Metal's, but has a suffix, is the project's.
// run: header -b 0:out:float32:4 --grid 4
// expect buffer 0: 0 2 4 6
#include <metal/metal_stdlib>
#include <metal_numbers.h>
using namespace metal;
kernel void header(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = twice(i); }
