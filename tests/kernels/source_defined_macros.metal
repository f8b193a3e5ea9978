// Macros that the caller defines, as preprocessorMacros do in Metal.
// run: -b 0=arange:float32:5 -b 1:out:float32:5 --grid 5 -D TYPE=float -D SCALE=(2+1) -D SQUARED -D EMPTY=
// expect buffer 1: f(i) for i in 5: 3 * i * i + 11
#include <metal_stdlib>
#ifndef SQUARED
#error "SQUARED is missing"
#endif

kernel void scaled(device const TYPE *in [[buffer(0)]], device TYPE *out [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
    EMPTY out[i] = in[i] * in[i] * SCALE + SQUARED * __LINE__ EMPTY;
}
