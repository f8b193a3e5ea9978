// Random numbers that depend on a key and an element's place only: Philox4x32-10 (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", 2011). Element i takes word i % 4 of the counter (i / 4, draw, 0), draw 0 or, for a second word, 1;
// keys split from a key take the counters (i, 0, 1). Logarithm and cosine are written out, in operations that every device
// rounds alike. The text stands behind the type T and the constant KIND.

constant constexpr int BITS = 0, UNIFORM = 1, NORMAL = 2, GUMBEL = 3, INTEGERS = 4;

struct random_size {
  ulong count;              // elements
  ulong span;               // of whole numbers: high - low
  long low;                 // of whole numbers
  float start, width;       // of uniform numbers
  float first, last;        // the least and largest of them in T
};

inline uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; round++) {
    const uint high0 = mulhi(0xD2511F53u, counter[0]), low0 = 0xD2511F53u * counter[0];
    const uint high1 = mulhi(0xCD9E8D57u, counter[2]), low1 = 0xCD9E8D57u * counter[2];
    counter = uint4(high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0);
    key += uint2(0x9E3779B9u, 0xBB67AE85u);
  }
  return counter;
}

// [0, 1) in steps of 2^-24.
inline float unit(uint bits) { return float(bits >> 8) * 0x1p-24f; }

// The same rounded down to T, so that 1 is never reached.
inline float unit_below(uint bits) {
  const uint kept = sizeof(T) == 4 ? 23 : is_same<T, half>::value ? 10 : 7;
  return as_type<float>(as_type<uint>(unit(bits)) & ~0u << (23 - kept));
}

// The natural logarithm of a normal number above 0: x = 2^e m, m about 1, and log m = 2 atanh((m - 1) / (m + 1)).
inline float log_of(float x) {
  const uint bits = as_type<uint>(x) - 0x3f3504f3u; // of sqrt(1 / 2)
  const float e = float(int(bits) >> 23), less = as_type<float>((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = less / (2.0f + less), z = s * s;
  const float series = fma(fma(fma(fma(2.0f / 9, z, 2.0f / 7), z, 2.0f / 5), z, 2.0f / 3), z * s, s + s);
  return fma(e, 0.693359375f, fma(e, -2.12194440e-4f, series));
}

// cos(2 pi u), 0 <= u < 1: Taylor's series around the nearest quarter.
inline float cos_of_turns(float u) {
  const float quarter = rint(4.0f * u), a = fma(4.0f, u, -quarter) * 1.57079633f, z = a * a;
  const float even = fma(fma(fma(fma(fma(-1.0f / 3628800, z, 1.0f / 40320), z, -1.0f / 720), z, 1.0f / 24), z, -0.5f), z, 1.0f);
  const float odd = fma(fma(fma(fma(1.0f / 362880, z, -1.0f / 5040), z, 1.0f / 120), z, -1.0f / 6), z * a, a);
  const int which = int(quarter) & 3;
  return which == 0 ? even : which == 1 ? -odd : which == 2 ? -even : odd;
}

inline T element_of(uint first, uint second, constant random_size &size) {
  if (KIND == UNIFORM) {
    return T(clamp(fma(unit_below(first), size.width, size.start), size.first, size.last));
  }
  if (KIND == NORMAL) return T(sqrt(-2.0f * log_of(unit(first) + 0x1p-24f)) * cos_of_turns(unit(second)));
  if (KIND == GUMBEL) return T(-log_of(-log_of(fma(float(first >> 9), 0x1p-23f, 0x1p-24f))));
  const ulong word = ulong(second) << 32 | first;
  if (KIND == INTEGERS) return T(size.low + long(mulhi(word, size.span)));
  return T(is_same<T, bool>::value ? word & 1 : word);
}

// A thread computes four elements.
kernel void smelt_random(const device uint *key [[buffer(0)]], device T *out [[buffer(1)]],
                         constant random_size &size [[buffer(2)]], uint block [[thread_position_in_grid]]) {
  const uint2 keys = uint2(key[0], key[1]);
  const bool two = KIND == NORMAL || KIND == INTEGERS || (KIND == BITS && sizeof(T) == 8);
  const uint4 first = philox(uint4(block, 0, 0, 0), keys), second = two ? philox(uint4(block, 0, 1, 0), keys) : 0;
  vec<T, 4> made;
#pragma unroll
  for (int i = 0; i < 4; i++) made[i] = element_of(first[i], second[i], size);
  out += 4 * long(block);
  if (4 * ulong(block) + 4 <= size.count) {
    *(device vec<T, 4> *)out = made;
  } else {
    for (int i = 0; 4 * ulong(block) + i < size.count; i++) out[i] = made[i];
  }
}

// (count, 2) keys.
kernel void smelt_random_split(const device uint *key [[buffer(0)]], device uint2 *out [[buffer(1)]],
                               uint i [[thread_position_in_grid]]) {
  out[i] = philox(uint4(i, 0, 0, 1), uint2(key[0], key[1])).xy;
}
