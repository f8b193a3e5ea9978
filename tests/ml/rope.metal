// Rotary embeddings: pairs of neighbours or of halves, by a base or by given frequencies, for one new position or many,
// forwards and back; with YaRN's mixing of interpolated and extrapolated angles.
#include <metal_math>
#include <metal_stdlib>
using namespace metal;

constant bool forward [[function_constant(1)]];
constant bool neighbours [[function_constant(2)]];
constant bool heads_inside [[function_constant(3)]];

// A pair's two places within a head, and its rotation.
struct pair_of {
  int a, b;
  pair_of(int d, int half_dims) thread : a(neighbours ? 2 * d : d), b(neighbours ? a + 1 : d + half_dims) {}
};
struct rotation {
  float c, s;
  static rotation by(float angle) {
    rotation r;
    r.s = precise::sincos(angle, r.c);
    if (!forward) r.s = -r.s;
    return r;
  }
  template <typename T, typename From, typename To>
  void operator()(From from, To to, pair_of p) const thread {
    const float x = static_cast<float>(from[p.a]), y = static_cast<float>(from[p.b]);
    to[p.a] = static_cast<T>(x * c - y * s);
    to[p.b] = static_cast<T>(x * s + y * c);
  }
};

// One position, all heads: (dims / 2, heads) threads.
template <typename T>
kernel void rope_one(const device T *x [[buffer(0)]], device T *y [[buffer(1)]], constant int &position [[buffer(2)]],
                     constant float &scale [[buffer(3)]], constant int64_t &head_stride [[buffer(4)]],
                     constant float &log2_base [[buffer(10)]], ushort2 at [[thread_position_in_grid]],
                     ushort2 size [[threads_per_grid]]) {
  const float frequency = exp2(-log2_base * at.x / size.x);
  const int64_t head = at.y * head_stride;
  rotation::by(scale * position * frequency).template operator()<T>(x + head, y + head, pair_of(at.x, size.x));
}
template [[host_name("rope_one_float16")]] kernel decltype(rope_one<half>) rope_one<half>;

// Many: a thread has a pair of dimensions, a position, and HEADS heads one after another, which turn by the same angle.
struct rope_layout {
  int64_t x_position, x_head; // strides; heads of one position may lie inside or positions of one head
  int64_t y_position, y_head;
  int heads;
  float scale;
};
template <typename T, typename Index, ushort HEADS>
[[kernel]] void rope_many(const device T *x [[buffer(0)]], device T *y [[buffer(1)]], const device int *offsets [[buffer(2)]],
                          const device float *wavelengths [[buffer(3)]], constant rope_layout &layout [[buffer(4)]],
                          uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {
  const uint blocks = (layout.heads + HEADS - 1) / HEADS, batch = at.z / blocks, head0 = at.z % blocks * HEADS;
  const rotation turn = rotation::by(layout.scale * float(int(at.y) + offsets[batch]) / wavelengths[at.x]);
  const pair_of p(at.x, size.x);
  const Index in_step = heads_inside ? Index(2 * size.x) : Index(layout.x_head);
  Index in = heads_inside ? (Index(batch) * size.y + at.y) * layout.heads * in_step
                          : Index(batch) * layout.heads * in_step + Index(at.y) * layout.x_position;
  Index out = Index(batch) * layout.heads * layout.y_head + Index(at.y) * layout.y_position;
  for (ushort h = 0; h < HEADS && head0 + h < uint(layout.heads); h++)
    turn.template operator()<T>(x + in + (head0 + h) * in_step, y + out + (head0 + h) * Index(layout.y_head), p);
}
template [[host_name("rope_many_float32")]] [[kernel]] decltype(rope_many<float, int, 4>) rope_many<float, int, 4>;
template [[host_name("rope_many_bfloat16")]] [[kernel]] decltype(rope_many<bfloat, int64_t, 4>) rope_many<bfloat, int64_t, 4>;

// YaRN: long wavelengths are interpolated, short ones left; the share between is linear in the pair's number. Dimensions beyond
// `rotated` are copied.
struct yarn {
  int dims;
  int rotated;
  float base, squeeze, mix, magnitude;
  float2 ramp; // the first and the last pair between

  float2 angle_and_size(float position, int pair) const constant {
    const float outside = position * powr(base, -2.0f * pair / rotated), inside = squeeze * outside;
    if (mix == 0) return float2(inside, magnitude);
    const float share = mix * (1 - saturate((pair - ramp.x) / max(ramp.y - ramp.x, 1e-3f)));
    return float2(metal::mix(inside, outside, share), magnitude * fma(-0.1f, log(squeeze), 1.0f));
  }
};
template <typename T>
kernel void rope_yarn(constant yarn &how [[buffer(0)]], device const int *positions [[buffer(1)]],
                      device const T *x [[buffer(2)]], device T *y [[buffer(3)]], uint2 row [[threadgroup_position_in_grid]],
                      uint2 rows [[threadgroups_per_grid]], ushort t [[thread_index_in_threadgroup]],
                      ushort2 threads [[threads_per_threadgroup]]) {
  const size_t start = (size_t(row.y) * rows.x + row.x) * how.dims;
  x += start, y += start;
  const int pairs = how.rotated / 2;
  for (int i = t; i < how.dims - pairs; i += threads.x) {
    if (i >= pairs) {
      y[i + pairs] = x[i + pairs];
      continue;
    }
    const float2 turn = how.angle_and_size(positions[row.y], i);
    const float2 unit = float2(cos(turn.x), sin(turn.x)) * turn.y;
    const float2 in = float2(x[i], x[i + pairs]);
    y[i] = T(dot(in, float2(unit.x, -unit.y)));
    y[i + pairs] = T(dot(in, unit.yx));
  }
}
template [[host_name("rope_yarn_f32")]] kernel decltype(rope_yarn<float>) rope_yarn<float>;
template [[host_name("rope_yarn_f16")]] kernel decltype(rope_yarn<half>) rope_yarn<half>;
