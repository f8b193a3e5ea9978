// Lanes read all of an array of their simdgroup in a loop. Lane 0 then replaces its first elements, without a barrier in between.
// run: -b 0=arange:float32:64 -b 1:out:float32:64 -b 2:out:float32:4 --bytes 3=int32:3 --grid 64 --threadgroup 64 --threadgroup-memory 0=256
// expect buffer 1: f(i) for i in 64: sum(range(i // 32 * 32, i // 32 * 32 + 32)) * 3 + 96
// expect buffer 2: f(i) for i in 4: [1584, 7, 4656, 7][i]
#include <metal_stdlib>
using namespace metal;

kernel void k(device const float *x [[buffer(0)]], device float *out [[buffer(1)]], device float *last [[buffer(2)]],
              constant int &n [[buffer(3)]], threadgroup float *m [[threadgroup(0)]],
              uint t [[thread_position_in_threadgroup]], ushort lane [[thread_index_in_simdgroup]],
              ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float *own = m + simdgroup * 32;
  float total = 0;
  for (int r = 0;; r++) {
    if (r >= n) break;
    own[lane] = x[t] + r;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (short c = 0; c < 32; c++) total += own[c];
  }
  if (lane == 0) {
    own[0] = total;
    own[1] = 7;
  }
  out[t] = total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane < 2) last[simdgroup * 2 + lane] = own[lane];
}
