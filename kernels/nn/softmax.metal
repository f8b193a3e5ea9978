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

// ---- Few long rows on a CPU: a simdgroup takes a chunk of a row.

struct long_size { uint columns, chunk, chunks; float eps; };
constant constexpr uint BLOCK = 2048;

// The largest element becomes that of all lanes; a sum of exponentials of what elements are less than it is scaled.
inline float grown(float most, thread float &top, thread float &sum) {
  most = simd_max(most);
  const float shift = isinf(most) ? 0.0f : most;
  const float scale = exp((isinf(top) ? 0.0f : top) - shift);
  sum = sum == 0.0f ? 0.0f : most > top ? sum * scale : sum;
  top = most;
  return shift;
}

// parts: (rows, chunks, 2) floats: the largest element, and the sum of the exponentials of what elements are less.
kernel void smelt_softmax_parts(const device T *x [[buffer(0)]], device float2 *parts [[buffer(1)]],
                                constant long_size &size [[buffer(2)]], uint2 at [[threadgroup_position_in_grid]],
                                uint lane [[thread_index_in_simdgroup]]) {
  const uint begin = at.x * size.chunk, count = min(size.chunk, size.columns - begin);
  x += long(at.y) * size.columns + begin;
  float top = -INFINITY, sum = 0.0f;
  // By blocks, so that memory is read once; the sum is scaled whenever the largest element grows.
  uint block = 0;
  for (; block + BLOCK <= count; block += BLOCK) {
    float most = top;
    for (uint i = 0; i < BLOCK; i += 32) most = max(most, float(x[block + i + lane]));
    const float shift = grown(most, top, sum);
    for (uint i = 0; i < BLOCK; i += 32) sum += exp(float(x[block + i + lane]) - shift);
  }
  float most = top;
  for (uint i = block + lane; i < count; i += 32) most = max(most, float(x[i]));
  const float shift = grown(most, top, sum);
  for (uint i = block + lane; i < count; i += 32) sum += exp(float(x[i]) - shift);
  sum = simd_sum(sum);
  if (lane == 0) parts[at.y * size.chunks + at.x] = float2(top, sum);
}

kernel void smelt_softmax_long(const device T *x [[buffer(0)]], device T *out [[buffer(1)]],
                               const device float2 *parts [[buffer(2)]], constant long_size &size [[buffer(3)]],
                               uint2 at [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float top = -INFINITY, sum = 0.0f;
  parts += at.y * size.chunks;
  for (uint i = lane; i < size.chunks; i += 32) top = max(top, parts[i][0]);
  top = simd_max(top);
  const float shift = isinf(top) ? 0.0f : top;
  for (uint i = lane; i < size.chunks; i += 32) {
    const float own = parts[i][0];
    sum += parts[i][1] == 0.0f ? 0.0f : parts[i][1] * exp((isinf(own) ? 0.0f : own) - shift);
  }
  sum = simd_sum(sum);
  const uint begin = at.x * size.chunk, end = min(begin + size.chunk, size.columns);
  x += long(at.y) * size.columns;
  out += long(at.y) * size.columns;
  const float scale = 1.0f / sum, less = log(sum) + shift;
  for (uint i = begin + lane; i < end; i += 32)
    out[i] = T(LOGARITHM ? float(x[i]) - less : exp(float(x[i]) - shift) * scale);
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
