// Undefined values in products of matrices and tensors: an element of the result depends on a row of the left operand, a
// column of the right one, and what it is added to; see bounds.metal.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

// ---- matmul2d.

// run: -b 0=ones:float32:16x16 -b 1:out:float32:16x16 --grid 32 --threadgroup 32
kernel void a_row_in_memory(device float *a [[buffer(0)]], device float *o [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[256];
  for (uint i = t; i < 240; i += 32) s[i] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  auto left = tensor((threadgroup float *)s, extents<int, 16, 16>());
  auto right = tensor(a, extents<int, 16, 16>());
  auto result = tensor(o, extents<int, 16, 16>());
  matmul2d<matmul2d_descriptor(16, 16, 16), execution_simdgroup> op;
  op.run(left, right, result); // SM005
}

// run: -b 0=ones:float32:16x16 -b 1:out:float32:16x16 --grid 32 --threadgroup 32
kernel void a_column_in_memory(device float *a [[buffer(0)]], device float *o [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[256];
  for (uint i = t; i < 256; i += 32)
    if (i % 16 != 5) s[i] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  auto left = tensor(a, extents<int, 16, 16>());
  auto right = tensor((threadgroup float *)s, extents<int, 16, 16>());
  auto result = tensor(o, extents<int, 16, 16>());
  matmul2d<matmul2d_descriptor(16, 16, 16), execution_simdgroup> op;
  op.run(left, right, result); // SM005
}

// run: -b 0=ones:float32:16x16 -b 1:out:float32:16x16 --grid 32 --threadgroup 32
kernel void rows_and_terms_that_are_cut_off(device float *a [[buffer(0)]], device float *o [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[256];
  for (uint i = t; i < 256; i += 32)
    if (i < 160 && i % 16 < 12) s[i] = 1;
  for (uint i = t; i < 96; i += 32) o[160 + i] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  auto left = tensor((threadgroup float *)s, dextents<int, 2>(12, 10), array<int, 2>{1, 16});
  auto right = tensor(a, dextents<int, 2>(16, 12));
  auto result = tensor(o, dextents<int, 2>(16, 10));
  matmul2d<matmul2d_descriptor(16, 16, dynamic_extent), execution_simdgroup> op;
  op.run(left, right, result);
}

// run: -b 0=ones:float32:16x16 -b 1:out:float32:16x16 --grid 32 --threadgroup 32
kernel void the_sum_before(device float *a [[buffer(0)]], device float *o [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[256];
  if (t > 0) s[t] = 0;
  for (uint i = t + 32; i < 256; i += 32) s[i] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  auto left = tensor(a, extents<int, 16, 16>());
  auto right = tensor(a, extents<int, 16, 16>());
  auto result = tensor((threadgroup float *)s, extents<int, 16, 16>());
  constexpr auto mode = matmul2d_descriptor::mode::multiply_accumulate;
  matmul2d<matmul2d_descriptor(16, 16, 16, false, false, false, mode), execution_simdgroup> op;
  op.run(left, right, result);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = t; i < 256; i += 32) o[i] = s[i]; // SM005
}

// run: -b 0=ones:float32:16x16 -b 1:out:float32:16x16 --grid 32 --threadgroup 32
kernel void no_sum_before(device float *a [[buffer(0)]], device float *o [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[256];
  auto left = tensor(a, extents<int, 16, 16>());
  auto right = tensor(a, extents<int, 16, 16>());
  auto result = tensor((threadgroup float *)s, extents<int, 16, 16>());
  matmul2d<matmul2d_descriptor(16, 16, 16), execution_simdgroup> op;
  op.run(left, right, result);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = t; i < 256; i += 32) o[i] = s[i];
}

// ---- Cooperative tensors.

// The column 15 of the right operand is read behind the end of `scale`.
template <int M, class Scope>
static void scaled(device float *a, device float *scale, device float *o, int columns) {
  constexpr matmul2d_descriptor form(M, 16, 16);
  matmul2d<form, Scope> op;
  auto x = op.template get_left_input_cooperative_tensor<float, float, float>();
  auto y = op.template get_right_input_cooperative_tensor<float, float, float>();
  auto z = op.template get_destination_cooperative_tensor<decltype(x), decltype(y), float>();
  for (ushort i = 0; i < x.get_capacity(); i++)
    if (x.is_valid_element(i)) x[i] = a[0];
  for (ushort i = 0; i < y.get_capacity(); i++)
    if (y.is_valid_element(i)) y[i] = scale[y.get_multidimensional_index(i)[0]]; // SM001 scale[15]
  op.run(x, y, z);
  for (ushort i = 0; i < z.get_capacity(); i++) {
    auto at = z.get_multidimensional_index(i);
    if (z.is_valid_element(i) && at[0] < columns) o[at[1] * 16 + at[0]] = z[i];
  }
}
// run: -b 0=ones:float32:16 -b 1=ones:float32:15 -b 2:out:float32:16x16 --grid 32 --threadgroup 32
kernel void read_out_of_bounds(device float *a [[buffer(0)]], device float *scale [[buffer(1)]], device float *o [[buffer(2)]]) {
  scaled<16, execution_simdgroup>(a, scale, o, 16);
}

// run: -b 0=ones:float32:16 -b 1=ones:float32:15 -b 2=zeros:float32:16x16 --grid 32 --threadgroup 32
kernel void read_and_thrown_away(device float *a [[buffer(0)]], device float *scale [[buffer(1)]], device float *o [[buffer(2)]]) {
  scaled<16, execution_simdgroup>(a, scale, o, 15);
}

// run: -b 0=ones:float32:16x16 -b 1:out:float32:16x16 --grid 32 --threadgroup 32
kernel void a_sum_that_begins_unset(device float *a [[buffer(0)]], device float *o [[buffer(1)]]) {
  constexpr auto mode = matmul2d_descriptor::mode::multiply_accumulate;
  matmul2d<matmul2d_descriptor(16, 16, 16, false, false, false, mode), execution_simdgroup> op;
  auto left = tensor(a, extents<int, 16, 16>());
  auto right = tensor(a, extents<int, 16, 16>());
  auto sums = op.get_destination_cooperative_tensor<decltype(left), decltype(right), float>();
  float start;
  if (a[0] == 2) start = 0;
  sums[0] = start;
  op.run(left, right, sums);
  for (ushort i = 0; i < sums.get_capacity(); i++) {
    auto at = sums.get_multidimensional_index(i);
    o[at[1] * 16 + at[0]] = sums[i]; // SM005 start
  }
}

// Left rows that the left matrix lacks: two simdgroups, of which the second has none.
// run: -b 0=ones:float32:10x16 -b 1=ones:float32:16x16 -b 2:out:float32:10x16 --grid 64 --threadgroup 64
kernel void a_simdgroup_without_rows(device float *a [[buffer(0)]], device float *b [[buffer(1)]], device float *o [[buffer(2)]]) {
  matmul2d<matmul2d_descriptor(32, 16, 16), execution_simdgroups<2>> op;
  auto left = tensor(a, dextents<int, 2>(16, 10));
  auto right = tensor(b, dextents<int, 2>(16, 16));
  auto sums = op.get_destination_cooperative_tensor<decltype(left), decltype(right), float>();
  op.run(left, right, sums);
  for (ushort i = 0; i < sums.get_capacity(); i++) {
    auto at = sums.get_multidimensional_index(i);
    if (at[1] < 10) o[at[1] * 16 + at[0]] = sums[i];
  }
}

// run: -b 0=ones:float32:16x16 -b 1=ones:float32:16x10 -b 2:out:float32:16x10 --grid 64 --threadgroup 64
kernel void a_simdgroup_without_columns(device float *a [[buffer(0)]], device float *b [[buffer(1)]], device float *o [[buffer(2)]]) {
  matmul2d<matmul2d_descriptor(16, 32, 16), execution_simdgroups<2>> op;
  auto left = tensor(a, dextents<int, 2>(16, 16));
  auto right = tensor(b, dextents<int, 2>(10, 16));
  auto sums = op.get_destination_cooperative_tensor<decltype(left), decltype(right), float>();
  op.run(left, right, sums);
  for (ushort i = 0; i < sums.get_capacity(); i++) {
    auto at = sums.get_multidimensional_index(i);
    if (at[0] < 10) o[at[1] * 10 + at[0]] = sums[i];
  }
}

// ---- Matrices of simdgroups. Row 7 of the left one is not set.

static simdgroup_float8x8 product(device const float *a, threadgroup float *s, uint lane) {
  simdgroup_float8x8 x, y, z = make_filled_simdgroup_matrix<float, 8>(0);
  for (uint i = lane; i < 56; i += 32) s[i] = 1;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_load(x, s, 8);
  simdgroup_load(y, a, 8);
  simdgroup_multiply_accumulate(z, x, y, z);
  return z;
}
// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void a_row_of_a_matrix(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float s[64];
  auto z = product(a, s, lane);
  o[2 * lane] = z.thread_elements()[0]; // SM005 s
  o[2 * lane + 1] = z.thread_elements()[1]; // SM005 s
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void other_rows_of_a_matrix(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float s[64];
  auto z = product(a, s, lane);
  bool last = (lane >> 2 & 4 | lane >> 1 & 3) == 7;
  o[2 * lane] = last ? 0 : z.thread_elements()[0];
  o[2 * lane + 1] = last ? 0 : z.thread_elements()[1];
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void matrices_without_a_sum(device const float *a [[buffer(0)]], device float *o [[buffer(1)]]) {
  simdgroup_float8x8 x, z;
  simdgroup_load(x, a, 8);
  simdgroup_multiply_accumulate(z, x, x, z);
  simdgroup_store(z, o, 8); // SM005 z
}

// run: -b 0=ones:float32:60 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void a_matrix_out_of_bounds(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 x, y = make_filled_simdgroup_matrix<float, 8>(1), z;
  simdgroup_load(x, a, 8);
  simdgroup_multiply(z, x, y);
  // The elements of the row 7 are thrown away.
  bool last = (lane >> 2 & 4 | lane >> 1 & 3) == 7;
  o[2 * lane] = last ? 0 : z.thread_elements()[0];
  o[2 * lane + 1] = last ? 0 : z.thread_elements()[1];
}
