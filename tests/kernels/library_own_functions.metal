// Functions of a program with the names of Metal's: on integers, on its own types, in a namespace of its own.
// run: own_functions -b 0:out:int32:29 --grid 1
// expect buffer 0: 1, 2, -3, 32, 14, 77, 27, 1, -1, 5, 6, 7, 40, 41, 9, 1, 3, 12, 4, 21, 2, 5, 1, 8, 41, 3, 41, 5, 2
#include <metal_stdlib>
using namespace metal;

static inline short3 cross(short3 a, short3 b) { return short3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x); }
static inline int dot(int3 a, int3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static inline int length_squared(int3 a) { return dot(a, a); }
static inline int length(int3 a) { return length_squared(a) + 63; }
static inline int distance_squared(uint2 a, uint2 b) { return (int)((a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)) + 27; }
static inline short3 normalize(short3 v) { return short3(v.x > 0, -(v.y < 0), 5); }
static inline int3 reflect(int3 v, int3 n) { return v + n; }
static inline int2 mix(int2 a, int2 b, int t) { return a + (b - a) * t; }
static inline uint4 fma(uint4 a, uint4 b, uint4 c) { return a * b + c; }
static inline int sign(int x) { return x < 0 ? 1 : 9; }

struct fixed {
  int bits;
  friend fixed max(fixed a, fixed b) { return a.bits > b.bits ? a : b; }
};
static inline fixed clamp(fixed x, int low, int high) { return fixed{metal::clamp(x.bits, low, high)}; }
template <typename T> struct dual { T value, slope; };
template <typename T> dual<T> exp(dual<T> x) { return {x.value * 2, x.slope * 3}; }
template <typename T> T floor(T x) { return x + 1; } // taken where there is no function for the type itself

namespace own {
template <typename T> T abs(T x) { return x + T(1); }
template <typename T, int N> vec<T, N> saturate(vec<T, N> x) { return x * T(2); }
float3 normalize(float3 v) { return v; }
static int of_vectors(float2 v) { return (int)(abs(v).x + saturate(v).y); }
static int normal(float3 v) { return (int)normalize(v).x; }
}

// As MLX does: Metal has no function of bfloat alone that this could be a second definition of.
namespace metal {
METAL_FUNC bfloat abs(bfloat x) { return bfloat(41.0f); }
METAL_FUNC bfloat max(bfloat x, bfloat y) { return bfloat(3.0f); }
namespace precise {
METAL_FUNC bfloat fract(bfloat x) { return bfloat(5.0f); }
}
}

kernel void own_functions(device int *out [[buffer(0)]]) {
  short3 c = cross(short3(2, 1, 0), short3(0, 1, 0) + short3(1, 0, 1));
  int3 v(1, 2, 3);
  int i = 0;
  out[i++] = c.x; out[i++] = -c.y; out[i++] = -3 * c.z;
  out[i++] = dot(v, int3(4, 5, 6)); out[i++] = length_squared(v); out[i++] = length(v);
  out[i++] = distance_squared(uint2(1, 2), uint2(1, 2));
  short3 n = normalize(short3(3, -2, 1));
  out[i++] = n.x; out[i++] = n.y; out[i++] = n.z;
  out[i++] = reflect(v, int3(5)).x; out[i++] = reflect(v, int3(5)).y;
  out[i++] = mix(int2(0, 1), int2(10, 11), 4).x; out[i++] = mix(int2(0, 1), int2(10, 11), 4).y;
  out[i++] = sign(3); out[i++] = sign(-3);
  fixed a = {3}, b = {2};
  out[i++] = max(a, b).bits; out[i++] = clamp(fixed{40}, 3, 12).bits;
  dual<int> e = exp(dual<int>{2, 7});
  out[i++] = e.value; out[i++] = e.slope;
  out[i++] = floor(1); out[i++] = (int)floor(5.75f);
  out[i++] = (int)fma(uint4(1), uint4(2), uint4(3)).x - 4;
  out[i++] = own::of_vectors(float2(3, 1)) + own::normal(float3(2));
  bfloat b16 = bfloat(-2.5f);
  out[i++] = (int)(float)abs(b16); out[i++] = (int)(float)max(b16, b16); out[i++] = (int)(float)metal::abs(b16);
  out[i++] = (int)(float)precise::fract(b16); out[i++] = -(int)(float)(floor(b16) + bfloat(1.0f));
}
