// Softmax of rows and its logarithm, with the gradients. x, y, g, out: (rows, columns) of T; sums in float. The text
// stands behind team.metal, the type T and the constants SIMDGROUPS and LOGARITHM.
//
// The largest element is subtracted first. If it is infinite, nothing is: a row of -INFINITY gives 0 / 0.

kernel void smelt_softmax(const device T *x [[buffer(0)]], device T *out [[buffer(1)]],
                          constant row_size &size [[buffer(2)]], uint group [[threadgroup_position_in_grid]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]],
                          uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float parts[32];
  const team t = team_of(group, simdgroup, simdgroups, lane, parts);
  if (t.row >= size.rows) return;
  const uint columns = size.columns;
  x += long(t.row) * columns;
  out += long(t.row) * columns;
  float top = -INFINITY, sum = 0.0f;
  for (uint i = t.me; i < columns; i += TEAM) top = max(top, float(x[i]));
  top = team_max(t, top);
  const float shift = isinf(top) ? 0.0f : top;
  if (LOGARITHM) {
    for (uint i = t.me; i < columns; i += TEAM) sum += exp(float(x[i]) - shift);
    const float less = log(team_sum(t, sum)) + shift;
    for (uint i = t.me; i < columns; i += TEAM) out[i] = T(float(x[i]) - less);
  } else if (sizeof(T) == 4) {
    // A float holds the exponential without a loss until the sum is known.
    for (uint i = t.me; i < columns; i += TEAM) {
      const float e = exp(float(x[i]) - shift);
      sum += e;
      out[i] = T(e);
    }
    const float scale = 1.0f / team_sum(t, sum);
    for (uint i = t.me; i < columns; i += TEAM) out[i] = T(float(out[i]) * scale);
  } else {
    for (uint i = t.me; i < columns; i += TEAM) sum += exp(float(x[i]) - shift);
    const float scale = 1.0f / team_sum(t, sum);
    for (uint i = t.me; i < columns; i += TEAM) out[i] = T(exp(float(x[i]) - shift) * scale);
  }
}

// ---- Few long rows: a team computes a chunk of a row.

// Elements of a thread per block. The largest of a block is found first, so that the sum is scaled once per block.
constant constexpr uint DEPTH = SIMDGROUPS == 1 ? 64 : 8;
constant constexpr uint BLOCK = DEPTH * TEAM;

// Takes a sum of exp(x - top) to one of exp(x - next).
inline float scaled(float sum, float top, float next) {
  const float scale = exp((isinf(top) ? 0.0f : top) - (isinf(next) ? 0.0f : next));
  return sum == 0.0f ? 0.0f : next > top ? sum * scale : sum;
}
// Raises `top` to `most` and scales the sum for it. Returns what to subtract from elements.
inline float grown(float most, thread float &top, thread float &sum) {
  sum = scaled(sum, top, most);
  top = most;
  return isinf(most) ? 0.0f : most;
}

