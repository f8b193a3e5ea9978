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

// ---- Few long rows: a team computes a chunk of a row.

// parts: (rows, chunks, 2) floats: the mean and the sum of squared distances from it; for RMS norm 0 and the sum of squares.
kernel void smelt_norm_parts(const device T *x [[buffer(0)]], device float2 *parts [[buffer(1)]],
                             constant long_size &size [[buffer(2)]], uint2 at [[threadgroup_position_in_grid]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[32];
  const team t = team_of_chunk(simdgroup, lane, shared);
  const uint begin = at.x * size.chunk, count = min(size.chunk, size.columns - begin);
  x += long(at.y) * size.columns + begin;
  norm_sums sums = sums_begin(t, x, count);
  uint i = t.me;
  for (; AHEAD > 1 && i + (AHEAD - 1) * TEAM < count; i += AHEAD * TEAM)
    for (uint k = 0; k < AHEAD; k++) sums_add(sums, x[i + k * TEAM]);
  for (; i < count; i += TEAM) sums_add(sums, x[i]);
  const float away = CENTRED ? team_sum(t, sums.sum) / float(count) : 0.0f;
  const float squares = team_sum(t, sums.squares);
  if (t.me == 0) parts[at.y * size.chunks + at.x] = float2(sums.shift + away, max(squares - away * away * float(count), 0.0f));
}

// The row's mean and 1 / sqrt(variance + eps), from the parts of its chunks.
inline float2 norm_of_parts(team t, const device float2 *parts, constant long_size &size) {
  float sum = 0.0f, squares = 0.0f;
  for (uint i = t.me; i < size.chunks; i += TEAM) sum += parts[i][0] * float(min(size.chunk, size.columns - i * size.chunk));
  const float mean = team_sum(t, sum) / float(size.columns);
  for (uint i = t.me; i < size.chunks; i += TEAM) {
    const float d = parts[i][0] - mean;
    squares += fma(d * d, float(min(size.chunk, size.columns - i * size.chunk)), parts[i][1]);
  }
  return float2(mean, precise::rsqrt(team_sum(t, squares) / float(size.columns) + size.eps));
}

kernel void smelt_norm_long(const device T *x [[buffer(0)]], const device T *weight [[buffer(1)]],
                            const device T *bias [[buffer(2)]], device T *out [[buffer(3)]],
                            const device float2 *parts [[buffer(4)]], constant long_size &size [[buffer(5)]],
                            uint2 at [[threadgroup_position_in_grid]],
                            uint simdgroup [[simdgroup_index_in_threadgroup]],
                            uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[32];
  const team t = team_of_chunk(simdgroup, lane, shared);
  const float2 norm = norm_of_parts(t, parts + at.y * size.chunks, size);
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  x += long(at.y) * size.columns;
  out += long(at.y) * size.columns;
  uint i = begin + t.me;
  for (; AHEAD > 1 && i + (AHEAD - 1) * TEAM < end; i += AHEAD * TEAM) {
    T a[AHEAD];
    for (uint k = 0; k < AHEAD; k++) a[k] = x[i + k * TEAM];
    for (uint k = 0; k < AHEAD; k++) out[i + k * TEAM] = normal_of(a[k], norm, weight, bias, i + k * TEAM);
  }
  for (; i < end; i += TEAM) out[i] = normal_of(x[i], norm, weight, bias, i);
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

// The same of long rows. parts: as above; more: (rows, chunks, 2) floats, a chunk's sums of h and of h n.
inline float weighed(float g, const device T *weight, uint i) { return WEIGHT ? g * float(weight[i]) : g; }
inline void add_along(const device T *x, const device T *weight, const device T *g, uint i, float2 norm, thread float &sum,
                      thread float &along) {
  const float h = weighed(float(g[i]), weight, i);
  if (CENTRED) sum += h;
  along += h * ((float(x[i]) - norm[0]) * norm[1]);
}

kernel void smelt_normvjp_parts(const device T *x [[buffer(0)]], const device T *weight [[buffer(1)]],
                                const device T *g [[buffer(2)]], const device float2 *parts [[buffer(3)]],
                                device float2 *more [[buffer(4)]], constant long_size &size [[buffer(5)]],
                                uint2 at [[threadgroup_position_in_grid]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[32];
  const team t = team_of_chunk(simdgroup, lane, shared);
  const float2 norm = norm_of_parts(t, parts + at.y * size.chunks, size);
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  x += long(at.y) * size.columns;
  g += long(at.y) * size.columns;
  float sum = 0.0f, along = 0.0f;
  uint i = begin + t.me;
  for (; AHEAD > 1 && i + (AHEAD - 1) * TEAM < end; i += AHEAD * TEAM)
    for (uint k = 0; k < AHEAD; k++) add_along(x, weight, g, i + k * TEAM, norm, sum, along);
  for (; i < end; i += TEAM) add_along(x, weight, g, i, norm, sum, along);
  if (CENTRED) sum = team_sum(t, sum);
  along = team_sum(t, along);
  if (t.me == 0) more[at.y * size.chunks + at.x] = float2(sum, along);
}

kernel void smelt_normvjp_long(const device T *x [[buffer(0)]], const device T *weight [[buffer(1)]],
                               const device T *g [[buffer(2)]], device T *out [[buffer(3)]],
                               const device float2 *parts [[buffer(4)]], const device float2 *more [[buffer(5)]],
                               constant long_size &size [[buffer(6)]], uint2 at [[threadgroup_position_in_grid]],
                               uint simdgroup [[simdgroup_index_in_threadgroup]],
                               uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[32];
  const team t = team_of_chunk(simdgroup, lane, shared);
  const float2 norm = norm_of_parts(t, parts + at.y * size.chunks, size);
  float mean = 0.0f, along = 0.0f;
  for (uint i = t.me; i < size.chunks; i += TEAM) {
    const float2 sums = more[at.y * size.chunks + i];
    mean += sums[0];
    along += sums[1];
  }
  mean = CENTRED ? team_sum(t, mean) / float(size.columns) : 0.0f;
  along = team_sum(t, along) / float(size.columns);
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  x += long(at.y) * size.columns;
  g += long(at.y) * size.columns;
  out += long(at.y) * size.columns;
  uint i = begin + t.me;
  for (; i < end; i += AHEAD * TEAM) {
    float a[AHEAD], h[AHEAD];
    for (uint k = 0; k < AHEAD; k++) {
      const uint at_k = min(i + k * TEAM, end - 1);
      a[k] = float(x[at_k]), h[k] = weighed(float(g[at_k]), weight, at_k);
    }
    for (uint k = 0; k < AHEAD; k++)
      if (AHEAD == 1 || i + k * TEAM < end)
        out[i + k * TEAM] = T((h[k] - mean - (a[k] - norm[0]) * norm[1] * along) * norm[1]);
  }
}
