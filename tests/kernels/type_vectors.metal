// vec<T, N>: constructors, swizzles, operators, memory. One bit a check: the compiler evaluates them for every component
// type, the kernel for five.
// run: checks -b 0:out:uint64:10 -b 1=arange:float32:64 -b 2:out:float32:64 --bytes 3=int32:3,2 --grid 1
// expect buffer 0: f(i) for i in 10: 2**(8 if i in (1, 3) else 43) - 1 if i < 7 else 5
// expect-prefix buffer 2: 2 1 7 4 6 11 14 20
#include <metal_stdlib>
using namespace metal;

#define CHECK(...) passed |= ulong(__VA_ARGS__) << n++

template <typename T> constexpr ulong common(int two) {
  ulong passed = 0;
  int n = 0;
  using T2 = vec<T, 2>;
  using T3 = vec<T, 3>;
  using T4 = metal::vec<T, 4>;
  // 0: sizes.
  CHECK(sizeof(T2) == 2 * sizeof(T) && sizeof(T3) == 4 * sizeof(T) && sizeof(T4) == 4 * sizeof(T));
  CHECK(alignof(T2) == 2 * sizeof(T) && alignof(T3) == 4 * sizeof(T) && alignof(T4) == 4 * sizeof(T));
  // 2: constructors.
  T4 a(two / 2, 2, 3, 4);
  T2 p(5, 6);
  T3 q = {7, 8, 9};
  T4 s = T4(3), z = 0, e = {};
  CHECK(a.x == T(1) && a.y == T(2) && a.z == T(3) && a.w == T(4));
  CHECK(all(s == T4(3, 3, 3, 3)) && all(z == e) && all(T2(4) == T2(4, 4)) && all(T3(2) == T3(2, 2, 2)));
  CHECK(all(T4(p, p) == T4(5, 6, 5, 6)) && all(T4(p, 1, 2) == T4(5, 6, 1, 2)));
  CHECK(all(T4(1, p, 2) == T4(1, 5, 6, 2)) && all(T4(1, 2, p) == T4(1, 2, 5, 6)));
  CHECK(all(T4(q, 1) == T4(7, 8, 9, 1)) && all(T4(1, q) == T4(1, 7, 8, 9)));
  CHECK(all(T3(p, 1) == T3(5, 6, 1)) && all(T3(1, p) == T3(1, 5, 6)));
  CHECK(all(T4(int4(1, 2, 3, 4)) == a) && all(T4(half4(1, 2, 3, 4)) == a) && all(T4(bfloat4(1, 2, 3, 4)) == a));
  CHECK(all(T2(float2(5, 6)) == p) && all(T3(uchar3(7, 8, 9)) == q) && all(T4(a) == a) && all((T4)long4(1, 2, 3, 4) == a) &&
        all(T3(a) == T3(1, 2, 3)) && all((T3)s == T3(3)));
  // 10: swizzles, read.
  CHECK(all(a.xy == T2(1, 2)) && all(a.wzyx == T4(4, 3, 2, 1)) && all(a.xxx == T3(1)) && all(a.zw == T2(3, 4)));
  CHECK(all(a.rg == a.xy) && all(a.bgr == a.zyx) && all(a.aaaa == T4(4)) && a.r == a.x && a.g == a.y && a.b == a.z && a.a == a.w);
  CHECK(all(p.yx == T2(6, 5)) && all(p.xyxy == T4(5, 6, 5, 6)) && all(q.zyx == T3(9, 8, 7)) && all(q.xxyy == T4(7, 7, 8, 8)));
  CHECK(all(a.xyz.zy.yx == T2(2, 3)) && p.g == T(6) && q.b == T(9));
  // 14: swizzles, written.
  T4 v = a;
  v.xy = p;
  CHECK(all(v == T4(5, 6, 3, 4)));
  v.zyx = q;
  CHECK(all(v == T4(9, 8, 7, 4)));
  v.wx = v.xw;
  CHECK(all(v == T4(4, 8, 7, 9)));
  v.xy += T2(1, 2);
  CHECK(all(v == T4(5, 10, 7, 9)));
  v.zw *= 2;
  CHECK(all(v == T4(5, 10, 14, 18)));
  v.rgb = T3(1, 2, 3);
  v.a = 4;
  CHECK(all(v == a));
  v.r += 1;
  v.y -= 1;
  CHECK(all(v == T4(2, 1, 3, 4)));
  v.wzyx = v;
  CHECK(all(v == T4(4, 3, 1, 2)));
  v.xyzw = a.xxyy;
  CHECK(all(v == T4(1, 1, 2, 2)));
  v.x++;
  --v.g;
  CHECK(v.x == T(2) && v.y == T(0));
  q.xy = q.yx;
  CHECK(all(q == T3(8, 7, 9)));
  // 25: indexes.
  v = a;
  CHECK(v[0] == T(1) && v[3] == T(4) && v[two] == T(3) && a.wzyx[two] == T(2));
  v[two] = 9;
  v[uint(two - 1)] += 5;
  CHECK(all(v == T4(1, 7, 9, 4)));
  T sum = 0;
  for (int i = 0; i < 4; i++) sum += a[i];
  CHECK(sum == T(10));
  // 28: operators.
  CHECK(all(a + a == T4(2, 4, 6, 8)) && all(a + 1 == T4(2, 3, 4, 5)) && all(T(1) + a == T4(2, 3, 4, 5)));
  CHECK(all(T4(9) - a == T4(8, 7, 6, 5)) && all(9 - a == T4(8, 7, 6, 5)) && all(a - T(1) == T4(0, 1, 2, 3)));
  CHECK(all(a * a == T4(1, 4, 9, 16)) && all(a * 2 == T4(2, 4, 6, 8)) && all(2 * a == a * T(2)));
  CHECK(all(T4(12) / a == T4(12, 6, 4, 3)) && all(12 / a == T4(12, 6, 4, 3)) && all(T4(2, 4, 6, 8) / 2 == a));
  v = a;
  v += a;
  v += 1;
  v -= a;
  v -= T(1);
  v *= 6;
  v *= a;
  v /= T4(6);
  v /= a;
  CHECK(all(v == a));
  CHECK(all(+a == a) && all(a++ == T4(1, 2, 3, 4)) && all(a == T4(2, 3, 4, 5)) && all(--a == T4(1, 2, 3, 4)));
  CHECK(all(++a == T4(2, 3, 4, 5)) && all(a-- == T4(2, 3, 4, 5)) && all(a == T4(1, 2, 3, 4)));
  T4 b = a.wzyx;
  CHECK(all((a < b) == bool4(true, true, false, false)) && all((a > b) == bool4(false, false, true, true)));
  CHECK(all((a <= 2) == bool4(true, true, false, false)) && all((2 >= a) == bool4(true, true, false, false)));
  CHECK(all((a == T(2)) == bool4(false, true, false, false)) && all((a != b) == bool4(true)) && any(a == 4) && !any(a == 5));
  CHECK(all((a && T4(1, 0, 1, 0)) == bool4(1, 0, 1, 0)) && all((T4(1, 0, 1, 0) || T4(0, 0, 0, 1)) == bool4(1, 0, 1, 1)));
  CHECK(all(!T4(1, 0, 2, 0) == bool4(false, true, false, true)) && all(!(a < 0)));
  // 40: ternaries, constants.
  CHECK(all((two == 2 ? a : b) == a) && all((two == 3 ? a : T4(0)) == T4(0)) && all((two == 2 ? a : T(0)) == a));
  constexpr T4 c = T4(1, 2, 3, 4) + T4(1);
  static_assert(c.z == T(4) && c[1] == T(3) && c.wx.y == T(2), "usable in constant expressions");
  CHECK(all(c == T4(2, 3, 4, 5)));
  struct Pair {
    T2 first;
    T3 second[2];
  } pair = {T2(1, 2), {T3(3), T3(4)}};
  pair.second[1].yz = pair.first;
  CHECK(all(pair.second[1] == T3(4, 1, 2)) && all(pair.second[0] == 3) && sizeof(pair) == 12 * sizeof(T));
  return passed;
}

