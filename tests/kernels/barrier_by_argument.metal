// Without `using namespace metal`, calls find barriers and atomics by the namespaces of their arguments.
// run: -b 0:out:int32:64 -b 1:out:uint32:1 --grid 64 --threadgroup 64
// expect buffer 0: f(i) for i in 64: 63 - i
// expect buffer 1: 64
#include <metal_stdlib>

kernel void reverses(device int *o [[buffer(0)]], device metal::atomic_uint *count [[buffer(1)]],
                     uint t [[thread_position_in_threadgroup]]) {
  threadgroup int s[64];
  s[t] = t;
  threadgroup_barrier(metal::mem_flags::mem_threadgroup | metal::mem_flags::mem_device);
  int other = s[63 - t];
  simdgroup_barrier(metal::mem_flags::mem_none);
  atomic_fetch_add_explicit(count, 1u, metal::memory_order_relaxed);
  o[t] = other;
}
