// Softmax of rows: one simdgroup a row, a threadgroup a row in registers, looped with a running maximum; with scale,
// additive mask, causal mask, sliding window and sinks by function constants; and its backward.
#include <metal_stdlib>
using namespace metal;

constant bool has_mask [[function_constant(200)]];
constant bool do_causal [[function_constant(201)]];
constant bool has_sinks [[function_constant(202)]];
constant int window_size [[function_constant(203)]];
constant int window = is_function_constant_defined(window_size) ? window_size : INT_MAX;

// A row stays in the registers of its threadgroup, N numbers a thread, all as A. Results meet in one place per simdgroup.
template <typename A> struct largest {
  static A none() { return -numeric_limits<A>::infinity(); }
  static A lanes(A v) { return simd_max(v); }
};
template <typename A> struct total {
  static A none() { return A(0); }
  static A lanes(A v) { return simd_sum(v); }
};
template <typename Op, typename A>
A of_all(A mine, threadgroup A (&places)[32], uint lane, uint sg, uint sgs) {
  const A here = Op::lanes(mine);
  if (simd_is_first()) places[sg] = here;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return Op::lanes(lane < sgs ? places[lane] : Op::none());
}

template <typename T, typename A, short N>
[[kernel]] void softmax_row(const device T* in, device T* out, constant int& width, uint row [[threadgroup_position_in_grid]],
                            uint t [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                            uint sg [[simdgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup A tops[32], sums[32];
  const int first = int(t) * N;
  const ulong start = ulong(row) * width + first;
  vec<A, N> v = largest<A>::none();
  for (short i = 0; i < N; i++)
    if (first + i < width) v[i] = A(in[start + i]);
  A top = v[0];
  for (short i = 1; i < N; i++) top = max(top, v[i]);
  top = of_all<largest<A>>(top, tops, lane, sg, sgs);
  v = fast::exp(v - top);
  A sum = v[0];
  for (short i = 1; i < N; i++) sum += v[i];
  v *= A(1) / of_all<total<A>>(sum, sums, lane, sg, sgs);
  for (short i = 0; i < N; i++)
    if (first + i < width) out[start + i] = T(v[i]);
}
template [[host_name("softmax_row_float32")]] [[kernel]] decltype(softmax_row<float, float, 4>) softmax_row<float, float, 4>;
template [[host_name("softmax_row_precise_float16")]] [[kernel]] decltype(softmax_row<half, float, 4>) softmax_row<half, float, 4>;
template [[host_name("softmax_row_float16")]] [[kernel]] decltype(softmax_row<half, half, 2>) softmax_row<half, half, 2>;

// (rows of one head: queries; columns: keys). Online: the sum is corrected whenever the maximum grows.
struct softmax_params {
  int heads;
  int queries;
  int keys;
  int offset;
  float scale;
};

template <typename T, typename M>
[[kernel]] void softmax_masked(const device T* x [[buffer(0)]], device T* y [[buffer(1)]],
                               const device M* mask [[buffer(2), function_constant(has_mask)]],
                               const device float* sinks [[buffer(3), function_constant(has_sinks)]],
                               constant softmax_params& p [[buffer(4)]], uint3 tg [[threadgroup_position_in_grid]],
                               ushort3 tp [[thread_position_in_threadgroup]], ushort3 tpt [[threads_per_threadgroup]],
                               ushort lane [[thread_index_in_simdgroup]], ushort sg [[simdgroup_index_in_threadgroup]],
                               threadgroup float* buf [[threadgroup(0)]]) {
  const int q = tg.x, h = tg.y;
  const device T* xr = x + (size_t(h) * p.queries + q) * p.keys;
  device T* yr = y + (size_t(h) * p.queries + q) * p.keys;
  const int last = q + p.offset; // the newest key this query may see
  const auto visible = [&](int k) -> bool { return (!do_causal || k <= last) && last - k < window; };

  float m = has_sinks ? sinks[h] : -INFINITY, s = 0;
  for (int k = tp.x; k < p.keys; k += tpt.x) {
    if (!visible(k)) continue;
    float v = float(xr[k]) * p.scale;
    if (has_mask) v += float(mask[size_t(q) * p.keys + k]);
    if (v == -INFINITY) continue; // the difference of two infinities is no number
    const float grown = max(m, v);
    s = s * exp(m - grown) + exp(v - grown);
    m = grown;
  }
  float top = simd_max(m);
  if (tpt.x > 32) {
    if (sg == 0) buf[lane] = -INFINITY;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) buf[sg] = top;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    top = simd_max(buf[lane]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  s = s == 0 ? 0 : s * exp(m - top);
  s = simd_sum(s);
  if (tpt.x > 32) {
    if (sg == 0) buf[lane] = 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0) buf[sg] = s;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    s = simd_sum(buf[lane]);
  }
  if (has_sinks) s += exp(sinks[h] - top);
  const float r = s > 0 ? 1.0f / s : 0.0f;
  for (int k = tp.x; k < p.keys; k += tpt.x) {
    float v = float(xr[k]) * p.scale;
    if (has_mask) v += float(mask[size_t(q) * p.keys + k]);
    yr[k] = visible(k) ? T(exp(v - top) * r) : T(0);
  }
}
template [[host_name("softmax_masked_f32")]] [[kernel]] decltype(softmax_masked<float, half>) softmax_masked<float, half>;
template [[host_name("softmax_masked_bf16")]] [[kernel]] decltype(softmax_masked<bfloat, float>) softmax_masked<bfloat, float>;

// Four at a time, rows some bytes apart; the quotients are taken in a last look at what was written.
kernel void softmax_by_fours(device const char* in [[buffer(0)]], device char* out [[buffer(1)]], constant long& width [[buffer(2)]],
                             constant ulong& apart [[buffer(3)]], uint row [[threadgroup_position_in_grid]],
                             ushort lane [[thread_index_in_simdgroup]], ushort lanes [[threads_per_simdgroup]]) {
  auto x = reinterpret_cast<device const float4*>(in + apart * row);
  auto y = reinterpret_cast<device float4*>(out + apart * row);
  const long fours = width >> 2;
  float4 tops(-INFINITY), sums(0.0f);
  for (long i = lane; i < fours; i += lanes) tops = max(tops, x[i]);
  const float2 two = max(tops.xy, tops.zw);
  const float top = simd_max(max(two.x, two.y));
  for (long i = lane; i < fours; i += lanes) sums += y[i] = precise::exp(x[i] - top);
  const float sum = simd_sum(dot(sums, float4(1.0f)));
  for (long i = lane; i < fours; i += lanes) y[i] /= sum;
}

// dx = y * (dy - sum(y * dy))
template <typename T>
[[kernel]] void softmax_backward(const device T* y [[buffer(0)]], const device T* dy [[buffer(1)]],
                                 device T* dx [[buffer(2)]], constant uint& width [[buffer(3)]],
                                 uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  y += row * width, dy += row * width, dx += row * width;
  float dot = 0;
  for (uint i = lane; i < width; i += 32) dot = fma(float(y[i]), float(dy[i]), dot);
  dot = simd_sum(dot);
  for (uint i = lane; i < width; i += 32) dx[i] = static_cast<T>(float(y[i]) * (float(dy[i]) - dot));
}
template [[host_name("softmax_backward_f32")]] [[kernel]] decltype(softmax_backward<float>) softmax_backward<float>;
template [[host_name("softmax_backward_f16")]] [[kernel]] decltype(softmax_backward<half>) softmax_backward<half>;
