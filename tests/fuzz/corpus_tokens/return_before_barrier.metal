// Threads that return count as arrived at every later barrier: from nested blocks, loops and switches too.
// run: -b 0=arange:int32:96 -b 1:out:int32:96 --grid 96 --threadgroup 48
// expect buffer 1: f(i) for i in 96: 0 if i % 48 % 5 == 3 else -1 if i % 48 == 7 else -2 if i % 48 == 9 else 47 - i % 48
#include <metal_stdlib>
using namespace metal;

inline int pick(int x) {
  if (x == 7) return 1;
  return x == 9 ? 2 : 0;
}

kernel void returns(device const int *in [[buffer(0)]], device int *out [[buffer(1)]],
                    uint g [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup int tile[48];
  tile[t] = in[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int value = tile[47 - t];
  if (t % 5 == 3) return;
  for (int k = 0; k < 4; k++) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    switch (pick(t)) {
    case 1:
      if (k == 1) {
        out[g] = -1;
        return;
      }
      break;
    case 2:
      if (k == 2) { out[g] = -2; return; }
    default:
      break;
    }
  }
  threadgroup_barrier(mem_flags::mem_device);
  auto twice = [](int x) { return x * 2; };
  out[g] = twice(value) / 2;
}
