// Packed vectors, matrices, packing to normalised integers: the kernel marks each check that holds with 1.
// run: checks -b 0:out:uint32:40 -b 1=arange:float32:32 -b 2:out:float32:12 --bytes 3=int32:1,2 --grid 1
// expect buffer 0: f(i) for i in 40: 1
// expect-prefix buffer 2: 1 2 3 9 8 7 14 14 16
#include <metal_stdlib>
using namespace metal;

static_assert(sizeof(packed_float3) == 12 && alignof(packed_float3) == 4 && sizeof(packed_half3) == 6 && sizeof(packed_uchar4) == 4, "");
static_assert(sizeof(float3x3) == 48 && sizeof(float2x3) == 32 && sizeof(half4x4) == 32 && sizeof(bfloat2x2) == 8, "");
static_assert(all(packed_float3(1, 2, 3) + float3(1) == float3(2, 3, 4)) && packed_int4(1, 2, 3, 4).wz.x == 4, "");
static_assert(float2x2(1, 2, 3, 4)[1][0] == 3 && determinant(float2x2(1, 2, 3, 4)) == -2, "");

struct Particle {
  packed_float3 place;
  float mass;
};
static_assert(sizeof(Particle) == 16, "");

template <typename T> bool every_matrix(int one) {
  using M23 = matrix<T, 2, 3>;
  using M32 = matrix<T, 3, 2>;
  M23 a(one, 2, 3, 4, 5, 6), b = M23(vec<T, 3>(1, 2, 3), vec<T, 3>(4, 5, 6));
  bool good = a == b && !(a != b) && all(a[1] == vec<T, 3>(4, 5, 6)) && a[0][2] == T(3);
  M32 t = transpose(a);
  good = good && all(t[0] == vec<T, 2>(1, 4)) && all(t[2] == vec<T, 2>(3, 6));
  matrix<T, 2, 2> p = t * a;
  good = good && p == matrix<T, 2, 2>(14, 32, 32, 77) && all(a * vec<T, 2>(1, 2) == vec<T, 3>(9, 12, 15)) &&
         all(vec<T, 3>(1, 0, 2) * a == vec<T, 2>(7, 16));
  good = good && a + b == a * 2 && a + b - a == b && T(2) * a == a * T(2) && -a == a * -1 && abs(float(determinant(p)) - 54) <= 4; // 1078 - 1024 rounds in bfloat
  a[one].y = 9;
  a[0] *= 2;
  b += a;
  b -= a;
  b *= T(3);
  p *= matrix<T, 2, 2>(1);
  good = good && a == M23(2, 4, 6, 4, 9, 6) && b == M23(3, 6, 9, 12, 15, 18) && p[1].x == T(32);
  matrix<T, 3, 3> identity(1), c(2, 0, 1, 1, 3, 2, 1, 1, 1);
  good = good && identity * c == c && determinant(c) == T(0) && determinant(identity * 2) == T(8);
  matrix<T, 4, 4> d(1, 2, 0, 1, 0, 1, 3, 0, 2, 0, 1, 1, 1, 1, 0, 2);
  return good && determinant(d) == T(16) && determinant(transpose(d)) == T(16) && matrix<float, 4, 4>(d) == float4x4(matrix<half, 4, 4>(d));
}

