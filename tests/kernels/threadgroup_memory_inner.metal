// What the optimiser knows of a variable that only one file sees is not what threadgroup memory begins with.
// finding: SM005: it stores what threadgroup memory begins with
// run: -b 0:out:uint32:256 -b 1:out:uint32:256 -b 2:out:uint32:256 --grid 256 --threadgroup 64
// expect buffer 0: f(i) for i in 256: 4294967295
// expect buffer 1: f(i) for i in 256: 4294967295
// expect buffer 2: f(i) for i in 256: 7 if i == 255 else 4294967295
// cpu-only: what GPUs begin with is open
#include <metal_stdlib>
using namespace metal;

namespace {
uint never() {
  static threadgroup uint value;
  return value;
}

uint never_before(uint t) {
  static threadgroup uint values[64];
  uint first = values[t];
  values[t] = t;
  return first;
}

uint once(uint i) {
  static threadgroup uint value;
  if (i == 255) value = 7;
  return value;
}

kernel void begins(device uint *a [[buffer(0)]], device uint *b [[buffer(1)]], device uint *c [[buffer(2)]],
                   uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
  a[i] = never();
  b[i] = never_before(t);
  if (i % 64 < 63) c[i] = once(i);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i % 64 == 63) c[i] = once(i);
}
}
