// Rotary positions: pairs of a row's first `dims` elements turn by an angle that grows with the row's position. x, out:
// (batches, heads, length, width) of T; offsets: (1) or (batches) of int; frequencies: (dims / 2) of float, the
// reciprocal of each pair's angle per position, used if FREQUENCIES. The text stands behind the type T and the constants
// TRADITIONAL (pairs are neighbours; otherwise halves of the row), FREQUENCIES and PARTIAL (rows are longer than `dims`).

struct rope_size {
  uint batches, heads, length, width, dims, offsets;
  float log_base, scale, direction; // direction: 1, or -1 for the gradient
};

// The cosines of each pair's angle, (1 or batches, length, dims / 2), and behind them the sines. Threads: (pair,
// position, batch).
kernel void smelt_rope_table(const device int *offsets [[buffer(0)]], const device float *frequencies [[buffer(1)]],
                             device float *table [[buffer(2)]], constant rope_size &size [[buffer(3)]],
                             uint3 place [[thread_position_in_grid]]) {
  const uint half_dims = size.dims / 2, pair = place.x;
  const float frequency = FREQUENCIES ? 1.0f / frequencies[pair]
                                      : exp(-float(pair) / float(half_dims) * size.log_base);
  const float angle = float(offsets[place.z] + int(place.y)) * size.scale * frequency;
  const long at = (long(place.z) * size.length + place.y) * half_dims + pair;
  table[at] = precise::cos(angle);
  table[long(size.offsets) * size.length * half_dims + at] = precise::sin(angle) * size.direction;
}

// Threads: (a pair, or two elements behind `dims`; position; head of a batch).
kernel void smelt_rope(const device T *x [[buffer(0)]], const device float *table [[buffer(1)]],
                       device T *out [[buffer(2)]], constant rope_size &size [[buffer(3)]],
                       uint3 place [[thread_position_in_grid]]) {
  const uint half_dims = size.dims / 2, pair = place.x;
  const long row = (long(place.z) * size.length + place.y) * size.width;
  if (PARTIAL && pair >= half_dims) {
    const uint first = size.dims + (pair - half_dims) * 2, end = min(size.width, first + 2);
    for (uint i = first; i < end; i++) out[row + i] = x[row + i];
    return;
  }
  const long turn = (size.offsets > 1 ? long(place.z / size.heads) * size.length : 0) + place.y;
  const float c = table[turn * half_dims + pair];
  const float s = table[(long(size.offsets) * size.length + turn) * half_dims + pair];
  const long first = row + (TRADITIONAL ? 2 * pair : pair), second = first + (TRADITIONAL ? 1 : half_dims);
  const float a = float(x[first]), b = float(x[second]);
  out[first] = T(a * c - b * s);
  out[second] = T(a * s + b * c);
}
