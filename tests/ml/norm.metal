// Normalisation: rms_norm and layer_norm of rows in registers and of long ones, with a weight and a shift fused; the gradient
// of layer_norm; group norm.
#include <metal_stdlib>
using namespace metal;

constant bool has_weight [[function_constant(20)]];

// Sums of N numbers over a threadgroup; all threads receive them. `shared` has 32 places for each.
template <size_t N>
METAL_FUNC array<float, N> sum_of_all(array<float, N> mine, threadgroup float (&shared)[32 * N], uint lane, uint sg, uint sgs) {
  for (size_t i = 0; i < N; i++) mine[i] = simd_sum(mine[i]);
  if (sgs == 1) return mine;
  threadgroup_barrier(mem_flags::mem_threadgroup); // those who still read what was there before
  if (lane < N) {
    float one = 0;
    for (uint i = 0; i < N; i++) one = lane == i ? mine[i] : one;
    shared[lane * 32 + sg] = one;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (size_t i = 0; i < N; i++) mine[i] = simd_sum(lane < sgs ? shared[i * 32 + lane] : 0.0f);
  return mine;
}

// A row of at most READS numbers a thread stays in registers. Weights may be one for all (stride 0).
template <typename T, int READS = 4>
[[kernel]] void rms_row(const device T *x [[buffer(0)]], const device T *weight [[buffer(1)]], device T *y [[buffer(2)]],
                        constant float &epsilon [[buffer(3)]], constant uint2 &layout /* width, weight stride */ [[buffer(4)]],
                        uint row [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
                        uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  const uint width = layout.x, first = t * READS;
  const uint count = first < width ? min(uint(READS), width - first) : 0;
  x += row * ulong(width) + first;
  y += row * ulong(width) + first;
  float v[READS];
  array<float, 1> squares = {0.0f};
  if (count == READS) {
#pragma unroll
    for (int i = 0; i < READS; i++) squares[0] = fma(v[i] = x[i], v[i], squares[0]);
  } else {
    for (uint i = 0; i < count; i++) squares[0] += (v[i] = x[i]) * v[i];
  }
  const float scale = precise::rsqrt(sum_of_all(squares, shared, lane, sg, sgs)[0] / width + epsilon);
  for (uint i = 0; i < READS; i++) {
    if (i >= count) break;
    y[i] = T(v[i] * scale) * weight[(first + i) * layout.y];
  }
}
template [[host_name("rms_row_float32")]] [[kernel]] decltype(rms_row<float>) rms_row<float>;
template [[host_name("rms_row_float16")]] [[kernel]] decltype(rms_row<half>) rms_row<half>;
template [[host_name("rms_row_bfloat16")]] [[kernel]] decltype(rms_row<bfloat>) rms_row<bfloat>;

// Rows lie `apart` bytes from each other; V is a number or four of them. The weight and the shift are fused as asked for.
enum fused : short { plain = 0, weighted = 1, shifted = 2 };
struct rows_args {
  int width;
  int vectors;
  ulong apart;
  float epsilon;
};
METAL_FUNC float square_of(float v) { return v * v; }
METAL_FUNC float square_of(float4 v) { return dot(v, v); }

template <typename V, short what>
kernel void rms_fused(constant rows_args &args, device const char *in, device const V *weight, device const V *shift,
                      device char *out, uint row [[threadgroup_position_in_grid]], ushort t [[thread_position_in_threadgroup]],
                      ushort threads [[threads_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]],
                      ushort sg [[simdgroup_index_in_threadgroup]], ushort sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  device const V *x = (device const V *)(in + row * args.apart);
  device V *y = (device V *)(out + row * args.apart);
  array<float, 1> squares = {0.0f};
  for (int i = t; i < args.vectors; i += threads) squares[0] += square_of(x[i]);
  const float scale = rsqrt(sum_of_all(squares, shared, lane, sg, sgs)[0] / args.width + args.epsilon);
  for (int i = t; i < args.vectors; i += threads) {
    V v = x[i] * scale;
    if (what & weighted) v *= weight[i];
    if (what & shifted) v += shift[i];
    y[i] = v;
  }
}
template [[host_name("rms_fused_weight")]] kernel decltype(rms_fused<float, weighted>) rms_fused<float, weighted>;
template [[host_name("rms_fused_weight_shift_4")]] kernel decltype(rms_fused<float4, weighted | shifted>) rms_fused<float4, weighted | shifted>;

// Long rows, three times over: the mean, the spread around it, the result.
template <typename T, uint READS = 8> struct strip {
  uint width, t, threads;
  template <typename F> void each(F f) const {
    for (uint start = t * READS; start < width; start += threads * READS) {
      if (start + READS <= width) {
#pragma clang loop unroll(full)
        for (uint i = 0; i < READS; i++) f(start + i);
      } else {
        for (uint i = start; i < width; i++) f(i);
      }
    }
  }
};
template <typename T>
[[kernel]] void layer_norm_long(const device T *x, const device T *weight, const device T *shift, device T *y,
                                constant float &epsilon, constant uint3 &layout /* width, strides of weight and shift */,
                                uint row [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                                uint threads [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                                uint sg [[simdgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  const strip<T> mine{layout.x, t, threads};
  x += row * ulong(layout.x);
  y += row * ulong(layout.x);
  array<float, 1> sum = {0.0f}, squares = {0.0f};
  mine.each([&](uint i) { sum[0] += float(x[i]); });
  const float mean = sum_of_all(sum, shared, lane, sg, sgs)[0] / layout.x;
  mine.each([&](uint i) {
    const float d = float(x[i]) - mean;
    squares[0] += d * d;
  });
  const float scale = precise::rsqrt(sum_of_all(squares, shared, lane, sg, sgs)[0] / layout.x + epsilon);
  mine.each([&](uint i) { y[i] = T((float(x[i]) - mean) * scale) * weight[i * layout.y] + shift[i * layout.z]; });
}
template [[host_name("layer_norm_long_float32")]] [[kernel]] decltype(layer_norm_long<float>) layer_norm_long<float>;
template [[host_name("layer_norm_long_bfloat16")]] [[kernel]] decltype(layer_norm_long<bfloat>) layer_norm_long<bfloat>;

// With n = (x - mean) · r and c = w · g: dx = r · (c - mean(c) - n · mean(c n)), dw's part of this row = g n.
kernel void layer_norm_gradient(const device float *x, const device float *weight, const device float *g, device float *dx,
                                device float *dw, constant float &epsilon, constant uint &width,
                                uint row [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                                uint threads [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                                uint sg [[simdgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float one[32], three[96];
  const ulong start = row * ulong(width);
  array<float, 1> sum = {0.0f};
  for (uint i = t; i < width; i += threads) sum[0] += x[start + i];
  const float mean = sum_of_all(sum, one, lane, sg, sgs)[0] / width;
  array<float, 3> sums = {0.0f, 0.0f, 0.0f};
  for (uint i = t; i < width; i += threads) {
    const float d = x[start + i] - mean, c = weight[has_weight ? i : 0] * g[start + i];
    sums[0] = fma(d, d, sums[0]), sums[1] += c, sums[2] = fma(c, d, sums[2]);
  }
  sums = sum_of_all(sums, three, lane, sg, sgs);
  const float r = rsqrt(sums[0] / width + epsilon), mean_c = sums[1] / width, mean_cn = r * sums[2] / width;
  for (uint i = t; i < width; i += threads) {
    const float n = (x[start + i] - mean) * r, gi = g[start + i];
    dx[start + i] = r * (weight[has_weight ? i : 0] * gi - mean_c - n * mean_cn);
    if (has_weight) dw[start + i] = gi * n;
  }
}

// Group norm over (channels / groups) planes; one threadgroup a (group, image); Welford's pairs joined at the end.
struct Welford {
  float n, mean, m2;
  Welford() thread : n(0), mean(0), m2(0) {}
  void push(float x) thread {
    n += 1;
    float d = x - mean;
    mean += d / n;
    m2 += d * (x - mean);
  }
  void join(thread const Welford& o) thread {
    float total = n + o.n;
    if (total == 0) return;
    float d = o.mean - mean;
    mean += d * (o.n / total);
    m2 += o.m2 + d * d * (n * o.n / total);
    n = total;
  }
  Welford shuffled(ushort delta) const thread {
    Welford r;
    r.n = simd_shuffle_xor(n, delta);
    r.mean = simd_shuffle_xor(mean, delta);
    r.m2 = simd_shuffle_xor(m2, delta);
    return r;
  }
};
template <typename T>
[[kernel]] void group_norm(device const T* x [[buffer(0)]], device const float* gamma [[buffer(1)]],
                           device const float* beta [[buffer(2)]], device T* y [[buffer(3)]],
                           constant uint3& dims [[buffer(4)]] /* channels, groups, pixels */, constant float& eps [[buffer(5)]],
                           uint2 pos [[threadgroup_position_in_grid]], uint2 t [[thread_position_in_threadgroup]],
                           uint2 size [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                           uint sg [[simdgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float3 shared[32];
  const uint per_group = dims.x / dims.y, count = per_group * dims.z;
  const size_t start = (size_t(pos.y) * dims.x + pos.x * per_group) * dims.z;
  Welford acc;
  for (uint i = t.x; i < count; i += size.x) acc.push(float(x[start + i]));
  for (ushort d = 16; d > 0; d >>= 1) {
    Welford other = acc.shuffled(d);
    acc.join(other);
  }
  if (lane == 0) shared[sg] = float3(acc.n, acc.mean, acc.m2);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  Welford all;
  for (uint s = 0; s < sgs; s++) {
    Welford part;
    part.n = shared[s].x;
    part.mean = shared[s].y;
    part.m2 = shared[s].z;
    all.join(part);
  }
  const float r = rsqrt(all.m2 / all.n + eps);
  for (uint i = t.x; i < count; i += size.x) {
    uint c = pos.x * per_group + i / dims.z;
    y[start + i] = T((float(x[start + i]) - all.mean) * r * gamma[c] + beta[c]);
  }
}
template [[host_name("group_norm_f32")]] [[kernel]] decltype(group_norm<float>) group_norm<float>;
template [[host_name("group_norm_f16")]] [[kernel]] decltype(group_norm<half>) group_norm<half>;
