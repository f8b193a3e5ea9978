// The name of Metal's own template, which programs use in place of atomic<T>.
// run: -b 0:out:uint32:4 --grid 64
// expect buffer 0: 64 2016 63 0
#include <metal_stdlib>
using namespace metal;

template <typename T> static void add(device _atomic<T> *to, T value) {
  atomic_fetch_add_explicit(to, value, memory_order_relaxed);
}

kernel void named(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  device _atomic<uint> *sums = reinterpret_cast<device _atomic<uint> *>(out);
  threadgroup metal::_atomic<int> most;
  atomic_store_explicit(&most, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  add(sums, 1u);
  add<uint>(&sums[1], i);
  atomic_fetch_max_explicit(&most, int(i), memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) atomic_store_explicit((device atomic_uint *)&sums[2], uint(atomic_load_explicit(&most, memory_order_relaxed)), memory_order_relaxed);
}