template <typename T> constexpr ulong integers(int one) {
  ulong passed = 0;
  int n = 0;
  using T4 = vec<T, 4>;
  T4 a(one, 2, 3, 4), b(5, 7, 9, 13);
  CHECK(all(b % a == T4(0, 1, 0, 1)) && all(b % 4 == T4(1, 3, 1, 1)) && all(9 % a == T4(0, 1, 0, 1)));
  CHECK(all((a & b) == T4(1, 2, 1, 4)) && all((a | 8) == T4(9, 10, 11, 12)) && all((a ^ b) == T4(4, 5, 10, 9)));
  CHECK(all(a << 1 == T4(2, 4, 6, 8)) && all(b >> T4(0, 1, 2, 3) == T4(5, 3, 2, 1)) && all(1 << a == T4(2, 4, 8, 16)));
  CHECK(all(~a == T4(T(~1), T(~2), T(~3), T(~4))) && all(-a + a == 0));
  T4 v = b;
  v %= 8;
  CHECK(all(v == T4(5, 7, 1, 5)));
  v &= a;
  v |= T4(8);
  v ^= 1;
  CHECK(all(v == T4(8, 11, 8, 13)));
  v <<= 2;
  v >>= T4(1);
  CHECK(all(v == T4(16, 22, 16, 26)));
  // Out of range wraps or is cut as in C.
  CHECK(T4(float4(3.9f)).x == T(3) && all(T4(uint4(256 + 7)) == T4(T(263))));
  return passed;
}

#define COMMON(T) static_assert(common<T>(2) == (1ul << 43) - 1, #T)
#define INTEGERS(T) COMMON(T); static_assert(integers<T>(1) == (1ul << 8) - 1, #T)
INTEGERS(char);
INTEGERS(uchar);
INTEGERS(short);
INTEGERS(ushort);
INTEGERS(int);
INTEGERS(uint);
INTEGERS(long);
INTEGERS(ulong);
COMMON(half);
COMMON(bfloat);
COMMON(float);

kernel void checks(device ulong *o [[buffer(0)]], const device float4 *in [[buffer(1)]], device float4 *out [[buffer(2)]],
                   constant int *index [[buffer(3)]]) {
  int two = index[1];
  o[0] = common<uchar>(two);
  o[1] = integers<uchar>(two / 2);
  o[2] = common<int>(two);
  o[3] = integers<int>(two / 2);
  o[4] = common<half>(two);
  o[5] = common<bfloat>(two);
  o[6] = common<float>(two);
  for (int i = 7; i < 10; i++) o[i] = 5;

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
