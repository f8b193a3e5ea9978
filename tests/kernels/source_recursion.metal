// A function that calls itself and writes memory is called for each thread, also where all give it the same arguments.
// scalar-engine: it calls a function that calls itself
// run: counts -b 0:out:int32:2 -b 1=5 -b 2:out:int32:70 --grid 70 --threadgroup 32
// expect buffer 0: 1050 70
// expect buffer 2: f(i) for i in 70: 7
#include <metal_stdlib>
using namespace metal;

/* The calls, counted in memory: 15 of them for n = 5. */
static int walk(device atomic_int *count, int n) {
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
  return n <= 1 ? 1 : walk(count, n - 1) + walk(count, n - 2);
}

kernel void counts(device atomic_int *count [[buffer(0)]], constant int &n [[buffer(1)]], device int *out [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
  int leaves = walk(count, n);
  atomic_fetch_add_explicit(count + 1, 1, memory_order_relaxed);
  out[i] = leaves - 1;
}
