// vec<T, 1> and packed_vec<T, 1>, which templates on the number of components use.
// run: checks -b 0=arange:float32:9 -b 1:out:float32:9x10 -b 2=arange:float16:9 -b 3=arange:float32:9 --grid 9
// let row = lambda i: (6 * i + 2, 14 - i, 2 * i + 1, i, 2 * i + 1, 2, i * 3, i < 2 * i + 1, 2 * i * i + i, (i > 3) + 2 * (i > 3))
// expect buffer 1: f(i) for i in 90: row(i // 10)[i % 10]
#include <metal_stdlib>
using namespace metal;
static_assert(sizeof(vec<half, 1>) == 2 && alignof(vec<float, 1>) == 4 && sizeof(packed_vec<char, 1>) == 1, "layout");

template <typename T, int N> vec<T, N> load(device const T *from, uint i) { return *(device const vec<T, N> *)(from + i * N); }
template <typename T, int N> T sum(vec<T, N> v) {
  T s = 0;
  for (int k = 0; k < N; k++) s += v[k];
  return s;
}

kernel void checks(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], device const vec<half, 1> *halves [[buffer(2)]],
                   device packed_vec<float, 1> *packed [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  vec<float, 1> a = load<float, 1>(in, i), b = a * 2 + vec<float, 1>(1), c(3), d = {4};
  vec<int, 1> n = vec<int, 1>(b);
  n <<= 1;
  n -= 1;
  c += 3;
  c.x += 1;
  d[0] *= 2;
  d = -(d - 1);
  c -= d + a;
  packed_vec<float, 1> p = packed[i] + a;
  p += 1;
  packed[i] = p;
  device float *line = out + 10 * i;
  line[0] = n.x + 2 * sum(a) + 1;
  line[1] = c.xxxx.w;
  line[2] = packed[i].rr.y;
  line[3] = halves[i].x;
  line[4] = max(a, b).x;
  line[5] = exp(vec<float, 1>(0)).x + sum(load<float, 2>(in, 0).yx);
  line[6] = fma(a, vec<float, 1>(2), a).x;
  line[7] = (a < b).x;
  line[8] = dot(a, b) - distance(a, a) + length(a) - length(a);
  line[9] = any(a > 3) + 2 * all(a > 3);
}
