// Convolution of up to three spatial dimensions, channels last. The text stands behind the type T and the constants
// DILATED (x has zeros between its elements) and BY_CHANNEL (see smelt_conv_unfold).
//
// columns: one entry per element of a weight's row, (kernel positions, channels of a group): how far its element of x
// lies from an output's first one in each spatial dimension, and, unless DILATED, in elements of x; with DILATED its
// channel. An element that lies outside of x, or between elements that input dilation moves apart, counts as 0.

struct conv_size {
  int in[3], out[3], stride[3], padding[3], dilation[3]; // sizes; padding before; input dilation
  int channels, groups, group_channels, outputs;         // of x; channels of x and outputs in all
  int width;                                             // entries of `columns`
  int first_row;                                         // rows are outputs' places: (batches, out)
};

// Where a row's first element lies: per dimension, and in elements of x (which may be before x).
struct conv_place { int at[3]; long element, batch; };

inline conv_place place_of(constant conv_size &size, long row) {
  conv_place place;
  int rest = int(row);
  for (int d = 2; d >= 0; d--) {
    place.at[d] = rest % size.out[d] * size.stride[d] - size.padding[d];
    rest /= size.out[d];
  }
  place.batch = rest;
  place.element = ((place.batch * size.in[0] + place.at[0]) * size.in[1] + place.at[1]) * size.in[2] + place.at[2];
  place.element *= size.channels;
  return place;
}

// The element of x that an entry means for a row, or -1.
inline long element_of(constant conv_size &size, thread const conv_place &place, int4 column) {
  bool inside = true;
  if (!DILATED) {
    for (int d = 0; d < 3; d++) inside = inside && uint(place.at[d] + column[d]) < uint(size.in[d]);
    return inside ? place.element + column[3] : -1;
  }
  long at = place.batch;
  for (int d = 0; d < 3; d++) {
    const int p = place.at[d] + column[d], i = p / size.dilation[d];
    inside = inside && p >= 0 && i < size.in[d] && i * size.dilation[d] == p;
    at = at * size.in[d] + i;
  }
  return inside ? at * size.channels + column[3] : -1;
}

// One element of the matrix whose product with the weights is the result: rows of `width` elements of x. Threads:
// (entry of columns, 1, row), or BY_CHANNEL (channel, kernel position, row), whose neighbours read neighbours.
kernel void smelt_conv_unfold(const device T *x [[buffer(0)]], const device int4 *columns [[buffer(1)]],
                              device T *out [[buffer(2)]], constant conv_size &size [[buffer(3)]],
                              uint3 at [[thread_position_in_grid]]) {
  const conv_place place = place_of(size, long(at.z) + size.first_row);
  device T *to = out + long(at.z) * size.width;
  if (BY_CHANNEL) {
    const long first = element_of(size, place, columns[at.y * size.group_channels]);
    to += long(at.y) * size.group_channels;
    if (first < 0) to[at.x] = T(0);
    else to[at.x] = x[first + at.x];
  } else {
    const long element = element_of(size, place, columns[at.x]);
    to[at.x] = element < 0 ? T(0) : x[element];
  }
}

// Groups of channels, without that matrix. weight: (width, outputs). Threads: (output, 1, row).
kernel void smelt_conv_groups(const device T *x [[buffer(0)]], const device int4 *columns [[buffer(1)]],
                              device T *out [[buffer(2)]], constant conv_size &size [[buffer(3)]],
                              const device T *weight [[buffer(4)]], uint3 at [[thread_position_in_grid]]) {
  const conv_place place = place_of(size, long(at.z) + size.first_row);
  const int first = int(at.x) / (size.outputs / size.groups) * size.group_channels;
  float sum = 0.0f;
  for (int k = 0; k < size.width; k++) {
    const long element = element_of(size, place, columns[k]);
    if (element >= 0) sum += float(x[element + first]) * float(weight[long(k) * size.outputs + at.x]);
  }
  out[(long(at.z) + size.first_row) * size.outputs + at.x] = T(sum);
}
