// Prefix sums, products and logsumexps: along rows of any length with a carry from block to block, along a strided
// axis, and over one long array in three passes.
#include <metal_stdlib>
using namespace metal;

#define instantiate_kernel(name, func, ...) \
  template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;

// An operation over U: what leaves others as they are, two together, the heads of a simdgroup with and without the last.
template <typename U>
struct CumSum {
  static constexpr constant U init = U(0);
  U operator()(U a, U b) const { return a + b; }
  U simd_scan(U x) const { return simd_prefix_inclusive_sum(x); }
  U simd_before(U x) const { return simd_prefix_exclusive_sum(x); }
};

template <typename U>
struct CumProd {
  static constexpr constant U init = U(1);
  U operator()(U a, U b) const { return a * b; }
  U simd_scan(U x) const { return simd_prefix_inclusive_product(x); }
  U simd_before(U x) const { return simd_prefix_exclusive_product(x); }
};

// There is no prefix maximum: shift and combine.
template <typename U>
struct CumMax {
  static constexpr constant U init = metal::numeric_limits<U>::lowest();
  U operator()(U a, U b) const { return a < b ? b : a; }
  U simd_scan(U x) const {
#pragma unroll
    for (ushort d = 1; d < 32; d += d) x = (*this)(simd_shuffle_and_fill_up(x, U(init), d), x);
    return x;
  }
  U simd_before(U x) const { return simd_shuffle_and_fill_up(simd_scan(x), U(init), 1); }
};

// The k-th of a row from either end.
template <bool reverse> ulong place(ulong k, ulong length) { return reverse ? length - 1 - k : k; }

