// 8×8 matrices over a simdgroup: the layout of elements, loads and stores with strides, origins and transposition, products
// of every mixture of types. Matrix A is 24×20 in device memory with a[r][c] = (r * 7 + c * 3) % 11 - 5, B the same transposed.
// run: -b 0=arange:float32:480 -b 1:out:float32:480 -b 2:out:float32:64 -b 3:out:float32:1728 -b 4:out:float32:160 -b 5:out:float32:384 --grid 32 --threadgroup 32
// let a = lambda r, c: (r * 7 + c * 3) % 11 - 5
// let row = lambda lane: (lane // 4 & 4) + lane // 2 % 4
// let column = lambda lane: (lane // 4 & 2) * 2 + lane % 2 * 2
// let product = lambda r, c: sum(a(r, k) * a(c + 8, k + 3) for k in range(8))
// expect buffer 1: f(i) for i in 480: a(i // 20, i % 20) if 5 <= i // 20 < 13 and 9 <= i % 20 < 17 else -1
// expect buffer 2: f(i) for i in 64: row(i // 2) * 8 + column(i // 2) + i % 2
// expect buffer 3: f(i) for i in 1728: product(i % 64 // 8, i % 8) + (i // 64 % 3 == 1) * ((i % 64 // 8 == i % 8) * 3) + (i // 64 % 3 == 2) * 2
// expect buffer 4: f(i) for i in 160: a(i % 20, i // 20) if 5 <= i % 20 < 13 else -2
// expect buffer 5: f(i) for i in 384: (2.5, 3 * (i % 64 // 8 == i % 8), product(i % 64 // 8, i % 8), -2 * (i % 64 // 8 == i % 8), a(i % 64 // 8 + 2, i % 8 + 1), a(i % 8 + 2, i % 64 // 8 + 1))[i // 64]
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

template <typename D, typename A, typename B> struct products {
  // D = A B, then + C with a diagonal and a filled C.
  static void run(threadgroup A *left, threadgroup B *right, threadgroup D *staging, device float *out, thread uint &number, uint lane) {
    simdgroup_matrix<A, 8, 8> a;
    simdgroup_matrix<B, 8, 8> b;
    simdgroup_matrix<D, 8, 8> d, e, f;
    simdgroup_load(a, left, 20);
    simdgroup_load(b, right, 20, ulong2(3, 8), true);
    simdgroup_multiply(d, a, b);
    simdgroup_multiply_accumulate(e, a, b, simdgroup_matrix<D, 8, 8>(D(3)));
    simdgroup_multiply_accumulate(f, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(2)));
    simdgroup_store(d, staging);
    simdgroup_store(e, staging + 64, 8);
    simdgroup_store(f, staging + 128, 8);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = lane; k < 192; k += 32) out[number * 192 + k] = float(staging[k]);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    number++;
  }
};

kernel void matrices(device const float *index [[buffer(0)]], device float *copy [[buffer(1)]],
                     device float *layout [[buffer(2)]], device float *out [[buffer(3)]],
                     device float *turned [[buffer(4)]], device float *made [[buffer(5)]],
                     uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float in_float[480];
  threadgroup half in_half[480];
  threadgroup bfloat in_bfloat[480];
  threadgroup ulong staging[96];
  for (uint k = lane; k < 480; k += 32) {
    int r = int(index[k]) / 20, c = int(index[k]) % 20, v = (r * 7 + c * 3) % 11 - 5;
    in_float[k] = v;
    in_half[k] = half(v);
    in_bfloat[k] = bfloat(v);
    copy[k] = -1;
    if (k < 160) turned[k] = -2;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  // From one place to the same place; to its mirror image.
  simdgroup_float8x8 m;
  simdgroup_load(m, in_float, 20, ulong2(9, 5));
  simdgroup_store(m, copy, 20, ulong2(9, 5));
  simdgroup_half8x8 h;
  simdgroup_load(h, in_half, 20, ulong2(0, 5));
  simdgroup_float8x8 w;
  w.thread_elements() = float2(h.thread_elements());
  simdgroup_store(w, turned, 20, ulong2(5, 0), true);
  // The lane writes the elements of its position.
  thread float2 &mine = m.thread_elements();
  uint quad = lane / 4, row = (quad & 4) + lane / 2 % 4, column = (quad & 2) * 2 + lane % 2 * 2;
  mine[0] = row * 8 + column;
  reinterpret_cast<thread vec<float, 2> &>(m.thread_elements())[1] = row * 8 + column + 1;
  layout[2 * lane] = m.thread_elements().x;
  layout[2 * lane + 1] = m.thread_elements()[1];
  simdgroup_bfloat8x8 filled = make_filled_simdgroup_matrix<bfloat, 8, 8>(2.5bf);
  simdgroup_half8x8 diagonal = make_diagonal_simdgroup_matrix<half, 8, 8>(3);
  simdgroup_float8x8 left, right, minus(-2), part, back;
  simdgroup_load(left, in_float, 20);
  simdgroup_load(right, in_float + 8 * 20 + 3, 20, 0, true);
  simdgroup_load(part, in_float, 20, ulong2(1, 2));
  simdgroup_load(back, in_float, 20, ulong2(1, 2), true);
  simdgroup_float8x8 wide;
  wide.thread_elements() = float2(filled.thread_elements());
  simdgroup_store(wide, made, 8);
  wide.thread_elements() = float2(diagonal.thread_elements());
  simdgroup_store(wide, made + 64, 8);
  simdgroup_store(left * right, made + 128, 8);
  simdgroup_store(minus, made + 192, 8);
  simdgroup_store(part, made + 256);
  simdgroup_store(back, made + 320);
  uint n = 0;
  threadgroup float *f = (threadgroup float *)staging;
  threadgroup half *g = (threadgroup half *)staging;
  threadgroup bfloat *b = (threadgroup bfloat *)staging;
  products<float, float, float>::run(in_float, in_float, f, out, n, lane);
  products<half, half, half>::run(in_half, in_half, g, out, n, lane);
  products<bfloat, bfloat, bfloat>::run(in_bfloat, in_bfloat, b, out, n, lane);
  products<float, half, half>::run(in_half, in_half, f, out, n, lane);
  products<float, bfloat, bfloat>::run(in_bfloat, in_bfloat, f, out, n, lane);
  products<float, half, float>::run(in_half, in_float, f, out, n, lane);
  products<float, float, bfloat>::run(in_float, in_bfloat, f, out, n, lane);
  products<half, half, float>::run(in_half, in_float, g, out, n, lane);
  products<bfloat, half, bfloat>::run(in_half, in_bfloat, b, out, n, lane);
}
