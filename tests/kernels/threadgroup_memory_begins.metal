// Threadgroup memory is 0xff when a group begins, whatever the groups before it wrote: variables and arguments, also
// those that are larger than what is written, and on code that is one gang, several, or has no barrier.
// for group: 32 64 96 256
// finding: SM005: it stores what threadgroup memory begins with
// run: -b 0:out:uint32:2048 --threadgroup-memory 0=4096 --grid 2048 --threadgroup {group}
// expect buffer 0: f(i) for i in 2048: 0
// cpu-only: what GPUs begin with is open
#include <metal_stdlib>
using namespace metal;

kernel void begins(device uint *dirty [[buffer(0)]], threadgroup uint *given [[threadgroup(0)]],
                   uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                   uint n [[threads_per_threadgroup]]) {
  threadgroup uint own[1024];
  threadgroup float reals[8];
  threadgroup uchar bytes[3];
  uint found = 0;
  for (uint k = t; k < 1024; k += n) found += own[k] != ~0u;
  for (uint k = t; k < 1024; k += n) found += given[k] != ~0u;
  found += !isnan(reals[t % 8]);
  found += bytes[t % 3] != 255;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = t; k < 1024; k += n) own[k] = given[k] = i + k;
  if (t < 8) reals[t] = t;
  if (t < 3) bytes[t] = t;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  dirty[i] = found + (own[(t * 7) % 1024] != given[(t * 7) % 1024]) + isnan(reals[t % 8]) + (bytes[t % 3] > 2);
}
