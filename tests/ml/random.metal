// Random numbers from counters: Philox 4x32-10, Threefry 2x32-20, PCG; bits to floats, Box–Muller, integers below a
// bound, dropout and its gradient from the same bits, Bernoulli masks by ballots, Gumbel sampling.
#include <metal_stdlib>
using namespace metal;

// ---- Philox.
struct philox {
  uint4 counter;
  uint2 key;
  static constexpr constant uint M0 = 0xD2511F53u, M1 = 0xCD9E8D57u, W0 = 0x9E3779B9u, W1 = 0xBB67AE85u;
  static uint4 round_once(uint4 c, uint2 k) {
    const uint hi0 = mulhi(M0, c.x), lo0 = M0 * c.x, hi1 = mulhi(M1, c.z), lo1 = M1 * c.z;
    return uint4(hi1 ^ c.y ^ k.x, lo1, hi0 ^ c.w ^ k.y, lo0);
  }
  uint4 operator()() const {
    uint4 c = counter;
    uint2 k = key;
    for (int i = 0; i < 9; i++, k += uint2(W0, W1)) c = round_once(c, k);
    return round_once(c, k);
  }
};
kernel void philox_bits(constant uint64_t& seed [[buffer(0)]], constant ulong& offset [[buffer(1)]], device uint4* out [[buffer(2)]],
                        uint id [[thread_position_in_grid]]) {
  philox r{uint4(uint(id), 0, uint(offset), uint(offset >> 32)), uint2(uint(seed), uint(seed >> 32))};
  out[id] = r();
}

METAL_FUNC float unit_float(uint bits) { return float(bits >> 8) * 0x1p-24f; }

kernel void philox_normal(constant uint2& seed [[buffer(0)]], device float* out [[buffer(1)]], constant uint& n [[buffer(2)]],
                          constant float& mean [[buffer(3)]], constant float& stdv [[buffer(4)]],
                          uint id [[thread_position_in_grid]]) {
  const uint4 bits = philox{uint4(id, 0, 0, 0), seed}();
  float z[4];
  for (uint j = 0; j < 2; j++) {
    const float u1 = 1.0f - unit_float(bits[2 * j]), u2 = unit_float(bits[2 * j + 1]);
    const float radius = sqrt(-2.0f * log(u1));
    float c;
    const float s = sincos(2.0f * M_PI_F * u2, c);
    z[2 * j] = radius * c, z[2 * j + 1] = radius * s;
  }
  for (uint j = 0; j < 4; j++)
    if (id * 4 + j < n) out[id * 4 + j] = fma(z[j], stdv, mean);
}

template <typename T>
kernel void philox_randint(constant uint2& seed, device T* out, constant uint& n, constant int64_t& low, constant uint64_t& range,
                           uint id [[thread_position_in_grid]]) {
  const uint4 bits = philox{uint4(id, 0, 0, 0), seed}();
  // Two words a number: the high half of the product of 64 by 64 bits.
  for (uint j = 0; j < 2; j++) {
    const ulong word = (ulong(bits[2 * j + 1]) << 32) | bits[2 * j];
    if (id * 2 + j < n) out[id * 2 + j] = static_cast<T>(uint64_t(low) + mulhi(word, range));
  }
}
template [[host_name("philox_randint_int64")]] kernel decltype(philox_randint<int64_t>) philox_randint<int64_t>;
template [[host_name("philox_randint_uchar")]] kernel decltype(philox_randint<uchar>) philox_randint<uchar>;

// ---- Threefry. Each key gives a run of bytes: its words are those of the first outputs of all counters, then those of
// the second; a run may end within a word.
struct threefry {
  uint4 schedule; // the key, its parity word, nothing
  explicit threefry(uint2 key) { schedule = uint4{key.x, key.y, 0x1BD11BDAu ^ key.x ^ key.y}; }
  template <ushort... turns> static void mix(thread uint2& x) {
    ((x.x += x.y, x.y = rotate(x.y, uint(turns)) ^ x.x), ...);
  }
  uint2 operator()(uint2 counter) const {
    uint2 x = counter + schedule.xy;
    for (uint block = 1; block <= 5; ++block) {
      if (block & 1) mix<13, 15, 26, 6>(x);
      else mix<17, 29, 16, 24>(x);
      x += uint2(schedule[block % 3], schedule[(block + 1) % 3] + block);
    }
    return x;
  }
};
kernel void threefry_fill(device const uint2* keys [[buffer(0)]], device uchar* out [[buffer(1)]],
                          constant uint& run [[buffer(2)]], uint2 at [[thread_position_in_grid]],
                          uint2 count [[threads_per_grid]]) {
  const uint words = (run + 3) / 4, second = at.y + count.y;
  const uint2 made = threefry(keys[at.x])(uint2(at.y, second < words ? second : 0));
  device uchar* mine = out + ulong(at.x) * run;
  for (ushort half_ = 0; half_ < 2; half_++) {
    const uchar4 bytes = as_type<uchar4>(made[half_]);
    const uint first = 4 * (half_ ? second : at.y);
    for (ushort b = 0; b < 4 && first + b < run; b++) mine[first + b] = bytes[b];
  }
}

// ---- Dropout: the mask is never stored; forwards and back draw the same bits.
template <typename T>
METAL_FUNC T dropped(T x, float p, uint index, uint2 seed) {
  const uint4 bits = philox{uint4(index / 4, 0, 7, 0), seed}();
  const bool keep = unit_float(bits[index % 4]) >= p;
  return keep ? T(float(x) / (1.0f - p)) : T(0);
}
#define DROPOUT_OP(T, NAME)                                                                                            \
  kernel void NAME(device const T* x [[buffer(0)]], device T* y [[buffer(1)]], constant float& p [[buffer(2)]],        \
                   constant uint2& seed [[buffer(3)]], constant uint& n [[buffer(4)]], uint i [[thread_position_in_grid]], \
                   uint stride [[threads_per_grid]]) {                                                                 \
    for (uint k = i; k < n; k += stride) y[k] = dropped<T>(x[k], p, k, seed);                                          \
  }
DROPOUT_OP(float, dropout_f32)
DROPOUT_OP(half, dropout_f16)

// A simdgroup's 32 decisions as one word.
kernel void bernoulli_words(constant uint2& seed, device const float* p, device uint* words, constant uint& n,
                            uint i [[thread_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  uint state = i * 747796405u + seed.x; // PCG
  state = state * 1664525u + 1013904223u;
  uint word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
  word = (word >> 22u) ^ word;
  const bool yes = i < n && unit_float(word ^ seed.y) < p[min(i, n - 1)];
  const uint mask = static_cast<uint>(static_cast<simd_vote::vote_t>(simd_ballot(yes)));
  if (lane == 0) words[i / 32] = mask;
}

// argmax(logits + Gumbel noise), a row a simdgroup.
kernel void gumbel_argmax(constant uint2& seed, device const half* logits, device int* token, constant int& vocab,
                          uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float best = -INFINITY;
  int at = -1;
  for (int i = lane; i < vocab; i += 32) {
    const uint4 bits = philox{uint4(uint(i), row, 0, 0), seed}();
    const float u = (float(bits.x >> 8) + 0.5f) * 0x1p-24f;
    const float v = float(logits[row * vocab + i]) - log(-log(u));
    if (v > best) best = v, at = i;
  }
  const float top = simd_max(best);
  at = simd_min(best == top ? at : INT_MAX);
  if (simd_is_first()) token[row] = at;
}
