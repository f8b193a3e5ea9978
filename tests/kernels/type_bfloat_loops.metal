// bfloats that live across divergent loops, choices and structures: on CPUs without instructions for them, too.
// run: -b 0=arange:bfloat16:64 -b 1=arange:uint32:45 -b 2:out:bfloat16:45 -b 3:out:bfloat16:45 -b 4:out:bfloat16:45
// run: -b 5:out:bfloat16:45 -b 6:out:float16:45 --grid 45 --threadgroup 45
// expect buffer 2: f(i) for i in 45: sum(r * 8 + c for r in range(3) for c in range(i % 5))
// expect buffer 3: f(i) for i in 45: max([0] + [r * 8 + c for r in range(3) for c in range(i % 5)])
// expect buffer 4: f(i) for i in 45: sum(k for r in range(2) for c in range(i % 5) for k in range(4 * ((r + c) % 2), 4 * ((r + c) % 2) + 4))
// expect buffer 5: f(i) for i in 45: sum(range(i % 5)) + max(1, sum(range(i % 5)))
// expect buffer 6: f(i) for i in 45: 0.5 + i % 5
#include <metal_stdlib>
using namespace metal;

struct state {
  bfloat first;
  half count;
  bfloat last;
};

static state step(state p, bfloat a) {
  p.first += a;
  p.count += half(1);
  p.last = p.first > p.last ? p.first : p.last;
  return p;
}

kernel void sums(device const bfloat *a, device const uint *n, device bfloat *sum, device bfloat *most,
                 device bfloat *wide, device bfloat *stepped, device half *counts,
                 uint t [[thread_position_in_grid]]) {
  bfloat s = 0, m = 0;
  for (uint r = 0; r < n[3]; r++)
    for (uint c = 0; c < n[t] % 5; c++) {
      s += a[r * 8 + c];
      m = max(m, a[r * 8 + c]);
    }
  sum[t] = s;
  most[t] = m;
  bfloat4 w = 0;
  for (uint r = 0; r < n[2]; r++)
    for (uint c = 0; c < n[t] % 5; c++) w += ((device const bfloat4 *)a)[(r + c) % 2];
  wide[t] = w.x + w.y + w.z + w.w;
  state p = {0, 0.5h, 1};
  for (uint c = 0; c < n[t] % 5; c++) p = step(p, a[c]);
  stepped[t] = p.first + p.last;
  counts[t] = p.count;
}
