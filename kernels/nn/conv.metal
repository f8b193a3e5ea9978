// Convolution of up to three spatial dimensions, channels last. The text stands behind the type T.
//
// columns: one entry per element of a weight's row, (kernel positions, channels of a group): how far its element of x
// lies from an output's first one in each spatial dimension, and its channel. An element that lies outside of x, or
// between elements that input dilation moves apart, counts as 0.

struct conv_size {
  int in[3], out[3], stride[3], padding[3], dilation[3]; // sizes; padding before; input dilation
  int channels, groups, group_channels, outputs;         // of x; channels of x and outputs in all
  int width;                                             // entries of `columns`
  int first_row;                                         // rows are outputs' places: (batches, out)
};

// The element of x that a row's entry of `columns` means, or -1. `place`: where the row's first element lies.
inline long conv_element(constant conv_size &size, long batch, int3 place, int4 column) {
  long at = batch;
  bool inside = true;
  for (int d = 0; d < 3; d++) {
    const int p = place[d] + column[d], i = p / size.dilation[d];
    inside = inside && p >= 0 && i < size.in[d] && i * size.dilation[d] == p;
    at = at * size.in[d] + i;
  }
  return inside ? at * size.channels + column[3] : -1;
}
inline int3 conv_place(constant conv_size &size, long row, thread long &batch) {
  int3 place;
  for (int d = 2; d >= 0; d--) {
    place[d] = int(row % size.out[d]) * size.stride[d] - size.padding[d];
    row /= size.out[d];
  }
  batch = row;
  return place;
}

// One element of the matrix whose product with the weights is the result: rows of `width` elements of x. Threads:
// (entry of columns, row).
kernel void smelt_conv_unfold(const device T *x [[buffer(0)]], const device int4 *columns [[buffer(1)]],
                              device T *out [[buffer(2)]], constant conv_size &size [[buffer(3)]],
                              uint2 at [[thread_position_in_grid]]) {
  long batch;
  const int3 place = conv_place(size, long(at.y) + size.first_row, batch);
  const long element = conv_element(size, batch, place, columns[at.x]);
  out[long(at.y) * size.width + at.x] = element < 0 ? T(0) : x[element];
}

// Groups of channels, without that matrix. weight: (width, outputs). Threads: (output, row).
kernel void smelt_conv_groups(const device T *x [[buffer(0)]], const device int4 *columns [[buffer(1)]],
                              device T *out [[buffer(2)]], constant conv_size &size [[buffer(3)]],
                              const device T *weight [[buffer(4)]], uint2 at [[thread_position_in_grid]]) {
  long batch;
  const int3 place = conv_place(size, long(at.y) + size.first_row, batch);
  const int first = int(at.x) / (size.outputs / size.groups) * size.group_channels;
  float sum = 0.0f;
  for (int k = 0; k < size.width; k++) {
    const long element = conv_element(size, batch, place, columns[k]);
    if (element >= 0) sum += float(x[element + first]) * float(weight[long(k) * size.outputs + at.x]);
  }
  out[(long(at.y) + size.first_row) * size.outputs + at.x] = T(sum);
}
