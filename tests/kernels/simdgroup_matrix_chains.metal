// One to seven sums that share left matrices, each of one to three products, written one after another or sum by sum; two simdgroups do the
// same side by side.
// run: -b 0:out:float32:2816 --grid 64 --threadgroup 64
// let a = lambda m, r, k: (r * 7 + k * 3 + m * 5) % 11 - 5
// let b = lambda m, j, k, c: (k * 5 + c * 2 + j * 3 + m) % 13 - 6
// let element = lambda n, j, r, c: j + sum(a(m, r, k) * b(m, j, k, c) for m in range(n % 3 + 1) for k in range(8))
// let sums = [(n, j) for n in (1, 2, 3, 4, 5, 7) for j in range(n)]
// let at = lambda i: element(*sums[i // 64], i % 64 // 8, i % 8)
// expect buffer 0: f(i) for i in 2816: at(i % 1408)
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

template <int N> void chains(threadgroup const float *a, threadgroup const half *b, device float *&out) {
  constexpr int length = N % 3 + 1;
  simdgroup_float8x8 sums[N];
  simdgroup_float8x8 left[length];
  simdgroup_half8x8 right[length][N];
  for (int j = 0; j < N; j++) sums[j] = make_filled_simdgroup_matrix<float, 8, 8>(float(j));
  for (int m = 0; m < length; m++) {
    simdgroup_load(left[m], a + 64 * m, 8);
    for (int j = 0; j < N; j++) simdgroup_load(right[m][j], b + 64 * (9 * m + j), 8);
  }
  if (N % 2) {
    for (int m = 0; m < length; m++)
      for (int j = 0; j < N; j++) simdgroup_multiply_accumulate(sums[j], left[m], right[m][j], sums[j]);
  } else {
    for (int j = 0; j < N; j++)
      for (int m = 0; m < length; m++) simdgroup_multiply_accumulate(sums[j], left[m], right[m][j], sums[j]);
  }
  for (int j = 0; j < N; j++) simdgroup_store(sums[j], out + 64 * j, 8);
  out += 64 * N;
}

kernel void products(device float *out [[buffer(0)]], uint t [[thread_index_in_threadgroup]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float a[3 * 64];
  threadgroup half b[27 * 64];
  for (uint i = t; i < 192; i += 64) a[i] = float(int((i % 64 / 8 * 7 + i % 8 * 3 + i / 64 * 5) % 11) - 5);
  for (uint i = t; i < 1728; i += 64) {
    const uint m = i / 576, j = i / 64 % 9, k = i % 64 / 8, c = i % 8;
    b[i] = half(int((k * 5 + c * 2 + j * 3 + m) % 13) - 6);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  device float *mine = out + 1408 * simdgroup;
  chains<1>(a, b, mine);
  chains<2>(a, b, mine);
  chains<3>(a, b, mine);
  chains<4>(a, b, mine);
  chains<5>(a, b, mine);
  chains<7>(a, b, mine);
}
