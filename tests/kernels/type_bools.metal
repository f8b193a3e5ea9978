// && of bools in memory. A thread of a GPU loads several of them at once.
// run: both -b 0=rand:bool:262144:3 -b 1=rand:bool:262144:4 -b 2:out:bool:262144 --bytes 3=int64:0,0,0 --grid 262144 --threadgroup 256
// expect-prefix buffer 2: 1 0 0 1 1 1 0 1
#include <metal_stdlib>
using namespace metal;

kernel void both(device const bool *a [[buffer(0)]], device const bool *b [[buffer(1)]], device bool *all [[buffer(2)]],
                 constant long *start [[buffer(3)]], uint3 at [[thread_position_in_grid]]) {
  auto x = a + start[0], y = b + start[1];
  auto to = all + start[2];
  const uint i = at.x;
  const bool first = x[i], second = y[i];
  to[i] = first && second;
}
