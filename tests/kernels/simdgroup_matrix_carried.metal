// Sums that loops carry: swapped, copied before they go on, read in every round, begun twice, and 5 x 3 of them in a loop in a loop.
// run: -b 0:out:float32:1664 --bytes 1=uint32:5 --grid 64 --threadgroup 64
// let m = lambda k: sum((k // 8 * 7 + t * 3) % 11 * ((t * 5 + k % 8 * 2) % 13 - 6) for t in range(8))
// let parts = [lambda e: 2 + 2 * m(e), lambda e: 1 + 3 * m(e), lambda e: 5 * m(e), lambda e: 10 * m(e), lambda e: 15 * m(e), lambda e: 8 + 5 * m(e)]
// let rounds = [lambda e, r=r: r * m(e) for r in range(5)]
// let tiles = [lambda e, j=j: j + 10 * m(e) for j in range(15)]
// let all = parts + rounds + tiles
// expect buffer 0: f(i) for i in 1664: all[i // 64](i % 64)
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

typedef simdgroup_float8x8 matrix8;

matrix8 filled(float value) { return make_filled_simdgroup_matrix<float, 8, 8>(value); }

void add(thread matrix8 &sum, threadgroup const float *a, threadgroup const float *b) {
  matrix8 left, right;
  simdgroup_load(left, a, 8);
  simdgroup_load(right, b, 8);
  simdgroup_multiply_accumulate(sum, left, right, sum);
}

kernel void carried(device float *out [[buffer(0)]], constant uint &n [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float a[64], b[64];
  a[t] = float((t / 8 * 7 + t % 8 * 3) % 11);
  b[t] = float(int((t / 8 * 5 + t % 8 * 2) % 13) - 6);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  matrix8 x = filled(1), y = filled(2);
  for (uint i = 0; i < n; i++) {
    add(x, a, b);
    const matrix8 z = x;
    x = y;
    y = z;
  }
  simdgroup_store(x, out, 8);
  simdgroup_store(y, out + 64, 8);
  matrix8 s = filled(0);
  for (uint i = 0; i < n; i++) add(s, a, b);
  const matrix8 copy = s;
  for (uint i = 0; i < n; i++) add(s, a, b);
  const matrix8 more = s;
  for (uint i = 0; i < n; i++) add(s, a, b);
  simdgroup_store(copy, out + 128, 8);
  simdgroup_store(more, out + 192, 8);
  simdgroup_store(s, out + 256, 8);
  matrix8 twice = filled(9);
  if (n > 7)
    for (uint i = 0; i < n; i++) add(twice, a, b);
  else {
    twice = filled(8);
    for (uint i = 0; i < n; i++) add(twice, a, b);
  }
  simdgroup_store(twice, out + 320, 8);
  out += 384;
  matrix8 seen = filled(0);
  for (uint i = 0; i < n; i++) {
    simdgroup_store(seen, out + 64 * i, 8);
    add(seen, a, b);
  }
  out += 64 * 5;
  matrix8 sums[15];
  for (uint j = 0; j < 15; j++) sums[j] = filled(float(j));
  for (uint k = 0; k < n; k++) {
    for (uint i = 0; i < 2; i++) {
      matrix8 left[5], right[3];
      for (uint j = 0; j < 5; j++) simdgroup_load(left[j], a + (n - 5) * i, 8);
      for (uint j = 0; j < 3; j++) simdgroup_load(right[j], b + (n - 5) * j, 8);
      for (uint j = 0; j < 15; j++) simdgroup_multiply_accumulate(sums[j], left[j / 3], right[j % 3], sums[j]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint j = 0; j < 15; j++) simdgroup_store(sums[j], out + 64 * j, 8);
}
