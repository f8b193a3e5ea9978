// Something of every kind that is code of its own on some GPU: tests/ptx/test_targets.py.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void everything(device half *a [[buffer(0)]], device half *b [[buffer(1)]], device float *c [[buffer(2)]],
                       device bfloat *d [[buffer(3)]], device atomic<float> *sums [[buffer(4)]], constant uint &n [[buffer(5)]],
                       uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_half8x8 left, right;
  simdgroup_float8x8 product = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint k = 0; k < n; k += 8) {
    simdgroup_load(left, a + k, n);
    simdgroup_load(right, b + k * n, n);
    simdgroup_multiply_accumulate(product, left, right, product);
  }
  simdgroup_store(product, c, 8);
  float4 v = *(device float4 *)(c + i * n);
  d[i] = max(d[i], bfloat(simd_sum(v.x))) * d[i + n];
  if (lane & 1) c[i] = simd_max(v.y) + fast::exp(v.z);
  for (uint k = 0; k < 4; k++) atomic_fetch_add_explicit(sums + 4 * i + k, v[k], memory_order_relaxed);
}
