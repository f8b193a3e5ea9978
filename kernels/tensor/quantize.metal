// Packed numbers of few bits with a scale (and mode affine: a bias) for each GROUP elements of a row: scales from elements,
// elements to codes, and back. Codes lie in words one after the other, the first in the lowest bits, also across words; rows
// are multiples of 32 elements, so that they begin with a word. The text stands behind the types T of elements and S of scales
// and the constants MODE (0: affine, code · scale + bias; 1: fp4_e2m1 · 2^(scale - 127); 2: fp8_e4m3 · 2^(scale - 127)),
// BITS and GROUP.

constant constexpr int MANTISSA = MODE == 1 ? 1 : 3, LEAST = MODE == 1 ? 0 : -6; // of formats; exponent of the least normal
constant constexpr int LARGEST = MODE == 1 ? 2 : 8;                             // exponent of the largest number
constant constexpr float MOST = MODE == 1 ? 6.0f : 448.0f;

inline float power_of_two(uint code) { return as_type<float>(code == 0 ? 0x400000u : code << 23); }

// As large as T allows.
inline float held(float x) {
  const float most = is_same<T, half>::value ? 65504.0f : is_same<T, bfloat>::value ? 0x1.fep127f : FLT_MAX;
  return T(clamp(x, -most, most));
}

// The edge farther from 0 becomes the bias; the scale is such that 0 is a whole number of steps from it.
inline float2 affine_of(float low, float high) {
  if (low > high) return float2(1.0f, 0.0f); // nothing finite
  const float levels = float((1 << BITS) - 1), range = high - low;
  const bool from_low = fabs(low) > fabs(high);
  const float edge = from_low ? low : high;
  float scale = max(range < INFINITY ? range / levels : high / levels - low / levels, 1e-7f);
  if (!from_low) scale = -scale;
  const float steps = rint(edge / scale);
  if (steps != 0.0f) scale = edge / steps;
  return float2(held(scale), steps != 0.0f ? held(edge) : 0.0f);
}

// A simdgroup per group. out: (groups) of S, of mode affine (2, groups): scales, biases.
kernel void smelt_quantize_scales(const device T *x [[buffer(0)]], device S *out [[buffer(1)]],
                                  constant uint &groups [[buffer(2)]], uint group [[threadgroup_position_in_grid]],
                                  uint simdgroup [[simdgroup_index_in_threadgroup]],
                                  uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint which = group * simdgroups + simdgroup;
  if (which >= groups) return;
  float low = INFINITY, high = -INFINITY;
  for (int i = 0; i < GROUP; i += 32) {
    const float value = float(x[long(which) * GROUP + i + lane]);
    const bool finite = fabs(value) < INFINITY;
    low = min(low, finite ? value : INFINITY);
    high = max(high, finite ? value : -INFINITY);
  }
  low = simd_min(low);
  high = simd_max(high);
  if (lane != 0) return;
  if (MODE == 0) {
    const float2 made = affine_of(low, high);
    out[which] = S(made[0]);
    out[long(groups) + which] = S(made[1]);
  } else {
    const int exponent = low > high ? 0 : int(as_type<uint>(max(fabs(low), fabs(high))) >> 23) - LARGEST;
    out[which] = S(max(exponent, 0));
  }
}

// Rounded to nearest even; saturates. NaN of fp8 is NaN, of fp4 0.
inline uint encode(float value) {
  const float size = min(fabs(value), MOST);
  const uint sign = as_type<uint>(value) >> 31 << (BITS - 1);
  if (value != value) return MODE == 1 ? 0u : 127u;
  if (size < (MODE == 1 ? 1.0f : 0x1p-6f)) return sign | uint(rint(size * (MODE == 1 ? 2.0f : 512.0f)));
  uint bits = as_type<uint>(size);
  bits += (1u << (22 - MANTISSA)) - 1 + (bits >> (23 - MANTISSA) & 1);
  return sign | ((bits >> (23 - MANTISSA)) - uint(127 + LEAST - 1 << MANTISSA));
}

inline float decode(uint code) {
  if (MODE == 0) return float(code);
  if (MODE == 1) return float(as_type<half>(ushort((code & 7) << 9 | (code & 8) << 12))) * 16384.0f;
  return (code & 127) == 127 ? NAN : float(as_type<half>(ushort((code & 127) << 7 | (code & 128) << 8))) * 256.0f;
}

// A simdgroup packs 32 elements into BITS words. Of mode affine what is not a number becomes code 0.
kernel void smelt_quantize(const device T *x [[buffer(0)]], const device S *scales [[buffer(1)]],
                           const device S *biases [[buffer(2)]], device uint *out [[buffer(3)]],
                           uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const float value = float(x[i]);
  uint code;
  if (MODE == 0) {
    const float scale = float(scales[i / GROUP]);
    const float whole = rint((value - float(biases[i / GROUP])) / scale);
    code = scale == 0.0f || whole != whole ? 0 : uint(clamp(whole, 0.0f, float((1 << BITS) - 1)));
  } else {
    const uint scale = uint(scales[i / GROUP]);
    code = encode(scale >= 254 ? value * 0x1p-126f * power_of_two(scale == 255 ? 255 : 126) : value * power_of_two(254 - scale));
  }
  const uint at = lane * BITS, word = at / 32, shift = at % 32;
  uint mine = 0;
  for (uint w = 0; w < uint(BITS); w++) {
    const uint part = w == word ? code << shift : w == word + 1 && shift + BITS > 32 ? code >> (32 - shift) : 0;
    const uint all = simd_or(part);
    mine = lane == w ? all : mine;
  }
  if (lane < uint(BITS)) out[long(i / 32) * BITS + lane] = mine;
}

// A thread per element.
kernel void smelt_dequantize(const device uint *words [[buffer(0)]], const device S *scales [[buffer(1)]],
                             const device S *biases [[buffer(2)]], device T *out [[buffer(3)]],
                             uint i [[thread_position_in_grid]]) {
  const uint at = i % 32 * BITS, shift = at % 32;
  const long word = long(i / 32) * BITS + at / 32;
  uint code = words[word] >> shift;
  if (32 % BITS != 0 && shift + BITS > 32) code |= words[word + 1] << (32 - shift);
  const float value = decode(code & ((1u << BITS) - 1));
  if (MODE == 0) {
    out[i] = T(value * float(scales[i / GROUP]) + float(biases[i / GROUP]));
  } else {
    const uint scale = uint(scales[i / GROUP]);
    out[i] = T(scale == 255 ? NAN : value * power_of_two(scale));
  }
}
