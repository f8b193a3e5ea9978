// Layer norm and RMS norm of rows, with their gradients by x. x, g, out: (rows, columns) of T; weight, bias: (columns)
// of T, used as WEIGHT and BIAS say. The text stands behind team.metal, the type T and the constants SIMDGROUPS,
// CENTRED (layer norm: the mean is subtracted), WEIGHT, BIAS and ROWS.

struct norm_size { row_size size; float eps; };

// Sums of a row, taken in one pass: of the distances from `shift` and of their squares. shift is the mean of the first
// elements, so that squares are about as large as the variance (0 for RMS norm).
struct norm_sums { float shift, sum, squares; };

inline norm_sums sums_begin(team t, const device T *x, uint columns) {
  const uint first = min(columns, TEAM);
  const float mine = CENTRED && t.me < first ? float(x[t.me]) : 0.0f;
  return {CENTRED ? team_sum(t, mine) / float(first) : 0.0f, 0.0f, 0.0f};
}
inline void sums_add(thread norm_sums &sums, T x) {
  const float d = float(x) - sums.shift;
  if (CENTRED) sums.sum += d;
  sums.squares = fma(d, d, sums.squares);
}
// The mean (0 for RMS norm) and 1 / sqrt(variance + eps).
inline float2 sums_end(team t, norm_sums sums, uint columns, float eps) {
  const float away = CENTRED ? team_sum(t, sums.sum) / float(columns) : 0.0f;
  const float variance = max(fma(-away, away, team_sum(t, sums.squares) / float(columns)), 0.0f);
  return float2(sums.shift + away, precise::rsqrt(variance + eps));
}
inline float2 norm_of(team t, const device T *x, uint columns, float eps) {
  norm_sums sums = sums_begin(t, x, columns);
  for (uint i = t.me; i < columns; i += TEAM) sums_add(sums, x[i]);
  return sums_end(t, sums, columns, eps);
}

inline T normal_of(T x, float2 norm, const device T *weight, const device T *bias, uint i) {
  float y = (float(x) - norm[0]) * norm[1];
  if (WEIGHT) y *= float(weight[i]);
  if (BIAS) y += float(bias[i]);
  return T(y);
}

// A team takes ROWS rows. While it writes one, it adds up the next, so that memory is read and written at the same time.
kernel void smelt_norm(const device T *x [[buffer(0)]], const device T *weight [[buffer(1)]],
                       const device T *bias [[buffer(2)]], device T *out [[buffer(3)]],
                       constant norm_size &size [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float parts[32];
  const team t = team_of(group, simdgroup, simdgroups, lane, parts);
  const uint first = t.row * ROWS, columns = size.size.columns;
  if (first >= size.size.rows) return;
  const uint last = min(first + ROWS, size.size.rows) - 1;
  x += long(first) * columns;
  out += long(first) * columns;
  float2 norm = norm_of(t, x, columns, size.eps);
  for (uint row = first; row < last; row++, x += columns, out += columns) {
    norm_sums sums = sums_begin(t, x + columns, columns);
    for (uint i = t.me; i < columns; i += TEAM) {
      out[i] = normal_of(x[i], norm, weight, bias, i);
      sums_add(sums, x[columns + i]);
    }
    norm = sums_end(t, sums, columns, size.eps);
  }
  for (uint i = t.me; i < columns; i += TEAM) out[i] = normal_of(x[i], norm, weight, bias, i);
}

// ---- Few long rows on a CPU: a simdgroup takes a chunk of a row.

struct long_size { uint columns, chunk, chunks; float eps; };

// parts: (rows, chunks, 2) floats: mean and sum of squared distances from it, or for RMS norm 0 and sum of squares.
kernel void smelt_norm_parts(const device T *x [[buffer(0)]], device float2 *parts [[buffer(1)]],
                             constant long_size &size [[buffer(2)]], uint2 at [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float unused[1];
  const team t = {0, lane, 0, unused};
  const uint begin = at.x * size.chunk, count = min(size.chunk, size.columns - begin);
  x += long(at.y) * size.columns + begin;
  norm_sums sums = sums_begin(t, x, count);
  for (uint i = lane; i < count; i += 32) sums_add(sums, x[i]);
  const float away = CENTRED ? simd_sum(sums.sum) / float(count) : 0.0f;
  const float squares = simd_sum(sums.squares);
  if (lane == 0) parts[at.y * size.chunks + at.x] = float2(sums.shift + away, max(squares - away * away * float(count), 0.0f));
}

// The row's mean and 1 / sqrt(variance + eps) from those of its chunks.
inline float2 norm_of_parts(const device float2 *parts, constant long_size &size, uint lane) {
  float sum = 0.0f, squares = 0.0f;
  for (uint i = lane; i < size.chunks; i += 32) sum += parts[i][0] * float(min(size.chunk, size.columns - i * size.chunk));
  const float mean = simd_sum(sum) / float(size.columns);
  for (uint i = lane; i < size.chunks; i += 32) {
    const float d = parts[i][0] - mean;
    squares += fma(d * d, float(min(size.chunk, size.columns - i * size.chunk)), parts[i][1]);
  }
  return float2(mean, precise::rsqrt(simd_sum(squares) / float(size.columns) + size.eps));
}

kernel void smelt_norm_long(const device T *x [[buffer(0)]], const device T *weight [[buffer(1)]],
                            const device T *bias [[buffer(2)]], device T *out [[buffer(3)]],
                            const device float2 *parts [[buffer(4)]], constant long_size &size [[buffer(5)]],
                            uint2 at [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  const float2 norm = norm_of_parts(parts + at.y * size.chunks, size, lane);
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  x += long(at.y) * size.columns;
  out += long(at.y) * size.columns;
  for (uint i = begin + lane; i < end; i += 32) out[i] = normal_of(x[i], norm, weight, bias, i);
}

// With h = g weight and n the normalised row: out = (h - mean(h) - n mean(h n)) / deviation, without mean(h) for RMS norm.
kernel void smelt_norm_vjp(const device T *x [[buffer(0)]], const device T *weight [[buffer(1)]],
                           const device T *g [[buffer(2)]], device T *out [[buffer(3)]],
                           constant norm_size &size [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
                           uint simdgroup [[simdgroup_index_in_threadgroup]],
                           uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float parts[32];
  const team t = team_of(group, simdgroup, simdgroups, lane, parts);
  if (t.row >= size.size.rows) return;
  const uint columns = size.size.columns;
  x += long(t.row) * columns;
  g += long(t.row) * columns;
  out += long(t.row) * columns;
  const float2 norm = norm_of(t, x, columns, size.eps);
  float mean = 0.0f, along = 0.0f;
  for (uint i = t.me; i < columns; i += TEAM) {
    const float h = WEIGHT ? float(g[i]) * float(weight[i]) : float(g[i]);
    if (CENTRED) mean += h;
    along += h * ((float(x[i]) - norm[0]) * norm[1]);
  }
  if (CENTRED) mean = team_sum(t, mean) / float(columns);
  along = team_sum(t, along) / float(columns);
  for (uint i = t.me; i < columns; i += TEAM) {
    const float h = WEIGHT ? float(g[i]) * float(weight[i]) : float(g[i]);
    const float n = (float(x[i]) - norm[0]) * norm[1];
    out[i] = T((h - mean - n * along) * norm[1]);
  }
}
