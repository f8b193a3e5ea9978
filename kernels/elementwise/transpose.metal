// A copy whose source runs along another dimension than its target: tiles go through threadgroup memory, so that both
// are read and written in neighbours. The text stands behind the type T and the constant RANK.
//
// Threads: TILE x 8 for each tile of `rows` (stride 1 in x) by `columns` (stride 1 in out). The other dimensions are
// `size`, the innermost first.
constant constexpr uint TILE = 32;

struct transpose_size {
  uint rows, columns, tiles; // tiles: of the columns
  uint size[14];
  long start, row_out, column_in; // strides of a row in out, of a column in x
  long in[14], out[14];
};

kernel void smelt_transpose(const device T *x [[buffer(0)]], device T *out [[buffer(1)]],
                            constant transpose_size &size [[buffer(2)]], uint3 group [[threadgroup_position_in_grid]],
                            uint3 at [[thread_position_in_threadgroup]]) {
  threadgroup T tile[TILE][TILE + 1];
  long from = size.start, to = 0;
  uint rest = group.z;
  for (int d = 0; d < RANK; d++) {
    const long i = rest % size.size[d];
    rest /= size.size[d];
    from += i * size.in[d];
    to += i * size.out[d];
  }
  const uint first_row = group.y * TILE, first_column = group.x * TILE;
  for (uint j = at.y; j < TILE; j += 8)
    if (first_row + at.x < size.rows && first_column + j < size.columns)
      tile[j][at.x] = x[from + first_row + at.x + (first_column + j) * size.column_in];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint j = at.y; j < TILE; j += 8)
    if (first_row + j < size.rows && first_column + at.x < size.columns)
      out[to + (first_row + j) * size.row_out + first_column + at.x] = tile[at.x][j];
}
