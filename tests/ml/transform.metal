// Fourier transforms: in threadgroup memory by a plan of radices given as a function constant, of complex or real input, and
// pass by pass in device memory. Hadamard transforms in registers, across lanes and across simdgroups.
#include <metal_math>
#include <metal_stdlib>
using namespace metal;

// One radix a hexadecimal digit, the first stage lowest: 0x288 is 8 * 8 * 2.
constant uint plan [[function_constant(3)]];
constant bool inverse [[function_constant(0)]];

static inline float2 times(float2 a, float2 b) { return float2(fma(a.x, b.x, -a.y * b.y), fma(a.x, b.y, a.y * b.x)); }
static inline float2 turned(float2 a) { return float2(a.y, -a.x); } // by a quarter, clockwise

// Discrete transforms of a few numbers in registers: even lengths by halves, odd ones by their definition in pairs.
template <int R> struct small_dft {
  static void run(thread float2 (&v)[R]) {
    constexpr float turn = 2 * M_PI_F / R;
    float2 out[R];
    out[0] = v[0];
    for (int i = 1; i < R; i++) out[0] += v[i];
    for (int k = 1; k <= R / 2; k++) {
      float2 even = v[0], odd = 0;
      for (int i = 1; i <= R / 2; i++) {
        const float angle = turn * (i * k % R);
        even += (v[i] + v[R - i]) * precise::cos(angle);
        odd += (v[i] - v[R - i]) * precise::sin(angle);
      }
      out[k] = even + turned(odd);
      out[R - k] = even - turned(odd);
    }
    for (int i = 0; i < R; i++) v[i] = out[i];
  }
};
template <> struct small_dft<2> {
  static void run(thread float2 (&v)[2]) {
    const float2 sum = v[0] + v[1];
    v[1] = v[0] - v[1];
    v[0] = sum;
  }
};
template <int R> struct dft_by_halves {
  static void run(thread float2 (&v)[R]) {
    float2 even[R / 2], odd[R / 2];
#pragma unroll
    for (int i = 0; i < R / 2; i++) even[i] = v[2 * i], odd[i] = v[2 * i + 1];
    small_dft<R / 2>::run(even);
    small_dft<R / 2>::run(odd);
#pragma unroll
    for (int i = 0; i < R / 2; i++) {
      const float eighth = M_SQRT1_2_F;
      float2 o = odd[i];
      if (R == 4 && i == 1) o = turned(o);
      if (R == 8 && i == 1) o = (o + turned(o)) * eighth;
      if (R == 8 && i == 2) o = turned(o);
      if (R == 8 && i == 3) o = (turned(o) - o) * eighth;
      v[i] = even[i] + o;
      v[i + R / 2] = even[i] - o;
    }
  }
};
template <> struct small_dft<4> : dft_by_halves<4> {};
template <> struct small_dft<8> : dft_by_halves<8> {};

