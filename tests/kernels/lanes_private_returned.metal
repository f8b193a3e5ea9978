// A vector of 16-bit components that a function returns by value is a vector to LLVM, too: written to a private array in
// pieces, whose addresses stand right behind the array itself, and read there by an index that differs by lane.
// run: last -b 0=arange:bfloat16:96 -b 1:out:bfloat16:96 -b 2:out:uint16:96 --grid 96 --threadgroup 64
// expect buffer 1: f(i) for i in 96: i + 1
// expect buffer 2: f(i) for i in 96: 7 * i + (i % 3)
#include <metal_stdlib>
using namespace metal;

template <class V, class F> V assigned(V v, F change) {
  change(v);
  return v;
}

kernel void last(const device bfloat *in [[buffer(0)]], device bfloat *out [[buffer(1)]], device ushort *counts [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) {
  uint lane = i % 3, start = i - lane;
  bfloat3 x;
  for (uint c = 0; c < 3; c++) x[c] = in[start + c];
  auto r = assigned(x, [](thread bfloat3 &v) { v++; });
  out[i] = r[lane];
  ushort3 n = assigned(ushort3(7 * i), [](thread ushort3 &v) { v += ushort3(0, 1, 2); });
  counts[i] = n[lane];
}
