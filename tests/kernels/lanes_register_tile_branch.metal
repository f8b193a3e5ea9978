// A thread that keeps a tile of 8 × 4 sums, in rounds and on ways that differ by thread.
// for group: 8,8 4,8 8,4
// run: -b 0=arange:int32:64x19 -b 1=arange:int32:19x32 -b 2:out:float32:64x32 --grid 8,8 --threadgroup {group}
// expect buffer 2: f(i) for i in 2048: sum((i // 32 * 19 + k) % 31 * ((k * 32 + i % 32) % 29) for k in range(19 - i // 256) if (i % 32 // 4 + k) % 3) + i % 5
#include <metal_stdlib>
using namespace metal;

kernel void product(device const int *a [[buffer(0)]], device const int *b [[buffer(1)]], device float *c [[buffer(2)]],
                    uint2 t [[thread_position_in_grid]]) {
  float sums[8][4] = {};
  for (uint k = 0; k < 19 - uint(b[t.y] % 19); k++) {
    if ((a[t.x] + k) % 3 == 0) continue;
    float row[8], column[4];
    for (uint r = 0; r < 8; r++) row[r] = a[(t.y * 8 + r) * 19 + k] % 31;
    for (uint j = 0; j < 4; j++) column[j] = b[k * 32 + t.x * 4 + j] % 29;
    for (uint r = 0; r < 8; r++)
      for (uint j = 0; j < 4; j++) sums[r][j] += row[r] * column[j];
  }
  for (uint r = 0; r < 8; r++)
    for (uint j = 0; j < 4; j++) {
      uint at = (t.y * 8 + r) * 32 + t.x * 4 + j;
      c[at] = sums[r][j] + at % 5;
    }
}
