// A `return;` in a function that the kernel calls ends the thread where only the kernel's end follows: others pass the
// function's barriers without it. Where a barrier follows it is an ordinary return, and all threads meet there.
// for kind: 0 1 2 3
// run: returns_{kind} -b 0=arange:int32:100 -b 1:out:int32:100 --grid 100 --threadgroup 40
// let L = lambda i: 40 if i < 80 else 20
// let o = lambda i: i // 40 * 40
// let tail = lambda i: -1 if i % 40 % 3 == 1 else 3 * sum(j for j in range(o(i), o(i) + L(i)) if j % 40 % 3 != 1)
// let looped = lambda i: sum(o(i) + (i % 40 + r) % L(i) + r for r in range(1, 4) if i % 40 % 4 != r) + 1000
// expect buffer 1: f(i) for i in 100: looped(i) if kind == 2 else tail(i)
#include <metal_stdlib>
using namespace metal;

template <typename T> void gather(device const T *in, device T *out, threadgroup T *tile, uint g, uint t, uint size) {
  if (t % 3 == 1) {
    out[g] = -1;
    tile[t] = 0;
    return;
  }
  T total = 0;
  for (int round = 0; round < 3; round++) {
    tile[t] = in[g];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < size; k++) total += k % 3 == 1 ? 0 : tile[k];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    tile[t] = -5;
  }
  out[g] = total;
}
struct gatherer {
  static void run(device const int *in, device int *out, threadgroup int *tile, uint g, uint t, uint size) {
    if (t < 40)
      gather(in, out, tile, g, t, size);
    else
      return;
  }
};
// Leaves early, but the kernel goes on to barriers.
static void add(threadgroup int *tile, thread int &sum, uint t, uint size, uint round) {
  if (t % 4 == round) return;
  sum += tile[(t + round) % size] + int(round);
}

#define KERNEL(name) \
  kernel void name(device const int *in [[buffer(0)]], device int *out [[buffer(1)]], uint g [[thread_position_in_grid]], \
                   uint t [[thread_index_in_threadgroup]], uint size [[threads_per_threadgroup]])
KERNEL(returns_0) {
  threadgroup int tile[40];
  gather(in, out, tile, g, t, size);
}
KERNEL(returns_1) {
  threadgroup int tile[40];
  gatherer::run(in, out, tile, g, t, size);
}
KERNEL(returns_2) {
  threadgroup int tile[40];
  int sum = 0;
  for (uint round = 1; round < 4; round++) {
    tile[t] = in[g];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    add(tile, sum, t, size, round);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    tile[t] = -1000;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[g] = sum + 1000;
}
KERNEL(returns_3) {
  threadgroup int tile[40];
  if (g >= 40)
    gather(in, out, tile, g, t, size);
  else
    gather(in, out, tile, g, t, 40u);
}
