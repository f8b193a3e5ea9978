// An array of partial results is used again, without a barrier between its loads and the next stores to it, as public
// kernels do. Each simdgroup gets the whole result, since added barriers hold the stores back. Three rows of 256.
// run: -b 0=arange:float32:768 -b 1:out:float32:768 -b 2:out:float32:3 -b 3:out:float32:768 -b 4:out:float32:768 --groups 3 --threadgroup 256 --threadgroup-memory 0=1024
// expect buffer 1: f(i) for i in 768: sum(j / 1000 for j in range(i // 256 * 256, i // 256 * 256 + 256)) + sum((j / 1000) ** 2 for j in range(i // 256 * 256, i // 256 * 256 + 256))
// expect buffer 2: f(i) for i in 3: sum((j / 1000 - sum(k / 1000 for k in range(i * 256, i * 256 + 256)) / 256) ** 2 for j in range(i * 256, i * 256 + 256))
// expect buffer 3: f(i) for i in 768: max(range(i // 256 * 256, i // 256 * 256 + 256)) + min(range(i // 256 * 256, i // 256 * 256 + 256))
// expect buffer 4: f(i) for i in 768: sum(sum(range(i // 256 * 256 + r * 32, i // 256 * 256 + r * 32 + 32)) * (r + 1) for r in range(8))
// tolerance: 1e-5
#include <metal_stdlib>
using namespace metal;

kernel void k(device const float *x [[buffer(0)]], device float *sums [[buffer(1)]],
              device float *spread [[buffer(2)]], device float *extremes [[buffer(3)]],
              device float *rounds [[buffer(4)]], threadgroup float *own [[threadgroup(0)]],
              uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
              uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
              uint simdgroups [[simdgroups_per_threadgroup]], uint row [[threadgroup_position_in_grid]]) {
  // By lane.
  threadgroup float shared[32];
  float value = x[i] / 1000;
  float sum = simd_sum(value);
  if (lane == 0) shared[simdgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  sum = simd_sum(lane < simdgroups ? shared[lane] : 0);
  float squares = simd_sum(value * value);
  if (lane == 0) shared[simdgroup] = squares;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  squares = simd_sum(lane < simdgroups ? shared[lane] : 0);
  sums[i] = sum + squares;

  // One element, in an argument: a mean, then the sum of squared distances from it.
  own[t] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 128; s > 0; s /= 2) {
    if (t < s) own[t] += own[t + s];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  float mean = own[0] / 256;
  own[t] = (value - mean) * (value - mean);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 128; s > 0; s /= 2) {
    if (t < s) own[t] += own[t + s];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t == 0) spread[row] = own[0];

  // All elements, in a loop.
  threadgroup float most[8];
  float best = simd_max(x[i]), least = simd_min(x[i]);
  if (lane == 0) most[simdgroup] = best;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 0; s < simdgroups; s++) best = max(best, most[s]);
  if (lane == 0) most[simdgroup] = least;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint s = 0; s < simdgroups; s++) least = min(least, most[s]);
  extremes[i] = best + least;

  // In the next round of a loop.
  threadgroup float parts[8];
  float total = 0;
  for (uint round = 0; round < 8; round++) {
    float part = simd_sum(simdgroup == round ? x[i] : 0);
    if (lane == 0) parts[simdgroup] = part * (round + 1);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    total += simd_sum(lane < simdgroups ? parts[lane] : 0);
  }
  rounds[i] = total;
}
