// Recurrent layers: the gated delta rule (one simdgroup a row of the state, and one threadgroup a head), a selective scan
// in order and by pairs across lanes, a WKV recurrence, and the causal convolution that stands before them.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

// S <- g S; S <- S + beta (v - S k) k^T; y = S q. Heads of q and k are shared by several heads of v. A simdgroup has one row
// of a head's state, each lane DK / 32 neighbours of it in registers.
constant bool gate_by_key [[function_constant(0)]]; // a gate for every column of the state, not one a head
constant bool masked [[function_constant(1)]];

struct delta_shape {
  int steps, key_heads, value_heads;
};
template <typename T, int DK, int DV>
kernel void gated_delta(device const T* q [[buffer(0)]], device const T* k [[buffer(1)]], device const T* v [[buffer(2)]],
                        device const float* gates [[buffer(3)]], device const T* betas [[buffer(4)]],
                        device const float* before [[buffer(5)]], constant delta_shape& shape [[buffer(6)]],
                        device const uchar* valid [[buffer(7), function_constant(masked)]], device T* y [[buffer(8)]],
                        device float* after [[buffer(9)]], uint3 at [[thread_position_in_grid]],
                        uint lane [[thread_index_in_simdgroup]]) {
  constexpr int OWN = DK / 32;
  typedef vec<float, OWN> columns;
  const int batch = at.z / shape.value_heads, head = at.z % shape.value_heads, row = at.y;
  const int key_head = head / (shape.value_heads / shape.key_heads);
  const ulong place = ((ulong)at.z * DV + row) * DK / OWN + lane;
  columns state = ((device const columns*)before)[place];

  for (int step = batch * shape.steps, last = step + shape.steps; step < last; step++) {
    const int key_row = step * shape.key_heads + key_head, value_row = step * shape.value_heads + head;
    if (masked && !valid[step]) {
      if (lane == 0) y[value_row * DV + row] = T(0);
      continue;
    }
    const columns key = columns(((device const vec<T, OWN>*)k)[key_row * 32 + lane]);
    const columns query = columns(((device const vec<T, OWN>*)q)[key_row * 32 + lane]);
    if (gate_by_key) state *= ((device const columns*)gates)[value_row * 32 + lane];
    else state *= gates[value_row];
    const float missing = float(v[value_row * DV + row]) - simd_sum(dot(state, key));
    state += key * (missing * float(betas[value_row]));
    const float out = simd_sum(dot(state, query));
    if (lane == 0) y[value_row * DV + row] = static_cast<T>(out);
  }
  ((device columns*)after)[place] = state;
}
template [[host_name("gated_delta_float32_64_48")]] kernel decltype(gated_delta<float, 64, 48>) gated_delta<float, 64, 48>;
template [[host_name("gated_delta_bfloat16_128_32")]] kernel decltype(gated_delta<bfloat, 128, 32>) gated_delta<bfloat, 128, 32>;