// parts: (rows, chunks, 2) floats: the largest element, and the sum of exp(x - largest).
kernel void smelt_softmax_parts(const device T *x [[buffer(0)]], device float2 *parts [[buffer(1)]],
                                constant long_size &size [[buffer(2)]], uint2 at [[threadgroup_position_in_grid]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[32];
  const team t = team_of_chunk(simdgroup, lane, shared);
  const uint begin = at.x * size.chunk, count = min(size.chunk, size.columns - begin);
  x += long(at.y) * size.columns + begin;
  float top = -INFINITY, sum = 0.0f;
  uint block = 0;
  for (; block + BLOCK <= count; block += BLOCK) {
    float most = top;
    for (uint i = 0; i < BLOCK; i += TEAM) most = max(most, float(x[block + i + t.me]));
    const float shift = grown(most, top, sum);
    for (uint i = 0; i < BLOCK; i += TEAM) sum += exp(float(x[block + i + t.me]) - shift);
  }
  float most = top;
  for (uint i = block + t.me; i < count; i += TEAM) most = max(most, float(x[i]));
  const float shift = grown(most, top, sum);
  for (uint i = block + t.me; i < count; i += TEAM) sum += exp(float(x[i]) - shift);
  most = team_max(t, top);
  sum = team_sum(t, scaled(sum, top, most));
  if (t.me == 0) parts[at.y * size.chunks + at.x] = float2(most, sum);
}

kernel void smelt_softmax_long(const device T *x [[buffer(0)]], device T *out [[buffer(1)]],
                               const device float2 *parts [[buffer(2)]], constant long_size &size [[buffer(3)]],
                               uint2 at [[threadgroup_position_in_grid]],
                               uint simdgroup [[simdgroup_index_in_threadgroup]],
                               uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[32];
  const team t = team_of_chunk(simdgroup, lane, shared);
  float top = -INFINITY, sum = 0.0f;
  parts += at.y * size.chunks;
  for (uint i = t.me; i < size.chunks; i += TEAM) top = max(top, parts[i][0]);
  top = team_max(t, top);
  for (uint i = t.me; i < size.chunks; i += TEAM) sum += scaled(parts[i][1], parts[i][0], top);
  sum = team_sum(t, sum);
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  x += long(at.y) * size.columns;
  out += long(at.y) * size.columns;
  const float shift = isinf(top) ? 0.0f : top, scale = 1.0f / sum, less = log(sum) + shift;
  uint i = begin + t.me;
  for (; AHEAD > 1 && i + (AHEAD - 1) * TEAM < end; i += AHEAD * TEAM) {
    float a[AHEAD];
    for (uint k = 0; k < AHEAD; k++) a[k] = float(x[i + k * TEAM]);
    for (uint k = 0; k < AHEAD; k++) out[i + k * TEAM] = T(LOGARITHM ? a[k] - less : exp(a[k] - shift) * scale);
  }
  for (; i < end; i += TEAM) out[i] = T(LOGARITHM ? float(x[i]) - less : exp(float(x[i]) - shift) * scale);
}

// out = y (g - sum(y g)), or for the logarithm g - exp(y) sum(g).
kernel void smelt_softmax_vjp(const device T *y [[buffer(0)]], const device T *g [[buffer(1)]],
                              device T *out [[buffer(2)]], constant row_size &size [[buffer(3)]],
                              uint group [[threadgroup_position_in_grid]],
                              uint simdgroup [[simdgroup_index_in_threadgroup]],
                              uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float parts[32];
  const team t = team_of(group, simdgroup, simdgroups, lane, parts);
  if (t.row >= size.rows) return;
  const uint columns = size.columns;
  const long first = long(t.row) * columns;
  float sum = 0.0f;
  for (uint i = t.me; i < columns; i += TEAM) sum += LOGARITHM ? float(g[first + i]) : float(y[first + i]) * float(g[first + i]);
  sum = team_sum(t, sum);
  for (uint i = t.me; i < columns; i += TEAM) {
    const float a = float(y[first + i]), b = float(g[first + i]);
    out[first + i] = T(LOGARITHM ? b - exp(a) * sum : a * (b - sum));
  }
}

// The same of long rows. parts: (rows, chunks) floats.
inline float along(float y, float g) { return LOGARITHM ? g : y * g; }
inline T gradient(float y, float g, float sum) { return T(LOGARITHM ? g - exp(y) * sum : y * (g - sum)); }

kernel void smelt_softvjp_parts(const device T *y [[buffer(0)]], const device T *g [[buffer(1)]],
                                device float *parts [[buffer(2)]], constant long_size &size [[buffer(3)]],
                                uint2 at [[threadgroup_position_in_grid]],
                                uint simdgroup [[simdgroup_index_in_threadgroup]],
                                uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[32];
  const team t = team_of_chunk(simdgroup, lane, shared);
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  y += long(at.y) * size.columns;
  g += long(at.y) * size.columns;
  float sum = 0.0f;
  uint i = begin + t.me;
  for (; AHEAD > 1 && i + (AHEAD - 1) * TEAM < end; i += AHEAD * TEAM)
    for (uint k = 0; k < AHEAD; k++) sum += along(float(y[i + k * TEAM]), float(g[i + k * TEAM]));
  for (; i < end; i += TEAM) sum += along(float(y[i]), float(g[i]));
  sum = team_sum(t, sum);
  if (t.me == 0) parts[at.y * size.chunks + at.x] = sum;
}

kernel void smelt_softvjp_long(const device T *y [[buffer(0)]], const device T *g [[buffer(1)]],
                               device T *out [[buffer(2)]], const device float *parts [[buffer(3)]],
                               constant long_size &size [[buffer(4)]], uint2 at [[threadgroup_position_in_grid]],
                               uint simdgroup [[simdgroup_index_in_threadgroup]],
                               uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float shared[32];
  const team t = team_of_chunk(simdgroup, lane, shared);
  float sum = 0.0f;
  for (uint i = t.me; i < size.chunks; i += TEAM) sum += parts[at.y * size.chunks + i];
  sum = team_sum(t, sum);
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  y += long(at.y) * size.columns;
  g += long(at.y) * size.columns;
  out += long(at.y) * size.columns;
  uint i = begin + t.me;
  for (; AHEAD > 1 && i + (AHEAD - 1) * TEAM < end; i += AHEAD * TEAM) {
    float a[AHEAD], b[AHEAD];
    for (uint k = 0; k < AHEAD; k++) a[k] = float(y[i + k * TEAM]), b[k] = float(g[i + k * TEAM]);
    for (uint k = 0; k < AHEAD; k++) out[i + k * TEAM] = gradient(a[k], b[k], sum);
  }
  for (; i < end; i += TEAM) out[i] = gradient(float(y[i]), float(g[i]), sum);
}
