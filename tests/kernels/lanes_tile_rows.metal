// A tile of 12 x 4 sums per thread, whose rows are shorter than a vector of 256 bits: they are loaded and stored row by row.
// run: -b 0=arange:int32:96x32 -b 1=arange:int32:32x32 -b 2:out:float32:96x32 --bytes 3=uint32:32 --grid 64 --threadgroup 64
// expect buffer 2: f(i) for i in 3072: sum((i // 32 * 32 + k) % 31 * ((k * 32 + i % 32) % 29) for k in range(32))
#include <metal_stdlib>
using namespace metal;

constant constexpr uint rows = 96, columns = 32, depth = 16, high = 12, wide = 4;

kernel void product(device const int *a [[buffer(0)]], device const int *b [[buffer(1)]], device float *c [[buffer(2)]],
                    constant uint &n [[buffer(3)]], uint me [[thread_index_in_threadgroup]]) {
  threadgroup float left[depth][rows], right[depth][columns];
  const uint row = me / 8 * high, column = me % 8 * wide;
  float sum[high][wide] = {};
  for (uint base = 0; base < n; base += depth) {
    for (uint i = me; i < depth * rows; i += 64) left[i / rows][i % rows] = a[i % rows * n + base + i / rows] % 31;
    for (uint i = me; i < depth * columns; i += 64) right[i / columns][i % columns] = b[(base + i / columns) * n + i % columns] % 29;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < depth; k++) {
      float x[high], y[wide];
      for (uint r = 0; r < high; r++) x[r] = left[k][row + r];
      for (uint j = 0; j < wide; j++) y[j] = right[k][column + j];
      for (uint r = 0; r < high; r++)
        for (uint j = 0; j < wide; j++) sum[r][j] += x[r] * y[j];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint r = 0; r < high; r++)
    for (uint j = 0; j < wide; j++) c[(row + r) * n + column + j] = sum[r][j];
}
