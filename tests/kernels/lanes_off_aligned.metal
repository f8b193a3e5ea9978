// Rows of a struct that begins at multiples of 64 bytes, read by some lanes, beside tables of other alignments.
// for group: 32 64
// run: -b 0=arange:int32:64 -b 1:out:float32:64 --grid 64 --threadgroup {group}
// expect buffer 1: f(i) for i in 64: -1 if i % 3 == 0 else sum((16 * (i * 7 % 32) + k) * (k + 1) for k in range(16)) + [3, 1, 4, 1, 5, 9, 2][i % 7]
#include <metal_stdlib>
using namespace metal;

struct alignas(64) row { float v[16]; };
constant int digits[7] = {3, 1, 4, 1, 5, 9, 2};

kernel void aligned(device const int *numbers [[buffer(0)]], device float *out [[buffer(1)]], uint i [[thread_position_in_grid]],
                    uint me [[thread_position_in_threadgroup]]) {
  threadgroup row rows[32];
  if (me < 32)
    for (int k = 0; k < 16; k++) rows[me].v[k] = 16 * me + k;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const int n = numbers[i];
  if (n % 3 == 0) {
    out[i] = -1;
    return;
  }
  float sum = digits[n % 7];
  for (int k = 0; k < 16; k++) sum += rows[n * 7 % 32].v[k] * (k + 1);
  out[i] = sum;
}
