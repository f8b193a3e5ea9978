// The Walsh-Hadamard transform of rows, (rows, columns) of T, columns a power of two up to MOST: sums and differences of
// elements 1, 2, 4 … apart. The text stands behind the type T.

struct hadamard_size { uint columns; float scale; };
constant constexpr uint MOST = 4096;

// A threadgroup per row.
kernel void smelt_hadamard(const device T *x [[buffer(0)]], device T *out [[buffer(1)]],
                           constant hadamard_size &size [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                           uint me [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
  threadgroup float values[MOST];
  const uint columns = size.columns;
  for (uint i = me; i < columns; i += threads) values[i] = float(x[long(row) * columns + i]);
  for (uint apart = 1; apart < columns; apart *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint pair = me; pair < columns / 2; pair += threads) {
      const uint low = pair / apart * (2 * apart) + pair % apart;
      const float a = values[low], b = values[low + apart];
      values[low] = a + b;
      values[low + apart] = a - b;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = me; i < columns; i += threads) out[long(row) * columns + i] = T(values[i] * size.scale);
}
