// Kernels with Metal 4's tensors that are no templates. test_tensor.c runs them.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

// By one thread for each row of tiles.
kernel void alone(const device half *left [[buffer(0)]], const device half *right [[buffer(1)]], device float *out [[buffer(2)]],
                  constant int *size [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
  const int M = size[0], N = size[1], K = size[2];
  auto a = tensor(left, dextents<int, 2>(K, M));
  auto b = tensor(right, dextents<int, 2>(N, K));
  auto c = tensor(out, dextents<int, 2>(N, M));
  matmul2d<matmul2d_descriptor(3, 5, static_cast<int>(dynamic_extent)), execution_thread> op;
  auto rows = a.slice(0, at.y * 3), columns = b.slice(at.x * 5, 0);
  auto sums = op.get_destination_cooperative_tensor<decltype(rows), decltype(columns), float>();
  op.run(rows, columns, sums);
  sums.store(c.slice(at.x * 5, at.y * 3));
}

// Everything that depends on lanes, in a kernel that multiplies fragments: positions, shuffles, votes, scans and reductions,
// together and in branches. 24 words for each thread.
kernel void lanes(const device half *left [[buffer(0)]], const device half *right [[buffer(1)]], device float *out [[buffer(2)]],
                  device uint *words [[buffer(3)]], uint2 at [[thread_position_in_threadgroup]], uint2 in_grid [[thread_position_in_grid]],
                  uint i [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                  uint simdgroup [[simdgroup_index_in_threadgroup]], uint2 group [[threadgroup_position_in_grid]]) {
  auto a = tensor(const_cast<device half *>(left) + simdgroup * 256, dextents<int, 2>(16, 16));
  auto b = tensor(const_cast<device half *>(right), dextents<int, 2>(16, 16));
  auto c = tensor(out + (group.x * 2 + simdgroup) * 256, dextents<int, 2>(16, 16));
  matmul2d<matmul2d_descriptor(16, 16, 16), execution_simdgroup> op;
  op.run(a, b, c);
  device uint *mine = words + ((group.x * 64) + i) * 24;
  uint n = lane * 7 + 3, of_eight = n % 8;
  *mine++ = at.x, *mine++ = at.y, *mine++ = in_grid.x, *mine++ = i, *mine++ = lane;
  *mine++ = simd_shuffle(n, (ushort)((lane * 5 + 1) & 31));
  *mine++ = simd_shuffle_xor(n, 13);
  *mine++ = simd_shuffle_rotate_up(n, 3);
  *mine++ = (uint)(simd_vote::vote_t)simd_ballot(lane % 3 == 0);
  *mine++ = simd_prefix_inclusive_sum(n);
  *mine++ = simd_prefix_exclusive_sum(n);
  *mine++ = simd_max(n ^ 21);
  *mine++ = as_type<uint>(simd_sum((float)n * 0.1f));
  *mine++ = as_type<uint>(simd_prefix_inclusive_sum((float)of_eight));
  *mine++ = quad_sum(n);
  *mine++ = quad_shuffle_xor(n, 1);
  uint more[8] = {};
  if (lane % 3 == 1) {
    more[0] = simd_broadcast_first(n);
    more[1] = (uint)(simd_vote::vote_t)simd_active_threads_mask();
    more[2] = simd_prefix_inclusive_sum(n);
    more[3] = simd_is_first();
    more[4] = simd_shuffle(n, 4);
    more[5] = simd_sum(n);
    more[6] = as_type<uint>(simd_min((float)of_eight));
    more[7] = as_type<uint>(simd_product((float)(of_eight + 1)));
  }
  for (int k = 0; k < 8; k++) *mine++ = more[k];
}

// Operands in each address space: left in threadgroup memory, right in constant memory, the product in threadgroup memory;
// then, by each thread, a column of it times a matrix of the thread's own.
kernel void spaces(const device half *left [[buffer(0)]], constant half *right [[buffer(1)]], device float *out [[buffer(2)]],
                   device float *own [[buffer(3)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup half staged[16 * 24];
  threadgroup float result[16 * 32];
  for (uint e = i; e < 16 * 24; e += 32) staged[e] = left[e];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  tensor<threadgroup half, extents<int, 24, 16>, tensor_inline> a(staged, extents<int, 24, 16>{});
  tensor<constant half, dextents<int, 2>, tensor_inline> b(right, dextents<int, 2>(32, 24));
  auto c = tensor(result, extents<int, 32, 16>{});
  matmul2d<matmul2d_descriptor(16, 32, 24), execution_simdgroup> op;
  op.run(a, b, c);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint e = i; e < 16 * 32; e += 32) out[e] = result[e];
  float column[16], three[3 * 16], sums[3];
  for (int r = 0; r < 16; r++) column[r] = result[r * 32 + i];
  for (int e = 0; e < 3 * 16; e++) three[e] = (float)(e % 7 - 3);
  tensor<thread float, extents<int, 1, 16>, tensor_inline> x(column, extents<int, 1, 16>{});
  auto m = tensor(three, dextents<int, 2>(16, 3)), y = tensor(sums, dextents<int, 2>(1, 3));
  matmul2d<matmul2d_descriptor(3, 1, 16), execution_thread> small;
  small.run(m, x, y);
  for (int r = 0; r < 3; r++) own[r * 32 + i] = sums[r];
}

// Views: slices of slices, extents of 1 that repeat, elements that are not there.
kernel void views(const device int *in [[buffer(0)]], device int *out [[buffer(2)]]) {
  auto t = tensor(in, dextents<int, 3>(5, 4, 3), array<long, 3>{1, 7, 30});
  auto s = t.slice(1, 1u, (short)1).slice<2, 3, dynamic_extent>(1, 0, 0);
  static_assert(s.get_rank() == 3 && s.get_static_extent(0) == 2 && !s.has_static_extent(2));
  int i = 0;
  out[i++] = t[4, 3, 2];
  out[i++] = s[1, 2, 1];
  out[i++] = s.get_extent(2);
  out[i++] = (int)s.get_stride(1);
  out[i++] = t.get(5, 0, 0);
  out[i++] = t.slice(4, 0, 0).get(3, 1, 2);
  auto o = tensor(out + 8, extents<int, 2, 2>{});
  o.set(-5, 1, 1);
  o.set(-6, 2, 1);
  o[array<int, 2>{0, 1}] = s[array<int, 3>{0, 0, 0}];
  out[i++] = o.has_all_static_extent() && !t.has_all_static_extents();
  dextents<short, 2> d = extents<int, 3, 9>{};
  out[i++] = d.extent(1) * 10 + d.rank_dynamic();
}
