// Tiled matrix product with 2-D threadgroup arrays handed to a helper by reference, edge tiles, a struct of sizes.
// run: matmul -b 0=arange:float32:37x21 -b 1=arange:float32:21x45 -b 2:out:float32:37x45 --bytes 3=uint32:37,45,21 --grid 48,48 --threadgroup 16,16
// expect buffer 2: f(i) for i in 1665: float(sum(((i // 45) * 21 + k) * (k * 45 + i % 45) for k in range(21)))
// tolerance: 1e-6
#include <metal_stdlib>
using namespace metal;

struct Sizes {
  uint m, n, k;
};

template <typename T, int tile>
struct Loader {
  const device T *source;
  uint rows, columns;
  Loader(const device T *source, uint rows, uint columns) : source(source), rows(rows), columns(columns) {}
  T load(uint2 at) const { return at.y < rows && at.x < columns ? source[at.y * columns + at.x] : T(0); }
};

template <typename T, int tile>
METAL_FUNC void store_tile(threadgroup T (&into)[tile][tile], uint2 position, T value) {
  into[position.y][position.x] = value;
}

kernel void matmul(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                   device float *c [[buffer(2)]], constant Sizes &sizes [[buffer(3)]],
                   uint2 at [[thread_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]) {
  constexpr int tile = 16;
  threadgroup float left[tile][tile];
  threadgroup float right[tile][tile];
  Loader<float, tile> from_a(a, sizes.m, sizes.k), from_b(b, sizes.k, sizes.n);
  float sum = 0;
  for (uint base = 0; base < sizes.k; base += tile) {
    store_tile<float, tile>(left, t, from_a.load(uint2(base + t.x, at.y)));
    store_tile<float, tile>(right, t, from_b.load(uint2(at.x, base + t.y)));
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (int k = 0; k < tile; k++) sum = fma(left[t.y][k], right[k][t.x], sum);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (at.x < sizes.n && at.y < sizes.m) c[at.y * sizes.n + at.x] = sum;
}