// A row is one threadgroup's, a block of N numbers a thread at a time: what stands before a number is the carry of earlier
// blocks, the totals of earlier simdgroups, of earlier lanes, and the thread's own earlier numbers, in this order.
template <typename T, typename U, typename Op, ushort N, bool inclusive, bool reverse>
[[kernel]] void scan_rows(const device T* in [[buffer(0)]], device U* out [[buffer(1)]], constant ulong& length [[buffer(2)]],
                          uint row [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                          uint threads [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                          uint sg [[simdgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup U totals[32], carries[2]; // of simdgroups; of the block before, by turns
  const Op op;
  in += row * length;
  out += row * length;
  if (t == 0) carries[0] = Op::init;
  bool turn = false;
  for (ulong base = 0; base < length; base += threads * N, turn = !turn) {
    const ulong first = base + t * N;
    U v[N];
    for (ushort i = 0; i < N; i++) v[i] = first + i < length ? U(in[place<reverse>(first + i, length)]) : U(Op::init);
    U all = v[0];
    for (ushort i = 1; i < N; i++) all = op(all, v[i]);
    const U lanes_before = op.simd_before(all);
    if (lane == 31) totals[sg] = op(lanes_before, all);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const U totals_before = op.simd_before(lane < sgs ? totals[lane] : U(Op::init));
    U before = op(op(carries[turn], simd_shuffle(totals_before, ushort(sg))), lanes_before);
    for (ushort i = 0; i < N; i++) {
      const U now = op(before, v[i]);
      if (first + i < length) out[place<reverse>(first + i, length)] = inclusive ? now : before;
      before = now;
    }
    if (t == threads - 1) carries[!turn] = before;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
#define instantiate_scan(name, itype, otype, op, n)                                                  \
  instantiate_kernel("scan_rows_inclusive_" #name, scan_rows, itype, otype, op<otype>, n, true, false) \
  instantiate_kernel("scan_rows_exclusive_" #name, scan_rows, itype, otype, op<otype>, n, false, false) \
  instantiate_kernel("scan_rows_inclusive_reverse_" #name, scan_rows, itype, otype, op<otype>, n, true, true) \
  instantiate_kernel("scan_rows_exclusive_reverse_" #name, scan_rows, itype, otype, op<otype>, n, false, true)
instantiate_scan(sum_float32, float, float, CumSum, 4)
instantiate_scan(sum_int32, int, int, CumSum, 4)
instantiate_scan(sum_bool, bool, int, CumSum, 8)
instantiate_scan(prod_float16, half, float, CumProd, 4)
instantiate_scan(max_bfloat16, bfloat, float, CumMax, 2)

// A strided axis: a tile of rows by columns through threadgroup memory; the simdgroups scan down the columns.
template <typename T, typename Op, int BM = 32, int BN = 32>
[[kernel]] void strided_scan(const device T* in [[buffer(0)]], device T* out [[buffer(1)]],
                             constant uint& rows [[buffer(2)]], constant uint& cols [[buffer(3)]],
                             uint2 gid [[threadgroup_position_in_grid]], uint simd_lane_id [[thread_index_in_simdgroup]],
                             uint simd_group_id [[simdgroup_index_in_threadgroup]],
                             uint simdgroups [[simdgroups_per_threadgroup]]) {
  constexpr int pad = 16 / sizeof(T);
  threadgroup T read_buffer[BM * (BN + pad)];
  Op op;
  in += size_t(gid.y) * rows * cols;
  out += size_t(gid.y) * rows * cols;
  const uint col = gid.x * BN + simd_lane_id;
  T carry[BN];
  for (int c = 0; c < BN; c++) carry[c] = Op::init;
  for (uint base = 0; base < rows; base += BM) {
    for (uint r = simd_group_id; r < BM; r += simdgroups)
      read_buffer[r * (BN + pad) + simd_lane_id] = base + r < rows && col < cols ? in[(base + r) * cols + col] : T(Op::init);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint c = simd_group_id; c < BN; c += simdgroups) {
      T v = op.simd_scan(read_buffer[simd_lane_id * (BN + pad) + c]);
      v = op(v, carry[c]);
      carry[c] = simd_broadcast(v, 31);
      read_buffer[simd_lane_id * (BN + pad) + c] = v;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint r = simd_group_id; r < BM; r += simdgroups)
      if (base + r < rows && col < cols) out[(base + r) * cols + col] = read_buffer[r * (BN + pad) + simd_lane_id];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
instantiate_kernel("strided_scan_sum_uint64", strided_scan, uint64_t, CumSum<uint64_t>)
instantiate_kernel("strided_scan_max_int16", strided_scan, short, CumMax<short>)
instantiate_kernel("strided_scan_sum_float32", strided_scan, float, CumSum<float>)

// One long array: sums of blocks, a scan of the sums, and the blocks once more with what stood before them.
kernel void scan_block_sums(device const uint* in [[buffer(0)]], device uint* sums [[buffer(1)]],
                            constant uint& n [[buffer(2)]], uint gid [[threadgroup_position_in_grid]],
                            uint tid [[thread_index_in_threadgroup]], uint tcount [[threads_per_threadgroup]]) {
  threadgroup atomic_uint total;
  if (tid == 0) atomic_store_explicit(&total, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint i = gid * tcount + tid;
  atomic_fetch_add_explicit(&total, i < n ? in[i] : 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (tid == 0) sums[gid] = atomic_load_explicit(&total, memory_order_relaxed);
}

// Up-sweep and down-sweep over a power of two in place; the textbook one, with its divergent strides.
kernel void scan_sums_exclusive(device uint* sums [[buffer(0)]], constant uint& n [[buffer(1)]],
                                threadgroup uint* temp [[threadgroup(0)]], uint tid [[thread_index_in_threadgroup]],
                                uint tcount [[threads_per_threadgroup]]) {
  const uint width = tcount * 2;
  temp[2 * tid] = 2 * tid < n ? sums[2 * tid] : 0;
  temp[2 * tid + 1] = 2 * tid + 1 < n ? sums[2 * tid + 1] : 0;
  uint offset = 1;
  for (uint d = width >> 1; d > 0; d >>= 1) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < d) {
      uint ai = offset * (2 * tid + 1) - 1, bi = offset * (2 * tid + 2) - 1;
      temp[bi] += temp[ai];
    }
    offset *= 2;
  }
  if (tid == 0) temp[width - 1] = 0;
  for (uint d = 1; d < width; d *= 2) {
    offset >>= 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid < d) {
      uint ai = offset * (2 * tid + 1) - 1, bi = offset * (2 * tid + 2) - 1;
      uint t = temp[ai];
      temp[ai] = temp[bi];
      temp[bi] += t;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (2 * tid < n) sums[2 * tid] = temp[2 * tid];
  if (2 * tid + 1 < n) sums[2 * tid + 1] = temp[2 * tid + 1];
}

// Hillis–Steele with two buffers that change places.
kernel void scan_add_back(device const uint* in [[buffer(0)]], device const uint* sums [[buffer(1)]],
                          device uint* out [[buffer(2)]], constant uint& n [[buffer(3)]],
                          threadgroup uint* shared [[threadgroup(0)]], uint gid [[threadgroup_position_in_grid]],
                          uint tid [[thread_index_in_threadgroup]], uint tcount [[threads_per_threadgroup]]) {
  threadgroup uint* from = shared;
  threadgroup uint* to = shared + tcount;
  uint i = gid * tcount + tid;
  from[tid] = i < n ? in[i] : 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = 1; step < tcount; step <<= 1) {
    to[tid] = tid >= step ? from[tid] + from[tid - step] : from[tid];
    threadgroup uint* t = from;
    from = to;
    to = t;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i < n) out[i] = from[tid] + sums[gid];
}
