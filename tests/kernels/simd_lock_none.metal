// No lock: in each round of these loops some lane succeeds, and nobody waits for what comes behind them.
// run: twice -b 0:out:uint32:4 -b 1:out:uint32:2 --grid 320 --threadgroup 64 --timeout 30
// expect buffer 0: f(i) for i in 4: (320, 640, 0, 0)[i]
#include <metal_stdlib>
using namespace metal;

static void add(device atomic_uint *sum, uint x) {
  uint old = atomic_load_explicit(sum, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(sum, &old, old + x, memory_order_relaxed, memory_order_relaxed)) {}
}

kernel void twice(device atomic_uint *sums [[buffer(0)]], device uint *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  add(sums, 1);
  add(sums + 1, 1);
  add(sums + 1, 1);
  out[i & 1] = i & 1;
}
