// Where simdgroup_load and simdgroup_store read and write: every element type and address space, rows of any length given as
// any integer, origins (a place in memory, also of a transposed matrix), matrices in arrays, templates, structures, methods.
// Memory is 20 wide, m[y][x] = 100 * y + x (halves: 20 * y + x); two simdgroups do the same side by side.
// run: -b 0:out:float32:512 -b 1:out:float32:2144 --grid 64 --threadgroup 64
// let m = lambda y, x: 100 * y + x
// let h = lambda y, x: 20 * y + x
// let first = [lambda r, c: m(r, c), lambda r, c: m(3 + r, 5 + c), lambda r, c: m(c, r), lambda r, c: m(2 + c, 7 + r)]
// let narrow = [lambda r, c: h(1 + r, 2 + c), lambda r, c: h(4 + c, 1 + r), lambda r, c: h(1 + r, 3 + c), lambda r, c: h(2 + c, 6 + r)]
// let third = [lambda r, c: m(1 + r, 9 + c), lambda r, c: m(1 + c, 4 + r), lambda r, c: 8 * (r + 2) + c, lambda r, c: 8 * (c + 1) + r + 3, lambda r, c: m(r, c) + m(r + 8, c)]
// let tests = first + narrow + third
// let stored = lambda y, x: m(y - 2, x) if 3 <= y < 11 and 2 <= x < 10 else 0
// let moved = lambda y, x: m(x - 10, y + 1) if 1 <= y < 9 and 11 <= x < 19 else stored(y, x)
// let place = lambda e: tests[e // 64](e % 64 // 8, e % 8) if e < 832 else moved((e - 832) // 20, (e - 832) % 20)
// expect buffer 1: f(i) for i in 2144: place(i % 1072)
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

template <typename T> struct tile {
  T data[400];
  simdgroup_matrix<T, 8, 8> load(uint y, uint x, bool transposed) threadgroup const {
    simdgroup_matrix<T, 8, 8> result;
    simdgroup_load(result, data, 20, ulong2(x, y), transposed);
    return result;
  }
};
template <typename T, int N> struct accumulators {
  simdgroup_matrix<T, 8, 8> parts[N];
  void load(const device T *source, int stride) thread {
    for (int n = 0; n < N; n++) simdgroup_load(parts[n], source + 8 * n * stride, stride);
  }
};
constant float table[96] = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95};

template <typename T> void keep(thread const simdgroup_matrix<T, 8, 8> &matrix, device float *&out) {
  simdgroup_float8x8 wide;
  wide.thread_elements() = float2(matrix.thread_elements());
  simdgroup_store(wide, out);
  out += 64;
}

kernel void places(device float *memory [[buffer(0)]], device float *results [[buffer(1)]],
                   uint simdgroup [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                   uint t [[thread_index_in_threadgroup]]) {
  threadgroup tile<half> halves;
  threadgroup tile<bfloat> bfloats;
  threadgroup tile<float> floats;
  for (uint k = t; k < 400; k += 64) {
    memory[k] = 100 * (k / 20) + k % 20;
    floats.data[k] = 100 * (k / 20) + k % 20;
    halves.data[k] = half(k);
    bfloats.data[k] = bfloat(k < 256 ? k : 0);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
  device float *out = results + 1072 * simdgroup;
  const device float *source = memory;
  simdgroup_float8x8 m;
  simdgroup_load(m, source, ushort(20));
  keep(m, out);
  simdgroup_load(m, memory, 20, ulong2(5, 3));
  keep(m, out);
  simdgroup_load(m, source, 20ul, 0, true);
  keep(m, out);
  simdgroup_load(m, memory, uint(20), ulong2(7, 2), true);
  keep(m, out);
  keep(halves.load(1, 2, false), out);
  keep(halves.load(4, 1, true), out);
  keep(bfloats.load(1, 3, false), out);
  keep(bfloats.load(2, 6, true), out);
  keep(floats.load(1, 9, false), out);
  simdgroup_matrix<float, 8> turned;
  simdgroup_load(turned, &floats.data[20], short(20), ulong2(4, 0), true);
  keep(turned, out);
  simdgroup_load(m, table + 16);
  keep(m, out);
  simdgroup_load(m, table, 8, ulong2(3, 1), true);
  keep(m, out);
  // Matrices in arrays, by reference and by index.
  accumulators<float, 2> both;
  both.load(source, 20);
  thread simdgroup_float8x8 &head = both.parts[0];
  for (int n = 0; n < 2; n++) both.parts[1].thread_elements()[n] += head.thread_elements()[n];
  keep(both.parts[1], out);
  // From one place to another, plain and transposed.
  simdgroup_float8x8 moved = floats.load(1, 2, false);
  for (uint k = lane; k < 240; k += 32) out[k] = 0;
  simdgroup_barrier(mem_flags::mem_device);
  simdgroup_store(moved, out, 20, ulong2(2, 3));
  simdgroup_store(moved, out, 20, ulong2(11, 1), true);
}
