// grid_sample with all its settings, and its derivatives. x: (batches, height, width, channels) of T; grid: (batches,
// points, 2) of float, (across, down) from -1 to 1; out and g: (batches, points, channels) of T. The text stands behind
// the type T and the constants NEAREST (otherwise bilinear), BORDER (points outside are moved to the border; otherwise
// pixels outside are 0) and ALIGN (-1 and 1 are the centres of the corner pixels; otherwise the image's edges).

struct sample_size { uint batches, points, height, width, channels; };

// A coordinate in pixels, and its derivative by the grid's.
inline float2 to_pixels(float coordinate, uint size) {
  float slope = ALIGN ? 0.5f * (float(size) - 1.0f) : 0.5f * float(size);
  float pixel = ALIGN ? (coordinate + 1.0f) * slope : ((coordinate + 1.0f) * float(size) - 1.0f) * 0.5f;
  const float last = float(size) - 1.0f;
  if (BORDER) {
    if (pixel <= 0.0f || pixel >= last) slope = 0.0f;
    pixel = clamp(pixel, 0.0f, last);
  } else {
    pixel = clamp(pixel, -2.0f, last + 2.0f); // so far outside that no pixel is touched; int() stays in range
  }
  return float2(pixel, slope);
}

// The pixels around a point, north-west, north-east, south-west, south-east; of NEAREST the first only.
struct corners {
  int left, top;
  float east, south;
  float2 slope; // of pixels by the grid's coordinates

  corners(const device float *point, constant sample_size &size) {
    const float2 x = to_pixels(point[0], size.width), y = to_pixels(point[1], size.height);
    const float across = NEAREST ? rint(x[0]) : floor(x[0]), down = NEAREST ? rint(y[0]) : floor(y[0]);
    left = int(across);
    top = int(down);
    east = NEAREST ? 0.0f * x[0] : x[0] - across; // NaN stays NaN
    south = NEAREST ? 0.0f * y[0] : y[0] - down;
    slope = float2(x[1], y[1]);
  }
  bool inside(int corner, constant sample_size &size) const {
    return uint(left + (corner & 1)) < size.width && uint(top + (corner >> 1)) < size.height;
  }
  long pixel(int corner, constant sample_size &size) const {
    return long(top + (corner >> 1)) * size.width + left + (corner & 1);
  }
  float across(int corner) const { return corner & 1 ? east : 1.0f - east; }
  float down(int corner) const { return corner >> 1 ? south : 1.0f - south; }
};
constant constexpr int CORNERS = NEAREST ? 1 : 4;

// Threads: (channel, point, batch).
kernel void smelt_sample(const device T *x [[buffer(0)]], const device float *grid [[buffer(1)]],
                         device T *out [[buffer(2)]], constant sample_size &size [[buffer(3)]],
                         uint3 at [[thread_position_in_grid]]) {
  const long point = long(at.z) * size.points + at.y;
  const corners c(grid + 2 * point, size);
  x += long(at.z) * size.height * size.width * size.channels;
  float sum = 0.0f;
  for (int k = 0; k < CORNERS; k++)
    if (c.inside(k, size)) sum += c.across(k) * c.down(k) * float(x[c.pixel(k, size) * size.channels + at.x]);
  out[point * size.channels + at.x] = T(sum);
}

// The gradient by x, added to zeros. Threads as above.
kernel void smelt_sample_by_x(const device T *g [[buffer(0)]], const device float *grid [[buffer(1)]],
                              device atomic_float *out [[buffer(2)]], constant sample_size &size [[buffer(3)]],
                              uint3 at [[thread_position_in_grid]]) {
  const long point = long(at.z) * size.points + at.y;
  const corners c(grid + 2 * point, size);
  out += long(at.z) * size.height * size.width * size.channels;
  const float slope = float(g[point * size.channels + at.x]);
  for (int k = 0; k < CORNERS; k++)
    if (c.inside(k, size))
      atomic_fetch_add_explicit(&out[c.pixel(k, size) * size.channels + at.x], c.across(k) * c.down(k) * slope,
                                memory_order_relaxed);
}

// The gradient by the grid: a simdgroup per point adds over the channels. Threads: 32 for each point, batch.
kernel void smelt_sample_by_grid(const device T *g [[buffer(0)]], const device float *grid [[buffer(1)]],
                                 device float *out [[buffer(2)]], constant sample_size &size [[buffer(3)]],
                                 const device T *x [[buffer(4)]], uint2 group [[threadgroup_position_in_grid]],
                                 uint simdgroup [[simdgroup_index_in_threadgroup]],
                                 uint simdgroups [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint place = group.x * simdgroups + simdgroup;
  if (place >= size.points) return;
  const long point = long(group.y) * size.points + place;
  const corners c(grid + 2 * point, size);
  x += long(group.y) * size.height * size.width * size.channels;
  float2 sum = 0.0f;
  for (int k = 0; k < CORNERS && !NEAREST; k++) {
    if (!c.inside(k, size)) continue;
    float along = 0.0f;
    for (uint i = lane; i < size.channels; i += 32)
      along += float(x[c.pixel(k, size) * size.channels + i]) * float(g[point * size.channels + i]);
    along = simd_sum(along);
    sum += along * float2(k & 1 ? c.down(k) : -c.down(k), k >> 1 ? c.across(k) : -c.across(k));
  }
  if (lane == 0) {
    out[2 * point] = sum[0] * c.slope[0];
    out[2 * point + 1] = sum[1] * c.slope[1];
  }
}
