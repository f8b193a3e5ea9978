// Conditional expressions whose arms lie in different address spaces, or are used as lvalues.
// run: arms -b 0=arange:float32:8x4 -b 1:out:float32:8x4 -b 2:out:int32:8 --bytes 3=float32:1,2,3,4 --grid 8 --threadgroup 8
// expect buffer 1: f(i) for i in 32: (i % 4 + 1 if i // 4 % 2 else i) + (0 if i // 4 < 4 else 4 * (7 - i // 4) + i % 4) + (i % 4 + 1 if i // 4 == 5 else -1)
// expect buffer 2: f(i) for i in 8: (10 if i % 2 else 0) + (20 if i % 2 == 0 else 2) + 5 * (i > 2)
#include <metal_stdlib>
using namespace metal;

struct Settings { float4 shift; };
struct Pair { int a, b; int c[2]; };

kernel void arms(const device float4 *in [[buffer(0)]], device float4 *out [[buffer(1)]], device int *sums [[buffer(2)]],
                        constant Settings &settings [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  threadgroup float4 tile[8];
  tile[7 - i] = in[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float4 v = i % 2 ? settings.shift : in[i];
  v += i < 4 ? float4(0) : tile[i];
  const constant Settings *p = &settings;
  v += i == 5 ? p->shift : i == 6 ? float4(-1.0f) : float4(-1);
  out[i] = v;
  // Lvalues stay lvalues, pointers and nulls stay what they are.
  Pair pair = {10, 20, {1, 2}};
  int values[2] = {0, 0};
  (i % 2 ? values[0] : values[1]) += i % 2 ? pair.a : pair.b;
  (i % 2 ? pair.c[0] : pair.c[1]) = 0;
  thread int *q = i > 2 ? &values[0] : nullptr;
  const device float4 *r = i > 2 ? in : 0;
  int extra = (q ? 2 : 0) + (r ? 3 : 0);
  sums[i] = values[0] + values[1] + pair.c[1] * (i % 2) + extra;
}
