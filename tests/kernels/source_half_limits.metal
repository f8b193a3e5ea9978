// Limits of half that the preprocessor spells with a suffix, 6.5504e+4F16, as ggml's attention uses them.
// run: limits -b 0:out:float32:6 --grid 6 --threadgroup 6
// expect buffer 0: -32752 65504 0.0009765625 1 2.5 3
#include <metal_stdlib>
using namespace metal;
#define LOWEST (-__FLT16_MAX__ / 2)
#define TWO_AND_A_HALF 2.5f16

kernel void limits(device float *out, uint i [[thread_position_in_grid]]) {
  float values[6] = {LOWEST, __FLT16_MAX__, __FLT16_EPSILON__, sizeof(__FLT16_MAX__) == 2, TWO_AND_A_HALF, 0x1.8p1F16};
  out[i] = values[i];
}