kernel void checks(device uint *o [[buffer(0)]], const device packed_float3 *in [[buffer(1)]], device packed_float3 *out [[buffer(2)]],
                   constant int *index [[buffer(3)]]) {
  int one = index[0];
  for (int i = 0; i < 40; i++) o[i] = 1;
  // Packed: loads, stores, components, swizzles, operators of every pairing.
  float3 v = in[one];
  packed_float3 p = v, q(4, 5, 6), r = float3(2), s = packed_float3(float2(1, 2), 3);
  *o++ = all(v == float3(3, 4, 5)) && all(p == v) && all(p + 1 == q) && all(q - p == packed_float3(1)) && all(r == 2);
  *o++ = all(1 + p == q) && all(v * r == float3(6, 8, 10)) && all(r * v == v * 2) && all(-q == float3(-4, -5, -6)) && all(q / r == float3(2, 2.5f, 3));
  *o++ = p[0] == 3 && p[one] == 4 && p.z == 5 && p.b == 5 && all(p.zyx == float3(5, 4, 3)) && all(p.rg == float2(3, 4)) && all(s == float3(1, 2, 3));
  p.xy = q.yz;
  p[2] = 7;
  p.x += 1;
  *o++ = all(p == float3(6, 6, 7)) && all((p > q) == bool3(true)) && all(float3(p) == p) && all(half3(p) == half3(6, 6, 7));
  p += v;
  p -= packed_float3(1);
  p *= 2;
  v += q;
  *o++ = all(p == float3(16, 18, 22)) && all(v == float3(7, 9, 11)) && all(packed_half3(p) == half3(16, 18, 22)) && all((p != p) == false);
  packed_uchar4 u(1, 2, 3, 4);
  u <<= uchar4(1);
  u++;
  *o++ = all(u == uchar4(3, 5, 7, 9)) && all((u & 1) == uchar4(1)) && all(~u == uchar4(252, 250, 248, 246)) && all(u % 2 == 1) && as_type<uint>(u) == 0x09070503;
  Particle particle = {packed_float3(1, 2, 3), 4};
  particle.place += particle.mass;
  *o++ = all(particle.place == float3(5, 6, 7)) && all(packed_float4(particle.place, 4).xw == float2(5, 4));
  out[0] = packed_float3(1, 2, 3);
  out[one] = in[3].zyx - 2;
  out[one].x += 0;
  device packed_float3 &last = out[2];
  last = in[4];
  last.x += 2;
  last[one] += 1;
  last.z += 2;

  *o++ = every_matrix<float>(one);
  *o++ = every_matrix<half>(one);
  *o++ = every_matrix<bfloat>(one);

  float4 c(0.0f, 0.5f, 1.0f, 2.0f), d(-1, -0.5f, 0.25f, -3);
  *o++ = pack_float_to_unorm4x8(c * one) == 0xffff8000 && pack_half_to_unorm4x8(half4(c)) == 0xffff8000;
  *o++ = pack_float_to_snorm4x8(d * one) == 0x8120c081 && pack_half_to_snorm4x8(half4(d)) == 0x8120c081;
  *o++ = pack_float_to_unorm2x16(c.yz * one) == 0xffff8000 && pack_half_to_unorm2x16(half2(c.zx)) == 0xffff;
  *o++ = pack_float_to_snorm2x16(d.xz * one) == 0x20008001 && pack_half_to_snorm2x16(half2(d.xz)) == 0x20008001;
  *o++ = pack_float_to_unorm10a2(c * one) == 0xfff80000u && pack_half_to_unorm10a2(half4(c)) == 0xfff80000u;
  *o++ = pack_float_to_unorm565(float3(one, 0, 1)) == 0xf81f && pack_half_to_unorm565(half3(0, 1, 0)) == 0x07e0;
  *o++ = pack_float_to_srgb_unorm4x8(float4(0.5f, 0.001f, 1, 0.5f)) == 0x80ff03bc && pack_half_to_srgb_unorm4x8(half4(0.5h, 0, 1, 1)) == 0xffff00bc;
  uint x = 0xff330000u * one;
  *o++ = all(unpack_unorm4x8_to_float(x) == float4(0, 0, 0.2f, 1)) && all(unpack_unorm4x8_to_half(x) == half4(0, 0, 0.2h, 1));
  x = 0x80817f00u * one;
  *o++ = all(unpack_snorm4x8_to_float(x) == float4(0, 1, -1, -1)) && all(unpack_snorm4x8_to_half(x) == half4(0, 1, -1, -1));
  *o++ = all(unpack_unorm2x16_to_float(0x3333ffffu) == float2(1, 0.2f)) && all(unpack_unorm2x16_to_half(0x3333ffffu) == half2(1, 0.2h));
  *o++ = all(unpack_snorm2x16_to_float(0x80007fffu) == float2(1, -1)) && all(unpack_snorm2x16_to_half(0x00008001u) == half2(-1, 0));
  *o++ = all(unpack_unorm10a2_to_float(0x400003ffu) == float4(1, 0, 0, 1.0f / 3)) && all(unpack_unorm10a2_to_half(0xfff00000u) == half4(0, 0, 1, 1));
  *o++ = all(unpack_unorm565_to_float(ushort(0xf81f)) == float3(1, 0, 1)) && all(unpack_unorm565_to_half(ushort(0x07e0)) == half3(0, 1, 0));
  float4 linear = unpack_unorm4x8_srgb_to_float(0x80ff03bcu);
  *o++ = all(abs(linear - float4(0.5028865f, 0.000910582f, 1, 0.5019608f)) < 1e-6f) && all(unpack_unorm4x8_srgb_to_half(0x80ff03bcu) == half4(linear));
}
