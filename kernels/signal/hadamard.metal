// The Walsh-Hadamard transform of rows, (rows, columns) of T, columns = M 2^k up to MOST: sums and differences of elements
// 1, 2, 4 … apart, then a matrix of M = 1, 12, 20 or 28 rows across the M parts of a row. The text stands behind the type T
// and the constant M.

struct hadamard_size {
  uint columns;
  float scale;
  uint signs[28]; // bit i of signs[j]: element (i, j) of the matrix is -1
};
constant constexpr uint MOST = 4096;

// Element j of each of the M parts, in place.
inline void across(threadgroup float *values, uint part, constant hadamard_size &size) {
  float x[M];
  for (int i = 0; i < M; i++) x[i] = values[i * part];
  for (int j = 0; j < M; j++) {
    const uint signs = size.signs[j];
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < M; i++) sum += as_type<float>(as_type<uint>(x[i]) ^ (signs >> i & 1) << 31);
    values[j * part] = sum;
  }
}

// A threadgroup per row.
kernel void smelt_hadamard(const device T *x [[buffer(0)]], device T *out [[buffer(1)]],
                           constant hadamard_size &size [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                           uint me [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
  threadgroup float values[MOST];
  const uint columns = size.columns;
  for (uint i = me; i < columns; i += threads) values[i] = float(x[long(row) * columns + i]);
  for (uint apart = 1; apart < columns / M; apart *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint pair = me; pair < columns / 2; pair += threads) {
      const uint low = pair / apart * (2 * apart) + pair % apart;
      const float a = values[low], b = values[low + apart];
      values[low] = a + b;
      values[low + apart] = a - b;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (M > 1) {
    for (uint j = me; j < columns / M; j += threads) across(values + j, columns / M, size);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint i = me; i < columns; i += threads) out[long(row) * columns + i] = T(values[i] * size.scale);
}
