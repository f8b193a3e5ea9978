// Traps that no thread reaches: behind a condition of some lanes, in a loop of different lengths, before a barrier, and behind a
// uniform condition.
// run: -b 0:out:int32:128 -b 1=arange:int32:128 --bytes 2=int32:7 --grid 128 --threadgroup 64
// expect buffer 0: f(i) for i in 128: sum(range(i % 5)) * 7 + i + (i ^ 1)
#include <metal_stdlib>
using namespace metal;

kernel void traps(device int *out [[buffer(0)]], device const int *numbers [[buffer(1)]], constant int &factor [[buffer(2)]],
                  uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
  threadgroup int shared[64];
  if (factor > 7) __builtin_trap();
  int n = numbers[i], sum = 0;
  if (n < 0) __builtin_trap();
  for (int k = 0; k < n % 5; k++) {
    if (numbers[k] > n) __builtin_trap();
    sum += k;
  }
  shared[t] = n;
  if (sum > n + 6) __builtin_trap();
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = sum * factor + n + shared[t ^ 1];
}
