// A sum that a loop carries is also a factor of another sum's product, which comes before it goes on. Sums go on in another
// order than they are declared.
// run: -b 0:out:float32:320 --bytes 1=uint32:3 --grid 64 --threadgroup 64
// let left = [[(r * 7 + c * 3) % 11 for c in range(8)] for r in range(8)]
// let right = [[(r * 5 + c * 2) % 13 - 6 for c in range(8)] for r in range(8)]
// let times = lambda x, y: [[sum(x[r][k] * y[k][c] for k in range(8)) for c in range(8)] for r in range(8)]
// let once = times(left, right)
// let twice = times(right, once)
// let parts = [lambda r, c: 3 * once[r][c], lambda r, c: 1 + 3 * once[r][c], lambda r, c: 3 * sum(right[r]) + 3 * twice[r][c], lambda r, c: 4 + 3 * once[r][c], lambda r, c: 5 + 3 * once[r][c]]
// expect buffer 0: f(i) for i in 320: parts[i // 64](i % 64 // 8, i % 8)
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void factor(device float *out [[buffer(0)]], constant uint &n [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float a[64], b[64];
  a[t] = float((t / 8 * 7 + t % 8 * 3) % 11);
  b[t] = float(int((t / 8 * 5 + t % 8 * 2) % 13) - 6);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 x(0), y = make_filled_simdgroup_matrix<float, 8, 8>(1), z(0);
  for (uint i = 0; i < n; i++) {
    simdgroup_float8x8 left, other, right;
    simdgroup_load(left, a + (n - 3) * i, 8);
    simdgroup_load(other, b + (n - 3) * i, 8);
    simdgroup_load(right, b + 2 * (n - 3) * i, 8);
    simdgroup_multiply_accumulate(x, left, right, x);
    simdgroup_multiply_accumulate(z, other, y, z); // y before this round
    simdgroup_multiply_accumulate(y, left, right, y);
  }
  simdgroup_store(x, out, 8);
  simdgroup_store(y, out + 64, 8);
  simdgroup_store(z, out + 128, 8);
  simdgroup_float8x8 first = make_filled_simdgroup_matrix<float, 8, 8>(4), second = make_filled_simdgroup_matrix<float, 8, 8>(5);
  for (uint i = 0; i < n; i++) {
    simdgroup_float8x8 left, right;
    simdgroup_load(left, a + (n - 3) * i, 8);
    simdgroup_load(right, b + (n - 3) * i, 8);
    simdgroup_multiply_accumulate(second, left, right, second);
    simdgroup_multiply_accumulate(first, left, right, first);
  }
  simdgroup_store(first, out + 192, 8);
  simdgroup_store(second, out + 256, 8);
}
