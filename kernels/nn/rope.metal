// Rotary positions: pairs of a row's first `dims` elements turn by an angle that grows with the row's position. x, out:
// (batches, heads, length, width) of T; offsets: (1) or (batches) of int; frequencies: (dims / 2) of float, the
// reciprocal of each pair's angle per position, used if FREQUENCIES. The text stands behind the type T and the constants
// TRADITIONAL (pairs are neighbours; otherwise halves of the row) and FREQUENCIES.

struct rope_size {
  uint batches, heads, length, width, dims, offsets;
  float log_base, scale, direction; // direction: 1, or -1 for the gradient
};

// The thread's place: a pair or a pair of elements behind `dims`, a position, a head of a batch.
kernel void smelt_rope(const device T *x [[buffer(0)]], const device int *offsets [[buffer(1)]],
                       const device float *frequencies [[buffer(2)]], device T *out [[buffer(3)]],
                       constant rope_size &size [[buffer(4)]], uint3 place [[thread_position_in_grid]]) {
  const uint half_dims = size.dims / 2, pair = place.x;
  const long row = (long(place.z) * size.length + place.y) * size.width;
  if (pair >= half_dims) {
    for (uint i = size.dims + (pair - half_dims) * 2; i < min(size.width, size.dims + (pair - half_dims) * 2 + 2); i++)
      out[row + i] = x[row + i];
    return;
  }
  const int offset = offsets[size.offsets > 1 ? place.z / size.heads : 0];
  const float frequency = FREQUENCIES ? 1.0f / frequencies[pair]
                                      : exp(-float(pair) / float(half_dims) * size.log_base);
  const float angle = float(offset + int(place.y)) * size.scale * frequency;
  const float c = precise::cos(angle), s = precise::sin(angle) * size.direction;
  const long first = row + (TRADITIONAL ? 2 * pair : pair), second = first + (TRADITIONAL ? 1 : half_dims);
  const float a = float(x[first]), b = float(x[second]);
  out[first] = T(a * c - b * s);
  out[second] = T(a * s + b * c);
}
