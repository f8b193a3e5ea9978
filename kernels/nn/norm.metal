// Layer norm and RMS norm of rows, with their gradients by x. x, g, out: (rows, columns) of T; weight, bias: (columns)
// of T, used as WEIGHT and BIAS say. The text stands behind team.metal, the type T and the constants SIMDGROUPS,
// CENTRED (layer norm: the mean is subtracted), WEIGHT and BIAS.

struct norm_size { row_size size; float eps; };

// The mean (0 for RMS norm) and 1 / sqrt(variance + eps) of a row.
inline float2 norm_of(team t, const device T *x, uint columns, float eps) {
  float mean = 0.0f, sum = 0.0f;
  if (CENTRED) {
    for (uint i = t.me; i < columns; i += TEAM) mean += float(x[i]);
    mean = team_sum(t, mean) / float(columns);
  }
  for (uint i = t.me; i < columns; i += TEAM) {
    const float d = float(x[i]) - mean;
    sum += d * d;
  }
  return float2(mean, precise::rsqrt(team_sum(t, sum) / float(columns) + eps));
}

kernel void smelt_norm(const device T *x [[buffer(0)]], const device T *weight [[buffer(1)]],
                       const device T *bias [[buffer(2)]], device T *out [[buffer(3)]],
                       constant norm_size &size [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
                       uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float parts[32];
  const team t = team_of(group, simdgroup, simdgroups, lane, parts);
  if (t.row >= size.size.rows) return;
  const uint columns = size.size.columns;
  x += long(t.row) * columns;
  out += long(t.row) * columns;
  const float2 norm = norm_of(t, x, columns, size.eps);
  for (uint i = t.me; i < columns; i += TEAM) {
    float y = (float(x[i]) - norm[0]) * norm[1];
    if (WEIGHT) y *= float(weight[i]);
    if (BIAS) y += float(bias[i]);
    out[i] = T(y);
  }
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
