// All lanes of a simdgroup load two results, and one lane replaces the first, without a barrier of the simdgroup in between,
// as public attention kernels do when they reduce their simdgroups' sums in pairs.
// run: -b 0=arange:float32:128 -b 1:out:float32:64 --grid 128 --threadgroup 128 --threadgroup-memory 0=512
// expect buffer 1: f(i) for i in 64: i * (i // 32 * 32) + (i // 32 * 32) + (i // 32 * 32 + 64)
#include <metal_stdlib>
using namespace metal;

kernel void k(device const float *x [[buffer(0)]], device float *out [[buffer(1)]], threadgroup float *m [[threadgroup(0)]],
              uint t [[thread_position_in_threadgroup]], ushort lane [[thread_index_in_simdgroup]],
              ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float *own = m + simdgroup * 32;
  own[lane] = x[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup < 2) {
    const float first = own[0], second = own[64];
    const float sum = first + second;
    if (lane == 0) own[0] = sum;
    for (ushort i = lane; i < 32; i += 32) out[simdgroup * 32 + i] = x[t] * first + sum;
  }
}
