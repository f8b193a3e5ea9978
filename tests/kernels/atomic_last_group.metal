// The last threadgroup to arrive adds up what all have written: fences and counters across threadgroups that run at once.
// run: -b 0=arange:int32:20000 -b 1:out:int32:400 -b 2:out:uint32:2 -b 3:out:int32:1 --grid 20000 --threadgroup 50
// expect buffer 3: 199990000
// expect buffer 2: 400 1
#include <metal_stdlib>
using namespace metal;

kernel void total(device const int *in [[buffer(0)]], coherent(device) device int *parts [[buffer(1)]],
                  device atomic_uint *arrived [[buffer(2)]], device int *out [[buffer(3)]],
                  uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                  uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]]) {
  threadgroup atomic_int sum;
  threadgroup uint order;
  if (t == 0) atomic_store_explicit(&sum, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&sum, in[i], memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) {
    parts[group] = atomic_load_explicit(&sum, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    order = atomic_fetch_add_explicit(&arrived[0], 1u, memory_order_relaxed);
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  if (order != groups - 1) return;
  if (t == 0) atomic_store_explicit(&sum, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint g = t; g < groups; g += 50) atomic_fetch_add_explicit(&sum, parts[g], memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t) return;
  out[0] = atomic_load_explicit(&sum, memory_order_relaxed);
  atomic_fetch_add_explicit(&arrived[1], 1u, memory_order_relaxed);
}
