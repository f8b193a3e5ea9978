// Functions that call themselves stay functions, with bfloats for arguments and results.
// scalar-engine: it calls a function that calls itself
// run: -b 0=arange:bfloat16:64 -b 1=arange:uint32:45 -b 2:out:bfloat16:45 --grid 45 --threadgroup 45
// expect buffer 2: f(i) for i in 45: i + 4 * (i % 5)
#include <metal_stdlib>
using namespace metal;

struct state {
  bfloat first;
  half count;
  bfloat last;
};

static __attribute__((noinline)) state climb(state p, uint n) {
  if (n == 0) return p;
  state q = climb({p.first + bfloat(3), p.count + half(1), p.last}, n - 1);
  q.last = q.first > p.first ? q.first : p.first;
  return q;
}

kernel void calls(device const bfloat *a, device const uint *n, device bfloat *out,
                  uint t [[thread_position_in_grid]]) {
  state p = climb({a[t], 0, a[t]}, n[t] % 5);
  out[t] = p.last + bfloat(float(p.count));
}