// The same a head at a time: a thread owns a column of the state in its registers, keys and queries are staged.
#define MAX_K 64
kernel void delta_rule_head(device const float* q, device const float* k, device const float* v, device const float* log_g,
                            device const float* beta, device float* y, constant uint4& dims /* T, heads, Dk, Dv */,
                            threadgroup float* shared [[threadgroup(0)]], uint h [[threadgroup_position_in_grid]],
                            uint j [[thread_position_in_threadgroup]], uint width [[threads_per_threadgroup]]) {
  const uint steps = dims.x, heads = dims.y, dk = dims.z, dv = dims.w;
  threadgroup float* ks = shared;
  threadgroup float* qs = shared + dk;
  float column[MAX_K];
  for (uint i = 0; i < dk; i++) column[i] = 0;
  for (uint t = 0; t < steps; t++) {
    const uint at = t * heads + h;
    for (uint i = j; i < dk; i += width) {
      ks[i] = k[at * dk + i];
      qs[i] = q[at * dk + i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (j < dv) {
      const float g = exp(log_g[at]);
      float recall = 0, out = 0;
      for (uint i = 0; i < dk; i++) {
        column[i] *= g;
        recall = fma(column[i], ks[i], recall);
      }
      const float delta = beta[at] * (v[at * dv + j] - recall);
      for (uint i = 0; i < dk; i++) {
        column[i] = fma(ks[i], delta, column[i]);
        out = fma(column[i], qs[i], out);
      }
      y[at * dv + j] = out;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// Selective scan, in order: a thread a channel, its N states in registers.
template <int N>
[[kernel]] void selective_scan(device const float* x [[buffer(0)]], device const float* dt [[buffer(1)]],
                               device const float* A [[buffer(2)]], device const float* B [[buffer(3)]],
                               device const float* C [[buffer(4)]], device const float* D [[buffer(5)]],
                               device float* y [[buffer(6)]], constant uint2& dims /* length, channels */ [[buffer(7)]],
                               uint2 gid [[thread_position_in_grid]]) {
  const uint L = dims.x, channels = dims.y, c = gid.x, b = gid.y;
  float a[N], h[N] = {};
  for (int n = 0; n < N; n++) a[n] = A[c * N + n];
  for (uint t = 0; t < L; t++) {
    const size_t i = (size_t(b) * L + t) * channels + c;
    const float xt = x[i];
    float delta = dt[i];
    delta = delta > 20.0f ? delta : log(1.0f + exp(delta)); // softplus
    float sum = 0;
    for (int n = 0; n < N; n++) {
      h[n] = exp(delta * a[n]) * h[n] + delta * B[(b * L + t) * N + n] * xt;
      sum += h[n] * C[(b * L + t) * N + n];
    }
    y[i] = sum + D[c] * xt;
  }
}
template [[host_name("selective_scan_16")]] [[kernel]] decltype(selective_scan<16>) selective_scan<16>;

// By pairs (a, b) of h -> a h + b, 32 steps at once, the rest carried.
struct Step {
  float a, b;
  Step operator*(Step later) const { return {a * later.a, fma(later.a, b, later.b)}; }
};
static Step simd_scan(Step s, ushort lane) {
  for (ushort d = 1; d < 32; d <<= 1) {
    Step before = {simd_shuffle_up(s.a, d), simd_shuffle_up(s.b, d)};
    if (lane >= d) s = before * s;
  }
  return s;
}
kernel void linear_recurrence(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]],
                              device float* h [[buffer(2)]], constant uint& length [[buffer(3)]],
                              uint row [[threadgroup_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  a += row * length, b += row * length, h += row * length;
  float carry = 0;
  for (uint base = 0; base < length; base += 32) {
    const uint t = base + lane;
    Step s = t < length ? Step{a[t], b[t]} : Step{1, 0};
    s = simd_scan(s, lane);
    const float value = fma(s.a, carry, s.b);
    if (t < length) h[t] = value;
    carry = simd_shuffle(value, 31);
  }
}

// WKV: y = r (S + u k v); S <- w S + k v, with a state of 64 by 64 a head; a thread has a column of it as sixteen vectors, what
// all threads need of a step lies in threadgroup memory.
struct wkv_shape {
  uint batch, steps, heads;
};
[[kernel, max_total_threads_per_threadgroup(64)]] void
wkv_heads(device const float* k [[buffer(0)]], device const float* v [[buffer(1)]], device const float* r [[buffer(2)]],
          device const float* u [[buffer(3)]], device const float* w [[buffer(4)]], device const float* before [[buffer(5)]],
          device float* y [[buffer(6)]], device float* after [[buffer(7)]], constant wkv_shape& shape [[buffer(8)]],
          uint2 at [[threadgroup_position_in_grid]] /* head, batch */, uint j [[thread_index_in_threadgroup]]) {
  constexpr uint D = 64;
  threadgroup struct {
    float k[D], r[D], u[D], w[D];
  } now;
  threadgroup const float4 *ks = (threadgroup const float4*)now.k, *rs = (threadgroup const float4*)now.r,
                           *us = (threadgroup const float4*)now.u, *ws = (threadgroup const float4*)now.w;
  const ulong state_at = (ulong(at.y) * shape.heads + at.x) * D * D + j;
  float4 column[D / 4];
  for (uint i = 0; i < D; i++) column[i / 4][i % 4] = before[state_at + i * D];
  now.u[j] = u[at.x * D + j];
  for (uint t = 0; t < shape.steps; t++) {
    const ulong place = ((ulong(at.y) * shape.steps + t) * shape.heads + at.x) * D + j;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    now.k[j] = k[place], now.r[j] = r[place], now.w[j] = w[place];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float value = v[place];
    float4 sums = 0;
    for (uint i = 0; i < D / 4; i++) {
      const float4 kv = ks[i] * value;
      sums = fma(rs[i], fma(us[i], kv, column[i]), sums);
      column[i] = fma(column[i], ws[i], kv);
    }
    y[place] = (sums.x + sums.y) + (sums.z + sums.w);
  }
  for (uint i = 0; i < D; i++) after[state_at + i * D] = column[i / 4][i % 4];
}

// y[t, c] = silu(sum_k w[c, k] x[t + k - (K - 1), c] + bias[c]), with what came before in a state of K - 1.
template <typename T, int K>
[[kernel]] void causal_conv1d_silu(device const T* x [[buffer(0)]], device const T* state [[buffer(1)]],
                                   device const T* w [[buffer(2)]], device const T* bias [[buffer(3)]], device T* y [[buffer(4)]],
                                   device T* new_state [[buffer(5)]], constant uint& length [[buffer(6)]],
                                   constant uint& channels [[buffer(7)]], uint2 gid [[thread_position_in_grid]]) {
  const uint c = gid.x;
  const int t = gid.y;
  auto at = [=](int i) { return i < 0 ? state[(i + K - 1) * channels + c] : x[i * channels + c]; };
  float acc = float(bias[c]);
#pragma unroll
  for (int k = 0; k < K; k++) acc += float(w[c * K + k]) * float(at(t + k - (K - 1)));
  y[t * channels + c] = T(acc / (1.0f + exp(-acc)));
  if (t < K - 1) new_state[t * channels + c] = at(int(length) - (K - 1) + t);
}
template [[host_name("causal_conv1d_silu_f16_4")]] [[kernel]] decltype(causal_conv1d_silu<half, 4>) causal_conv1d_silu<half, 4>;
