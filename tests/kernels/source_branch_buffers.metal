// Either way of a branch reads its own buffer, or its own coordinate: what is left of the two is one instruction each, which
// LLVM would make one of both.
// run: choose -b 0=arange:int32:64 -b 1=ones:int32:64 -b 2:out:int32:64 -b 3:out:uint32:64 --grid 8,8 --threadgroup 8,8
// expect buffer 2: f(i) for i in 64: 0 if i % 3 == 0 else 1
// expect buffer 3: f(i) for i in 64: i % 8 if i % 3 == 0 else i // 8
#include <metal_stdlib>
using namespace metal;

kernel void choose(device const int *a [[buffer(0)]], device const int *b [[buffer(1)]], device int *out [[buffer(2)]],
                   device uint *which [[buffer(3)]], uint3 p [[thread_position_in_grid]]) {
  const uint i = p.y * 8 + p.x;
  if (i % 3 == 0)
    out[i] = a[0];
  else
    out[i] = b[0];
  which[i] = i % 3 == 0 ? p.x : p.y;
}
