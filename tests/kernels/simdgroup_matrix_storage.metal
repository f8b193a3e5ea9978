// Matrices that a kernel makes itself of what lies below simdgroup_matrix: 64 elements in a vector of which a lane sees two.
// run: -b 0:out:float32:256 --grid 32 --threadgroup 32
// let a = lambda r, c: (r * 5 + c * 3) % 7 - 3
// let b = lambda r, c: (r * 2 + c * 9) % 5 - 1
// let product = lambda r, c: sum(a(r, k) * b(k, c) for k in range(8))
// expect buffer 0: f(i) for i in 256: product(i % 64 // 8, i % 8) * (1 + (i // 64 % 2)) + (1 if i >= 128 else 0)
#include <metal_stdlib>
using namespace metal;
#if defined(__HAVE_SIMDGROUP_MATRIX__)
#pragma METAL internals : enable
namespace metal {
template <typename T> struct own_matrix {
  typedef vec<T, 64> storage_type;
  storage_type all;
  METAL_FUNC thread vec<T, 2> *elements() thread { return reinterpret_cast<thread vec<T, 2> *>(&all); }
  METAL_FUNC own_matrix() thread = default;
  METAL_FUNC own_matrix(vec<T, 2> mine) thread { *(this->elements()) = mine; }
  template <typename U, typename V> METAL_FUNC void multiply(own_matrix<U> x, own_matrix<V> y, bool accumulate) {
    if (!accumulate) *(elements()) = vec<T, 2>(0);
    all = __metal_simdgroup_matrix_8x8_multiply_accumulate(x.all, y.all, all, typename own_matrix<T>::storage_type());
  }
};
}
#pragma METAL internals : disable
#endif

template <typename T> vec<T, 2> entries(ushort2 at, int y, int x, int modulus, int less) {
  return vec<T, 2>(T((at.y * y + at.x * x) % modulus - less), T((at.y * y + (at.x + 1) * x) % modulus - less));
}

kernel void products(device float *out [[buffer(0)]], ushort lane [[thread_index_in_simdgroup]]) {
  ushort quad = lane / 4;
  ushort2 at((quad & 2) * 2 + lane % 2 * 2, quad / 4 * 4 + lane / 2 % 4);
  own_matrix<float> sram[2];
  own_matrix<half> left(entries<half>(at, 5, 3, 7, 3));
  own_matrix<bfloat> right(entries<bfloat>(at, 2, 9, 5, 1));
  sram[0].multiply(left, right, false);
  sram[1] = sram[0];
  sram[1].multiply(left, right, true);
  for (int m = 0; m < 4; m++) {
    own_matrix<float> sum = sram[m % 2];
    if (m >= 2) sum.elements()[0] += 1.0f;
    *(device float2 *)(out + 64 * m + at.y * 8 + at.x) = *sum.elements();
  }
}
