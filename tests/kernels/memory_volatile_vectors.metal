// Operators on vectors in volatile memory, with variables, temporaries and scalars on the other side.
// run: memory_volatile_vectors -b 0=arange:uint32:8 -b 1:out:uint32:8 -b 2:out:float32:8 --grid 4
// expect buffer 1: f(i) for i in 8: ((i ^ 3) + i + 2 * (i % 2 == 0)) * 2 - i + 5
// expect buffer 2: f(i) for i in 8: -[0.5, 3][i % 2] * 2 + 8 + (1 if i % 2 else 0.5)
#include <metal_stdlib>
using namespace metal;

kernel void memory_volatile_vectors(volatile device uint2 *pairs [[buffer(0)]], device uint2 *bits [[buffer(1)]],
                                    device float2 *sums [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  uint2 mine = pairs[i];
  uint2 mixed = pairs[i] ^ uint2(3);
  mixed += pairs[i];
  mixed.x += 2;
  pairs[i] += mine;
  pairs[i] += uint2(2, 2);
  pairs[i] += 3;
  bits[i] = mixed * 2 - (pairs[i] - 10) + mine;

  volatile float2 kept = float2(0.5f, 3);
  sums[i] = 2.0f * kept - (kept + kept) * 2;
  sums[i] += any(kept > float2(2)) && all(pairs[i] >= mine) ? 8 : 0;
  sums[i] += select(float2(0.5f), float2(1), float2(1) < kept);
}
