// A histogram by threadgroup atomics, then an exclusive scan of it by simdgroup prefix sums; constants in a namespace.
// run: histogram -b 0=arange:uint32:1000 -b 1:out:uint32:64 -b 2:out:uint32:64 --bytes 3=uint32:1000 --groups 1 --threadgroup 64
// expect buffer 1: f(i) for i in 64: sum(1 for k in range(1000) if (k * k) % 61 == i)
// expect buffer 2: f(i) for i in 64: sum(1 for k in range(1000) if (k * k) % 61 < i)
#include <metal_stdlib>
using namespace metal;

namespace bins {
constant uint count = 64;
inline uint of(uint x) { return (x * x) % 61; }
}

enum BufferIndex { inputIndex = 0, countsIndex = 1, startsIndex = 2, sizeIndex = 3 };

kernel void histogram(const device uint *in [[buffer(inputIndex)]], device uint *counts [[buffer(countsIndex)]],
                      device uint *starts [[buffer(startsIndex)]], constant uint &n [[buffer(sizeIndex)]],
                      uint t [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]],
                      uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]]) {
  threadgroup atomic_uint bin[bins::count];
  threadgroup uint sums[2];
  atomic_store_explicit(&bin[t], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = t; k < n; k += size) atomic_fetch_add_explicit(&bin[bins::of(in[k])], 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint mine = atomic_load_explicit(&bin[t], memory_order_relaxed);
  uint before = simd_prefix_exclusive_sum(mine);
  if (lane == 31) sums[group] = before + mine;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  counts[t] = mine;
  starts[t] = before + (group == 0 ? 0u : sums[0]);
}
