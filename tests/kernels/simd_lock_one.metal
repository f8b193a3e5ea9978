// A lock that one lane of each simdgroup takes: nobody in a gang of one simdgroup waits for it, so the SIMD engine runs this.
// run: one -b 0=zeros:int32:1 -b 1:out:uint32:2 --grid 320 --threadgroup 32 --timeout 30
// expect buffer 1: 51040 10
#include <metal_stdlib>
using namespace metal;

kernel void one(device atomic_int *lock [[buffer(0)]], device uint *sums [[buffer(1)]], uint i [[thread_position_in_grid]],
                uint lane [[thread_index_in_simdgroup]]) {
  uint sum = simd_sum(i);
  if (lane == 0) {
    while (atomic_exchange_explicit(lock, 1, memory_order_relaxed) != 0) {}
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    sums[0] += sum;
    sums[1] += 1;
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    atomic_store_explicit(lock, 0, memory_order_relaxed);
  }
}
