// Discrete Fourier transforms of rows of complex numbers, (rows, n), by Stockham's algorithm: each pass takes one factor
// of n and leaves the elements in order. The text stands behind nothing.

struct fft_size {
  uint n, factor_count;
  uint factors[16]; // 4 or primes; their product is n
  float scale;      // of the result
  float direction;  // -1, or 1 for the inverse
};

constant constexpr uint MOST = 2048; // elements of a row, twice in threadgroup memory

inline float2 times(float2 a, float2 b) { return float2(a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]); }

// roots[k] = exp(direction 2 pi i k / n).
kernel void smelt_fft_roots(device float2 *roots [[buffer(0)]], constant fft_size &size [[buffer(1)]],
                            uint k [[thread_position_in_grid]]) {
  const float half_turns = 2.0f * float(k) / float(size.n);
  roots[k] = float2(cospi(half_turns), size.direction * sinpi(half_turns));
}

// One butterfly: elements j + q n / r of `from`, with the roots of before = the product of earlier factors.
inline void butterfly(const threadgroup float2 *from, threadgroup float2 *to, const device float2 *roots, uint n, uint r,
                      uint before, uint j, float direction) {
  const uint k = j % before, step = n / r, turn = step / before;
  const uint first = (j - k) * r + k;
  if (r == 4) {
    const float2 a = from[j], b = times(from[j + step], roots[k * turn]);
    const float2 c = times(from[j + 2 * step], roots[2 * k * turn]), d = times(from[j + 3 * step], roots[3 * k * turn]);
    const float2 ac = a + c, bd = b + d, less = a - c, other = (b - d) * direction;
    to[first] = ac + bd;
    to[first + before] = float2(less[0] - other[1], less[1] + other[0]);
    to[first + 2 * before] = ac - bd;
    to[first + 3 * before] = float2(less[0] + other[1], less[1] - other[0]);
  } else if (r == 2) {
    const float2 a = from[j], b = times(from[j + step], roots[k * turn]);
    to[first] = a + b;
    to[first + before] = a - b;
  } else {
    for (uint p = 0; p < r; p++) {
      float2 sum = 0.0f;
      for (uint q = 0; q < r; q++) sum += times(from[j + q * step], roots[(q * k * turn + p * q % r * step) % n]);
      to[first + p * before] = sum;
    }
  }
}

// A threadgroup per row.
kernel void smelt_fft_rows(const device float2 *x [[buffer(0)]], device float2 *out [[buffer(1)]],
                           const device float2 *roots [[buffer(2)]], constant fft_size &size [[buffer(3)]],
                           uint row [[threadgroup_position_in_grid]], uint me [[thread_index_in_threadgroup]],
                           uint threads [[threads_per_threadgroup]]) {
  threadgroup float2 first[MOST], second[MOST];
  const uint n = size.n;
  for (uint i = me; i < n; i += threads) first[i] = x[long(row) * n + i];
  uint before = 1;
  bool in_first = true;
  for (uint pass = 0; pass < size.factor_count; pass++) {
    const uint r = size.factors[pass];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = me; j < n / r; j += threads) {
      if (in_first) butterfly(first, second, roots, n, r, before, j, size.direction);
      else butterfly(second, first, roots, n, r, before, j, size.direction);
    }
    before *= r;
    in_first = !in_first;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = me; i < n; i += threads) out[long(row) * n + i] = (in_first ? first[i] : second[i]) * size.scale;
}

// Rows of a longer transform, (rows, columns) of each matrix: element (j, k) turns by the root j k of n.
struct turn_size { uint rows, columns; float direction, turn; };
kernel void smelt_fft_turn(device float2 *x [[buffer(0)]], constant turn_size &size [[buffer(1)]],
                           uint3 at [[thread_position_in_grid]]) {
  const uint n = size.rows * size.columns;
  const float half_turns = 2.0f * float((at.x * at.y) % n) / float(n);
  const long i = (long(at.z) * size.rows + at.y) * size.columns + at.x;
  x[i] = times(x[i], float2(cospi(half_turns), size.direction * sinpi(half_turns)));
}

// Bluestein's chirp exp(direction pi i k² / n) for k < n, 0 behind, with its mirror image if `around`: (m) elements.
struct chirp_size { uint n, m, rows, around; float direction, scale; };
inline float2 chirp_of(uint k, uint n, float direction) {
  const ulong square = ulong(k) * k % (2 * ulong(n));
  const float half_turns = float(square) / float(n);
  return float2(cospi(half_turns), direction * sinpi(half_turns));
}
kernel void smelt_fft_chirp(device float2 *out [[buffer(0)]], constant chirp_size &size [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  const uint k = size.around && i > size.m - size.n ? size.m - i : i;
  out[i] = k < size.n ? chirp_of(k, size.n, size.direction) : 0.0f;
}
// (rows, n) times the chirp, filled up to (rows, m). Threads: (element, row).
kernel void smelt_fft_spread(const device float2 *x [[buffer(0)]], device float2 *out [[buffer(1)]],
                             constant chirp_size &size [[buffer(2)]], uint2 at [[thread_position_in_grid]]) {
  float2 value = 0.0f;
  if (at.x < size.n) value = times(x[long(at.y) * size.n + at.x], chirp_of(at.x, size.n, size.direction));
  out[long(at.y) * size.m + at.x] = value;
}
// (rows, m) times (m), in place.
kernel void smelt_fft_times(device float2 *x [[buffer(0)]], const device float2 *y [[buffer(1)]],
                            constant chirp_size &size [[buffer(2)]], uint2 at [[thread_position_in_grid]]) {
  x[long(at.y) * size.m + at.x] = times(x[long(at.y) * size.m + at.x], y[at.x]);
}
// The first n of each row of m, times the chirp and the scale.
kernel void smelt_fft_gather(const device float2 *x [[buffer(0)]], device float2 *out [[buffer(1)]],
                             constant chirp_size &size [[buffer(2)]], uint2 at [[thread_position_in_grid]]) {
  out[long(at.y) * size.n + at.x] =
      times(x[long(at.y) * size.m + at.x], chirp_of(at.x, size.n, size.direction)) * size.scale;
}