// One stage from one buffer to the other: `done` is the product of the radices so far.
template <int R>
void stage(threadgroup const float2* from, threadgroup float2* to, int n, int done, int t, int threads) {
  const int apart = n / R;
  for (int j = t; j < apart; j += threads) {
    const int inner = j % done;
    float2 v[R];
    for (int r = 0; r < R; r++) {
      float c;
      const float s = precise::sincos(-2 * M_PI_F * (inner * r) / (done * R), c);
      v[r] = times(from[j + r * apart], float2(c, s));
    }
    small_dft<R>::run(v);
    const int start = (j - inner) * R + inner;
    for (int r = 0; r < R; r++) to[start + r * done] = v[r];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

template <typename In> float2 as_complex(In v);
template <> float2 as_complex(float v) { return float2(v, 0); }
template <> float2 as_complex(float2 v) { return inverse ? float2(v.x, -v.y) : v; }

// A row a threadgroup. Of real input only the first half and one are written.
template <typename In, int LONGEST>
[[kernel]] void fft_rows(device const In* in [[buffer(0)]], device float2* out [[buffer(1)]], constant int& n [[buffer(2)]],
                         uint row [[threadgroup_position_in_grid]], uint thread_ [[thread_position_in_threadgroup]],
                         uint width [[threads_per_threadgroup]]) {
  const int t = thread_, threads = width;
  threadgroup float2 buffers[2][LONGEST];
  for (int i = t; i < n; i += threads) buffers[0][i] = as_complex<In>(in[row * n + i]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int done = 1, now = 0;
  for (uint left = plan; left != 0; left >>= 4) {
    threadgroup float2 *from = buffers[now], *to = buffers[now ^ 1];
    const int radix = left & 15;
    switch (radix) {
      case 2: stage<2>(from, to, n, done, t, threads); break;
      case 3: stage<3>(from, to, n, done, t, threads); break;
      case 4: stage<4>(from, to, n, done, t, threads); break;
      case 5: stage<5>(from, to, n, done, t, threads); break;
      case 8: stage<8>(from, to, n, done, t, threads); break;
    }
    done *= radix;
    now ^= 1;
  }
  const int count = is_same_v<In, float> ? n / 2 + 1 : n;
  for (int i = t; i < count; i += threads) {
    const float2 v = buffers[now][i];
    out[row * count + i] = inverse ? float2(v.x, -v.y) / n : v;
  }
}
template [[host_name("fft_rows_complex")]] [[kernel]] decltype(fft_rows<float2, 1024>) fft_rows<float2, 1024>;
template [[host_name("fft_rows_real")]] [[kernel]] decltype(fft_rows<float, 512>) fft_rows<float, 512>;

// A step of radix two from memory to memory; the plain textbook form.
kernel void fft_pass_radix2(device const float2* in [[buffer(0)]], device float2* out [[buffer(1)]], constant uint& half_n [[buffer(2)]],
                            constant uint& p [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  const uint k = i & (p - 1);
  const float2 a = in[i], b = in[i + half_n];
  float c;
  const float s = sincos(-M_PI_F * float(k) / float(p), c);
  const float2 t = float2(b.x * c - b.y * s, b.x * s + b.y * c);
  const uint j = (i << 1) - k;
  out[j] = a + t;
  out[j + p] = a - t;
}

// ---- Hadamard. A thread has R neighbours, a simdgroup 32 times as many, and SIMDGROUPS of them a row.

template <typename T, ushort R, ushort SIMDGROUPS>
[[kernel, max_total_threads_per_threadgroup(SIMDGROUPS * 32)]] void
hadamard_rows(device const vec<T, R>* in [[buffer(0)]], device vec<T, R>* out [[buffer(1)]], constant float& scale [[buffer(2)]],
              uint i [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]],
              ushort t [[thread_index_in_threadgroup]]) {
  vec<float, R> v = vec<float, R>(in[i]);
  for (ushort h = 1; h < R; h *= 2) {
    const vec<float, R> old = v;
    for (ushort k = 0; k < R; k++) v[k] = k & h ? old[k ^ h] - old[k] : old[k] + old[k ^ h];
  }
  for (ushort h = 1; h < 32; h *= 2) {
    const vec<float, R> other = simd_shuffle_xor(v, h);
    v = select(v + other, other - v, vec<bool, R>(bool(lane & h)));
  }
  if (SIMDGROUPS > 1) {
    threadgroup vec<float, R> shared[SIMDGROUPS * 32];
    for (ushort h = 32; h < SIMDGROUPS * 32; h *= 2) {
      shared[t] = v;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const vec<float, R> other = shared[t ^ h];
      v = t & h ? other - v : v + other;
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  }
  out[i] = vec<T, R>(v * scale);
}
template [[host_name("hadamard_f32_512")]] [[kernel]] decltype(hadamard_rows<float, 4, 4>) hadamard_rows<float, 4, 4>;
template [[host_name("hadamard_f16_64")]] [[kernel]] decltype(hadamard_rows<half, 2, 1>) hadamard_rows<half, 2, 1>;

// Across lanes only.
kernel void hadamard_simd(device const float* in, device float* out, uint i [[thread_position_in_grid]],
                          ushort lane [[thread_index_in_simdgroup]]) {
  float v = in[i];
  for (ushort d = 1; d < 32; d <<= 1) {
    const float other = simd_shuffle_xor(v, d);
    v = lane & d ? other - v : v + other;
  }
  out[i] = v;
}
