// Kernels for test_inside.py, with 8 threads per group. If a kernel has an invalid access, thread 5 of group 1 alone makes it.
#include <metal_stdlib>
using namespace metal;

kernel void writes_past(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  o[i == 13 ? 16 : i] = a[i];
}

kernel void writes_in_front(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  o[i == 13 ? -1 : (int)i] = a[i];
}

kernel void reads_past(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  o[i] = a[i == 13 ? 1u << 30 : i];
}

kernel void throws_away(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  int v = a[i + 3];
  o[i] = i + 3 < 16 ? v : 0;
}

kernel void vector_straddles(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  o[i] = dot(float4(*(const device packed_int4 *)(a + (i == 13 ? 13 : 0))), float4(1));
}

kernel void in_a_loop(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  int sum = 0;
  for (uint k = 0; k < (i == 13 ? 17 : 16); k++) sum += a[k];
  o[i] = sum;
}

kernel void stays_inside(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  int sum = 0;
  for (uint k = 0; k < 16; k++) sum += a[k] * (int)(k ^ i);
  o[i] = sum;
}

kernel void threadgroup_variable(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], uint i [[thread_position_in_grid]],
                                 uint t [[thread_index_in_threadgroup]]) {
  threadgroup int other[8], s[8];
  s[t] = a[i];
  other[t] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = s[i == 13 ? 8 : 7 - t] + other[7 - t];
}

kernel void threadgroup_argument(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], threadgroup int *s [[threadgroup(0)]],
                                 uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  s[i == 13 ? 8 : t] = a[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = s[7 - t];
}

kernel void reads_misaligned(device int *o [[buffer(0)]], const device uchar *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  o[i] = *(const device int *)(a + (i == 13 ? 6 : 8));
}

kernel void private_array(device int *o [[buffer(0)]], const device int *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  int p[4];
  for (int k = 0; k < 4; k++) p[k] = a[i] + k;
  o[i] = p[i == 13 ? 4 : a[i] & 3];
}

// One simdgroup. Lane 13 alone makes the invalid access, which precedes a product of matrices.
kernel void before_a_product(device float *o [[buffer(0)]], const device half *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  threadgroup half s[64];
  s[2 * i] = a[i == 13 ? 2000 : i];
  s[2 * i + 1] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_half8x8 left, right;
  simdgroup_float8x8 sum(0);
  simdgroup_load(left, s, 8);
  simdgroup_load(right, s, 8, 0, true);
  simdgroup_multiply_accumulate(sum, left, right, sum);
  simdgroup_store(sum, o, 8);
}
