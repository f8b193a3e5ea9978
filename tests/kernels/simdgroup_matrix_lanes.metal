// Products of 8×8 matrices where lanes are missing: their elements count as 0, in partial simdgroups and on one side of a branch; and the sums of
// several products that share a matrix, in several simdgroups of a group.
// for group: 32 20 64 96 7
// finding: SM015: products of a part of the lanes
// run: -b 0:out:float32:192x4 --grid 192 --threadgroup {group}
// let size = lambda i: group if i < 192 // group * group else 192 % group
// let inside = lambda i: i % group if i < 192 // group * group else (i - 192 // group * group)
// let lanes = lambda i: min(32, size(i) - inside(i) // 32 * 32)
// let at = lambda r, c: (r & 4) * 4 + (r & 3) * 2 + (c & 4) * 2 + c // 2 % 2
// let a = lambda n, on, r, c: (at(r, c) % 5 - 2 + (c % 2) * 3) * (at(r, c) < n and (on == 0 or at(r, c) % 3 != 0))
// let b = lambda n, on, r, c: (at(r, c) % 7 - 3 - (c % 2)) * (at(r, c) < n and (on == 0 or at(r, c) % 3 != 0))
// let row = lambda l: (l // 4 & 4) + l // 2 % 4
// let column = lambda l: (l // 4 & 2) * 2 + l % 2 * 2
// let product = lambda n, on, r, c: sum(a(n, on, r, k) * b(n, on, k, c) for k in range(8))
// let element = lambda i, e, on: product(lanes(i), on, row(inside(i) % 32), column(inside(i) % 32) + e)
// let square = lambda n, r, c: sum(a(n, 0, r, k) * a(n, 0, k, c) for k in range(8))
// let whole = lambda i, e: element(i, e, 0) + square(lanes(i), row(inside(i) % 32), column(inside(i) % 32) + e) + 1
// expect buffer 0: f(i) for i in 768: whole(i // 4, i % 4) if i % 4 < 2 else element(i // 4, i % 4 - 2, 1) if inside(i // 4) % 32 % 3 else -1
#include <metal_stdlib>
using namespace metal;

kernel void lanes(device float *out [[buffer(0)]], uint index [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 a, b, sum = make_filled_simdgroup_matrix<float, 8, 8>(1.0f);
  a.thread_elements()[0] = float(int(lane % 5) - 2);
  a.thread_elements()[1] = float(int(lane % 5) + 1);
  b.thread_elements()[0] = float(int(lane % 7) - 3);
  b.thread_elements()[1] = float(int(lane % 7) - 4);
  simdgroup_multiply_accumulate(sum, a, b, sum);
  simdgroup_multiply_accumulate(sum, a, a, sum);
  out[index * 4] = sum.thread_elements()[0];
  out[index * 4 + 1] = sum.thread_elements()[1];
  simdgroup_float8x8 some;
  some.thread_elements()[0] = -1;
  some.thread_elements()[1] = -1;
  if (lane % 3 != 0) simdgroup_multiply(some, a, b);
  out[index * 4 + 2] = some.thread_elements()[0];
  out[index * 4 + 3] = some.thread_elements()[1];
}
