// Sizes of vectors and matrices that templates deduce may have any integral type.
// run: sizes -b 0:out:int32:4x13 -b 1=arange:int32:4 --grid 4
// let row = lambda i: (6 + i, 4, 4, 3, 3, 6 + 4 * i, 12, 3, 7, 5 + i, 9, i + 5, 4)
// expect buffer 0: f(i) for i in 52: row(i // 13)[i % 13]
#include <metal_stdlib>
using namespace metal;

template <typename T, uint N> T sum(vec<T, N> v);
template <typename T, uint N>
T sum(vec<T, N> v) {
  T all = 0;
  for (uint k = 0; k < min(N, 8u); k++) all += v[k];
  return all;
}
template <typename T, size_t N> size_t size(thread const packed_vec<T, N> &) { return N; }
template <typename T, unsigned int C, ushort R, enable_if_t<(C > 1), int> = 0>
METAL_FUNC uint last(matrix<T, C, R> m, uint more = C) {
  return uint(m[C - 1][R - 1]) + more;
}
template <typename T, int N> int size(vec<T, N>) { return N; }
template <uint32_t N> auto twice(vec<int, N> v) -> vec<int, N> {
  auto each = [&](uint k) { return k < N ? v[k] * 2 : 0; };
  vec<int, N> both;
  for (uint k = 0; k < N; k++) both[k] = each(k);
  return both;
}
template <typename T> struct Of {
  template <typename U, uint N> static T first(vec<U, N> v, T (&other)[N]) { return T(v.x) + other[N - 1]; }
};
struct Members {
  int v, count;
  template <uint N> int at(vec<int, N> v) const;
  template <uint N> Members(vec<int, N> v) : v{v[0]}, count(int{N}) {}
};
template <uint N> int Members::at(vec<int, N> other) const { return v + other[N - 1]; }
template <const uint N> uint constant_size(vec<int, N>) { return N; }
namespace own { // a program's own types keep theirs
template <typename T, uint N> struct vec { T v[N]; };
template <typename T, uint N> T last(vec<T, N> v) { return v.v[N - 1]; }
}
template <typename T, uint N> T first(own::vec<T, N> v) { return v.v[0]; }
template <typename V> struct count;
template <typename T, uint N> struct count<vec<T, N>> { static constexpr constant uint value = N; };
template <typename T, uint N> kernel void fill(device vec<T, N> *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = N; }
template [[host_name("fill3")]] kernel void fill<int, 3>(device vec<int, 3> *, uint);

kernel void sizes(device int *out [[buffer(0)]], device const int *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  device int *line = out + 13 * i;
  line[0] = sum(int3(1, 5, in[i]));
  line[1] = int(sum<half, 2>(half2(1, 3)));
  line[2] = size(packed_char4(0));
  line[3] = last(float3x2(2));
  line[4] = size(half3(1)) + 0 * last(float2x2(1), 5u);
  line[5] = sum(twice(int3(3, in[i], in[i])));
  int two[2] = {7, 9};
  line[6] = Of<int>::first(float2(3, 1), two);
  line[7] = count<uchar3>::value;
  line[8] = sum(uchar4(1, 2, 3, 1));
  Members members{int3(in[i], 8, 9)};
  line[9] = members.at<2>(int2(1, 5));
  own::vec<int, 2> pair = {{4, 5}};
  line[10] = own::last(pair) + first(pair);
  line[11] = members.v + members.count + 2;
  line[12] = constant_size(int4(0));
}
