// vec<T, N>: constructors, swizzles, operators, memory. Each check adds one bit-free entry to a list of passes: a 0 names
// the check that failed by its place. The same template runs for every component type.
// run: checks -b 0:out:uint32:704 -b 1=arange:float32:64 -b 2:out:float32:64 --bytes 3=int32:3,2 --grid 1
// expect buffer 0: f(i) for i in 704: 1 if i % 64 < (51 if i // 64 < 8 else 43) else 9
// expect-prefix buffer 2: 2 1 7 4 6 11 14 20
#include <metal_stdlib>
using namespace metal;

template <typename T> T value(int i) { return T(i); }

template <typename T> device uint *common(device uint *o, constant int *index) {
  using T2 = vec<T, 2>;
  using T3 = vec<T, 3>;
  using T4 = metal::vec<T, 4>;
  int two = index[1];
  // 0: sizes.
  *o++ = sizeof(T2) == 2 * sizeof(T) && sizeof(T3) == 4 * sizeof(T) && sizeof(T4) == 4 * sizeof(T);
  *o++ = alignof(T2) == 2 * sizeof(T) && alignof(T3) == 4 * sizeof(T) && alignof(T4) == 4 * sizeof(T);
  // 2: constructors.
  T4 a(1, 2, 3, 4);
  T2 p(5, 6);
  T3 q = {7, 8, 9};
  T4 s = T4(3), z = 0, e = {};
  *o++ = a.x == T(1) && a.y == T(2) && a.z == T(3) && a.w == T(4);
  *o++ = all(s == T4(3, 3, 3, 3)) && all(z == e) && all(T2(4) == T2(4, 4)) && all(T3(2) == T3(2, 2, 2));
  *o++ = all(T4(p, p) == T4(5, 6, 5, 6)) && all(T4(p, 1, 2) == T4(5, 6, 1, 2));
  *o++ = all(T4(1, p, 2) == T4(1, 5, 6, 2)) && all(T4(1, 2, p) == T4(1, 2, 5, 6));
  *o++ = all(T4(q, 1) == T4(7, 8, 9, 1)) && all(T4(1, q) == T4(1, 7, 8, 9));
  *o++ = all(T3(p, 1) == T3(5, 6, 1)) && all(T3(1, p) == T3(1, 5, 6));
  *o++ = all(T4(int4(1, 2, 3, 4)) == a) && all(T4(half4(1, 2, 3, 4)) == a) && all(T4(bfloat4(1, 2, 3, 4)) == a);
  *o++ = all(T2(float2(5, 6)) == p) && all(T3(uchar3(7, 8, 9)) == q) && all(T4(a) == a) && all((T4)long4(1, 2, 3, 4) == a);
  // 10: swizzles, read.
  *o++ = all(a.xy == T2(1, 2)) && all(a.wzyx == T4(4, 3, 2, 1)) && all(a.xxx == T3(1)) && all(a.zw == T2(3, 4));
  *o++ = all(a.rg == a.xy) && all(a.bgr == a.zyx) && all(a.aaaa == T4(4)) && a.r == a.x && a.g == a.y && a.b == a.z && a.a == a.w;
  *o++ = all(p.yx == T2(6, 5)) && all(p.xyxy == T4(5, 6, 5, 6)) && all(q.zyx == T3(9, 8, 7)) && all(q.xxyy == T4(7, 7, 8, 8));
  *o++ = all(a.xyz.zy.yx == T2(2, 3)) && p.g == T(6) && q.b == T(9);
  // 14: swizzles, written.
  T4 v = a;
  v.xy = p;
  *o++ = all(v == T4(5, 6, 3, 4));
  v.zyx = q;
  *o++ = all(v == T4(9, 8, 7, 4));
  v.wx = v.xw;
  *o++ = all(v == T4(4, 8, 7, 9));
  v.xy += T2(1, 2);
  *o++ = all(v == T4(5, 10, 7, 9));
  v.zw *= 2;
  *o++ = all(v == T4(5, 10, 14, 18));
  v.rgb = T3(1, 2, 3);
  v.a = 4;
  *o++ = all(v == a);
  v.r += 1;
  v.y -= 1;
  *o++ = all(v == T4(2, 1, 3, 4));
  v.wzyx = v;
  *o++ = all(v == T4(4, 3, 1, 2));
  v.xyzw = a.xxyy;
  *o++ = all(v == T4(1, 1, 2, 2));
  v.x++;
  --v.g;
  *o++ = v.x == T(2) && v.y == T(0);
  q.xy = q.yx;
  *o++ = all(q == T3(8, 7, 9));
  // 25: indexes.
  v = a;
  *o++ = v[0] == T(1) && v[3] == T(4) && v[two] == T(3) && a.wzyx[two] == T(2);
  v[two] = 9;
  v[uint(two - 1)] += 5;
  *o++ = all(v == T4(1, 7, 9, 4));
  T sum = 0;
  for (int i = 0; i < 4; i++) sum += a[i];
  *o++ = sum == T(10);
  // 28: operators.
  *o++ = all(a + a == T4(2, 4, 6, 8)) && all(a + 1 == T4(2, 3, 4, 5)) && all(T(1) + a == T4(2, 3, 4, 5));
  *o++ = all(T4(9) - a == T4(8, 7, 6, 5)) && all(9 - a == T4(8, 7, 6, 5)) && all(a - T(1) == T4(0, 1, 2, 3));
  *o++ = all(a * a == T4(1, 4, 9, 16)) && all(a * 2 == T4(2, 4, 6, 8)) && all(2 * a == a * T(2));
  *o++ = all(T4(12) / a == T4(12, 6, 4, 3)) && all(12 / a == T4(12, 6, 4, 3)) && all(T4(2, 4, 6, 8) / 2 == a);
  v = a;
  v += a;
  v += 1;
  v -= a;
  v -= T(1);
  v *= 6;
  v *= a;
  v /= T4(6);
  v /= a;
  *o++ = all(v == a);
  *o++ = all(+a == a) && all(a++ == T4(1, 2, 3, 4)) && all(a == T4(2, 3, 4, 5)) && all(--a == T4(1, 2, 3, 4));
  *o++ = all(++a == T4(2, 3, 4, 5)) && all(a-- == T4(2, 3, 4, 5)) && all(a == T4(1, 2, 3, 4));
  T4 b = a.wzyx;
  *o++ = all((a < b) == bool4(true, true, false, false)) && all((a > b) == bool4(false, false, true, true));
  *o++ = all((a <= 2) == bool4(true, true, false, false)) && all((2 >= a) == bool4(true, true, false, false));
  *o++ = all((a == T(2)) == bool4(false, true, false, false)) && all((a != b) == bool4(true)) && any(a == 4) && !any(a == 5);
  *o++ = all((a && T4(1, 0, 1, 0)) == bool4(1, 0, 1, 0)) && all((T4(1, 0, 1, 0) || T4(0, 0, 0, 1)) == bool4(1, 0, 1, 1));
  *o++ = all(!T4(1, 0, 2, 0) == bool4(false, true, false, true)) && all(!(a < 0));
  // 40: ternaries, constants.
  *o++ = all((two == 2 ? a : b) == a) && all((two == 3 ? a : T4(0)) == T4(0)) && all((two == 2 ? a : T(0)) == a);
  constexpr T4 c = T4(1, 2, 3, 4) + T4(1);
  static_assert(c.z == T(4) && c[1] == T(3) && c.wx.y == T(2), "usable in constant expressions");
  *o++ = all(c == T4(2, 3, 4, 5));
  struct Pair {
    T2 first;
    T3 second[2];
  } pair = {T2(1, 2), {T3(3), T3(4)}};
  pair.second[1].yz = pair.first;
  *o++ = all(pair.second[1] == T3(4, 1, 2)) && all(pair.second[0] == 3) && sizeof(pair) == 12 * sizeof(T);
  return o;
}

