// What all threads write before the first barrier need not be filled before each group; what they leave out must be
// as it was, unless something writes it later.
// finding: SM002: two threads write one element
// run: -b 0:out:uint32:512 -b 1:out:uint32:512 -b 2:out:uint32:512 -b 3:out:uint32:512 -b 4:out:uint32:512 -b 5:out:uint32:512
// run: --grid 512,2 --threadgroup 32,2
// expect buffer 0: f(i) for i in 512: 4294967295
// expect buffer 1: f(i) for i in 512: 4294967295
// expect buffer 2: f(i) for i in 512: 4294967295
// expect buffer 3: f(i) for i in 512: 4294967295
// expect buffer 4: f(i) for i in 512: 31 - i % 32 + 32
// expect buffer 5: f(i) for i in 512: 4294967295
// cpu-only: what GPUs begin with is open
#include <metal_stdlib>
using namespace metal;

kernel void parts(device uint *never [[buffer(0)]], device uint *later [[buffer(1)]], device uint *half_of [[buffer(2)]],
                  device uint *some [[buffer(3)]], device uint *all [[buffer(4)]], device uint *looped [[buffer(5)]],
                  uint2 i [[thread_position_in_grid]], uint2 p [[thread_position_in_threadgroup]],
                  uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint a[128], b[128], c[64], d[64], e[2][64], f[64], g[64];
  uint first_g = g[t];
  g[t] = t;                    // after it was read
  a[t] = t;                    // a[64 …] is written by nothing
  b[p.y * 32 + p.x] = t;       // b[64 …] behind the barrier
  c[t & 31] = t;               // c[32 …] behind the barrier
  if (t < 32) d[t] = t;        // not by all
  e[0][t] = t;                 // all of it
  e[1][63 - t] = t;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint row = t + 64, out = i.x;
  uint first_d = d[32 + t % 32];
  uint first_f = f[(t * 5 + 3) % 64];
  uint others[3] = {a[127 - t], b[row], c[32 + t % 32]};
  uint whole = e[1][t % 32] > 31 ? e[0][31 - t % 32] + 32 : 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  b[row] = t;
  c[t] = t;
  d[t] = t;
  e[t % 2][(whole + t) % 64] = 0;
  for (uint k = t; k < 64; k += 32) f[k] = k;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i.y) return;
  never[out] = others[0];
  later[out] = others[1];
  half_of[out] = others[2];
  some[out] = (first_d & first_g) | (b[row] + c[t] + g[63 - t] > 1000);
  all[out] = whole;
  looped[out] = first_f | (f[t] + e[0][t] > 1000);
}
