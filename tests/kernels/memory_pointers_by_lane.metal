// Pointers are stored lane by lane: where they lie and what they are differ by lane, under a mask.
// run: choose -b 0=arange:int32:256 -b 1:out:int32:128 --grid 128 --threadgroup 64
// expect buffer 1: f(i) for i in 128: 100 * (i * 5 % 4 if i % 3 else (i + 1) % 4) + i
#include <metal_stdlib>
using namespace metal;

struct places {
  int values[4];
  thread int *at[4];
  thread int **which;
};

kernel void choose(device int *x [[buffer(0)]], device int *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  places p;
  for (int k = 0; k < 4; k++) {
    p.values[k] = 100 * k + x[i];
    p.at[k] = &p.values[(k + 1 + x[0]) & 3];
  }
  p.which = &p.at[x[i] & 3];
  thread int **which = &p.at[x[i * 2] & 3];
  if (x[i] % 3) *p.which = &p.values[x[i] * 5 % 4];
  if (x[i] < 0) *which = &p.values[0];
  out[i] = *p.at[x[i] & 3];
}
