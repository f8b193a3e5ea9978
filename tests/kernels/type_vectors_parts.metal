// Halves of vectors and every other component, which clang's own vectors have, and Metal's with them.
// run: -b 0=arange:int32:32 -b 1:out:int32:64 --grid 8
// let v = lambda i: [4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3]
// expect buffer 1: f(i) for i in 64: (lambda a, b, c, d: (b + d, a + c, a + d, d, a, c, b, b + c))(*v(i // 8))[i % 8]
#include <metal_stdlib>
using namespace metal;

kernel void parts(device const packed_int4 *in [[buffer(0)]], device int *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  int4 v = in[i], w = v, z = 0;
  device int *o = out + 8 * i;
  o[0] = v.odd.x + v.odd.y;
  o[1] = v.lo.x + v.even.hi;
  w.hi = w.lo + w.hi;
  o[2] = w.z - v.z + v.hi.odd;
  z.even = v.odd;
  o[3] = z.z + z.y;
  o[4] = packed_int4(v).lo.lo;
  int3 t = v.xyz;
  o[5] = t.even.hi;
  t.lo += 1;
  o[6] = t.x - v.x + v.lo.hi - 1;
  long2 s = long2(v.lo);
  s.odd ^= s.even;
  o[7] = int(s.lo - v.x) + v.y + (in[i].hi.x);
}