template <typename T> device uint *integers(device uint *o, constant int *index) {
  using T4 = vec<T, 4>;
  T4 a(1, 2, 3, 4), b(5, 7, 9, 13);
  *o++ = all(b % a == T4(0, 1, 0, 1)) && all(b % 4 == T4(1, 3, 1, 1)) && all(9 % a == T4(0, 1, 0, 1));
  *o++ = all((a & b) == T4(1, 2, 1, 4)) && all((a | 8) == T4(9, 10, 11, 12)) && all((a ^ b) == T4(4, 5, 10, 9));
  *o++ = all(a << 1 == T4(2, 4, 6, 8)) && all(b >> T4(0, 1, 2, 3) == T4(5, 3, 2, 1)) && all(1 << a == T4(2, 4, 8, 16));
  *o++ = all(~a == T4(T(~1), T(~2), T(~3), T(~4))) && all(-a + a == 0);
  T4 v = b;
  v %= 8;
  *o++ = all(v == T4(5, 7, 1, 5));
  v &= a;
  v |= T4(8);
  v ^= 1;
  *o++ = all(v == T4(8, 11, 8, 13));
  v <<= 2;
  v >>= T4(1);
  *o++ = all(v == T4(16, 22, 16, 26));
  // Out of range wraps or is cut as in C.
  *o++ = T4(float4(3.9f)).x == T(3) && all(T4(uint4(256 + 7)) == T4(T(263)));
  return o;
}

template <typename T> device uint *both(device uint *o, constant int *index) {
  return integers<T>(common<T>(o, index), index);
}

kernel void checks(device uint *o [[buffer(0)]], const device float4 *in [[buffer(1)]], device float4 *out [[buffer(2)]],
                   constant int *index [[buffer(3)]], uint lane [[thread_index_in_threadgroup]]) {
  for (int i = 0; i < 704; i++) o[i] = 9;
  both<char>(o, index);
  both<uchar>(o + 64, index);
  both<short>(o + 128, index);
  both<ushort>(o + 192, index);
  both<int>(o + 256, index);
  both<uint>(o + 320, index);
  both<long>(o + 384, index);
  both<ulong>(o + 448, index);
  common<half>(o + 512, index);
  common<bfloat>(o + 576, index);
  common<float>(o + 640, index);

  // Every address space, whole and in parts.
  threadgroup float4 tile[2];
  tile[0] = in[0];            // 0 1 2 3
  tile[1] = tile[0] + in[1];  // 4 6 8 10
  tile[0].xy = tile[1].xy;    // 4 6 2 3
  tile[0] += 1;               // 5 7 3 4
  tile[0].z -= in[0].y;       // 5 7 2 4
  device float4 &r = out[0];
  r = tile[0];
  r.xyz = r.zyx;              // 2 7 5 4
  out[0].yz = float2(0, 3) + r.yz * half2(1.0h, 2.0h)[0] - in[0].zw * 0; // 2 7 8 4
  r.b -= 1;                   // 2 7 7 4
  out[0].y -= 6;              // 2 1 7 4
  out[1] = tile[1];
  out[1] *= index[1] - 0.5f;  // 6 9 12 15
  out[1].yzw += 2;            // 6 11 14 17
  out[1][3] += index[0];      // 20
}
