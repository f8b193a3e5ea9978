// Reductions: whole arrays in two passes, rows, columns, strided axes, arg-reductions over pairs, logsumexp.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

typedef bfloat bfloat16_t;
constant constexpr int SIMD_SIZE = 32;

// What 'nothing yet' is, by type.
template <typename T> struct Limits {
  static constexpr constant T lowest = numeric_limits<T>::lowest();
  static constexpr constant T highest = numeric_limits<T>::max();
};
#define INSTANTIATE_FLOAT_LIMITS(T)                                       \
  template <> struct Limits<T> {                                          \
    static constexpr constant T lowest = -numeric_limits<T>::infinity();  \
    static constexpr constant T highest = numeric_limits<T>::infinity();  \
  };
INSTANTIATE_FLOAT_LIMITS(float)
INSTANTIATE_FLOAT_LIMITS(half)
INSTANTIATE_FLOAT_LIMITS(bfloat16_t)
#undef INSTANTIATE_FLOAT_LIMITS

template <typename U> struct Sum {
  static constexpr constant U init = U(0);
  U operator()(U a, U b) const thread { return a + b; } // smelt: ignore SM008: integers wrap
  METAL_FUNC U simd_reduce(U v) { return simd_sum(v); }
};
template <typename U> struct Prod {
  static constexpr constant U init = U(1);
  U operator()(U a, U b) const thread { return a * b; } // smelt: ignore SM008: integers wrap
  METAL_FUNC U simd_reduce(U v) { return simd_product(v); }
};
template <typename U> struct Min {
  static constexpr constant U init = Limits<U>::highest;
  U operator()(U a, U b) const thread { return a < b ? a : b; }
  METAL_FUNC U simd_reduce(U v) { return simd_min(v); }
};
template <typename U> struct Max {
  static constexpr constant U init = Limits<U>::lowest;
  U operator()(U a, U b) const thread { return a > b ? a : b; }
  METAL_FUNC U simd_reduce(U v) { return simd_max(v); }
};
// By shuffles, as code for types without a simd_sum of their own does.
template <> struct Sum<long> {
  static constexpr constant long init = 0;
  long operator()(long a, long b) const thread { return a + b; } // smelt: ignore SM008: integers wrap
  METAL_FUNC long simd_reduce(long v) {
    for (ushort step = SIMD_SIZE / 2; step > 0; step /= 2) {
      uint2 halves = as_type<uint2>(v);
      v += as_type<long>(simd_shuffle_down(halves, step)); // smelt: ignore SM008: integers wrap
    }
    return v;
  }
};
struct And {
  static constexpr constant bool init = true;
  bool operator()(bool a, bool b) const thread { return a && b; }
  METAL_FUNC bool simd_reduce(bool v) { return simd_all(v); }
};

template <typename Op, typename U>
METAL_FUNC U threadgroup_reduce(U value, threadgroup U *shared, uint lane, uint simdgroup, uint simdgroups) {
  Op op;
  value = op.simd_reduce(value);
  if (simdgroups == 1) return value;
  if (lane == 0) shared[simdgroup] = value;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  value = lane < simdgroups ? shared[lane] : Op::init;
  return op.simd_reduce(value);
}

// One threadgroup takes `share` neighbours; the same kernel reduces what the first pass left. Four at a time while whole
// fours are left, then the rest one by one.
template <typename T, typename U, typename Op>
[[kernel]] void all_reduce(const device T *in [[buffer(0)]], device U *out [[buffer(1)]],
                           const constant size_t &size [[buffer(2)]], const constant size_t &share [[buffer(3)]],
                           uint group [[threadgroup_position_in_grid]], uint t [[thread_position_in_threadgroup]],
                           uint threads [[threads_per_threadgroup]], uint simdgroups [[simdgroups_per_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup U places[SIMD_SIZE];
  const Op op;
  const int64_t begin = int64_t(group) * share, end = min(begin + int64_t(share), int64_t(size));
  const int64_t whole = begin + (end - begin) / 4 * 4;
  U total = Op::init;
  for (int64_t i = begin + 4 * t; i < whole; i += 4 * threads) {
    array<U, 4> four;
#pragma clang loop unroll(full)
    for (int k = 0; k < 4; k++) four[k] = static_cast<U>(in[i + k]);
    total = op(total, op(op(four[0], four[1]), op(four[2], four[3])));
  }
  for (int64_t i = whole + t; i < end; i += threads) total = op(total, static_cast<U>(in[i]));
  total = threadgroup_reduce<Op>(total, places, lane, simdgroup, simdgroups);
  if (t == 0) out[group] = total;
}

#define instantiate_all_reduce(name, itype, otype, op) \
  template [[host_name("all_reduce_" #name)]] [[kernel]] decltype(all_reduce<itype, otype, op>) all_reduce<itype, otype, op>;
instantiate_all_reduce(sum_f32, float, float, Sum<float>)
instantiate_all_reduce(sum_f16_f32, half, float, Sum<float>)
instantiate_all_reduce(sum_i8_i32, char, int, Sum<int>)
instantiate_all_reduce(sum_i64, int64_t, int64_t, Sum<int64_t>)
instantiate_all_reduce(prod_bf16_f32, bfloat16_t, float, Prod<float>)
instantiate_all_reduce(and_u8, uint8_t, bool, And)

// A row is reduced by the simdgroups of one threadgroup; 4 rows side by side where rows are short.
template <typename T, typename U, typename Op>
[[kernel]] void row_reduce_looped(const device T *in [[buffer(0)]], device U *out [[buffer(1)]],
                                  constant int64_t &row_size [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                                  uint lid [[thread_position_in_threadgroup]], uint lsize [[threads_per_threadgroup]],
                                  uint simd_per_group [[simdgroups_per_threadgroup]],
                                  uint lane [[thread_index_in_simdgroup]],
                                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup U shared_vals[SIMD_SIZE];
  Op op;
  U total = Op::init;
  const device T *x = in + int64_t(row) * row_size;
  for (int64_t i = lid; i < row_size; i += lsize) total = op(total, static_cast<U>(x[i]));
  total = threadgroup_reduce<Op>(total, shared_vals, lane, simdgroup, simd_per_group);
  if (lid == 0) out[row] = total;
}

template <typename T, typename U, typename Op, int ROWS = 4>
[[kernel]] void row_reduce_simple(const device T *in [[buffer(0)]], device U *out [[buffer(1)]],
                                  constant int &row_size [[buffer(2)]], constant int &n_rows [[buffer(3)]],
                                  uint tid [[threadgroup_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  Op op;
  int first = min(int(tid) * ROWS, max(n_rows - ROWS, 0)); // the last threadgroup steps back over its neighbour's rows
  int rows = min(ROWS, n_rows - first);
  U totals[ROWS];
  for (short r = 0; r < ROWS; r++) totals[r] = Op::init;
  for (int i = lane; i < row_size; i += SIMD_SIZE)
    for (short r = 0; r < ROWS; r++)
      if (r < rows) totals[r] = op(totals[r], static_cast<U>(in[(first + r) * row_size + i]));
  for (short r = 0; r < ROWS; r++) totals[r] = op.simd_reduce(totals[r]);
  if (lane == 0)
    for (short r = 0; r < rows; r++) out[first + r] = totals[r];
}

#define instantiate_row_reduce(kind, name, itype, otype, op) \
  template [[host_name("row_reduce_" #kind "_" #name)]] [[kernel]] decltype(row_reduce_##kind<itype, otype, op>) row_reduce_##kind<itype, otype, op>;
instantiate_row_reduce(looped, max_f32, float, float, Max<float>)
instantiate_row_reduce(looped, sum_bf16, bfloat16_t, float, Sum<float>)
instantiate_row_reduce(looped, min_i16, short, short, Min<short>)
instantiate_row_reduce(simple, sum_f32, float, float, Sum<float>)
instantiate_row_reduce(simple, prod_i32, int, int, Prod<int>)
instantiate_row_reduce(simple, max_f16, half, half, Max<half>)

// Columns: a threadgroup of 32 x 8 threads takes 32 columns; rows are shared out, then joined in threadgroup memory.
template <typename T, typename U, typename Op, int BM = 8, int BN = 32>
[[kernel]] void col_reduce(const device T *in [[buffer(0)]], device U *out [[buffer(1)]],
                           constant uint2 &shape [[buffer(2)]], uint2 tid [[threadgroup_position_in_grid]],
                           uint2 lid [[thread_position_in_threadgroup]]) {
  threadgroup U partial[BM][BN + 1];
  Op op;
  const uint rows = shape.x, cols = shape.y;
  const uint col = tid.x * BN + lid.x;
  U total = Op::init;
  if (col < cols)
    for (size_t r = lid.y; r < rows; r += BM) total = op(total, static_cast<U>(in[r * cols + col]));
  partial[lid.y][lid.x] = total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lid.y == 0 && col < cols) {
    for (int i = 1; i < BM; i++) total = op(total, partial[i][lid.x]);
    out[col] = total;
  }
}
template [[host_name("col_reduce_sum_f32")]] [[kernel]] decltype(col_reduce<float, float, Sum<float>>) col_reduce<float, float, Sum<float>>;
template [[host_name("col_reduce_max_bf16")]] [[kernel]] decltype(col_reduce<bfloat16_t, bfloat16_t, Max<bfloat16_t>>) col_reduce<bfloat16_t, bfloat16_t, Max<bfloat16_t>>;
template [[host_name("col_reduce_sum_u8")]] [[kernel]] decltype(col_reduce<uchar, uint, Sum<uint>>) col_reduce<uchar, uint, Sum<uint>>;

// Any axis of any view: one thread an output; shape and strides of the kept dimensions as arrays.
METAL_FUNC int64_t offset_of(uint64_t index, constant const int *shape, constant const int64_t *strides, int ndim) {
  int64_t offset = 0;
  while (ndim-- > 0) {
    offset += int64_t(index % shape[ndim]) * strides[ndim];
    index /= shape[ndim];
  }
  return offset;
}

kernel void strided_axis_sum(const device float *in [[buffer(0)]], device float *out [[buffer(1)]],
                             constant const int *shape [[buffer(2)]], constant const int64_t *strides [[buffer(3)]],
                             const constant int &ndim [[buffer(4)]], const constant int &axis_size [[buffer(5)]],
                             const constant int64_t &axis_stride [[buffer(6)]], uint index [[thread_position_in_grid]]) {
  const int64_t at = offset_of(index, shape, strides, ndim);
  float total = 0.0f, lost = 0.0f; // Kahan
  for (int i = 0; i < axis_size; i++) {
    float y = in[at + i * axis_stride] - lost;
    float t = total + y;
    lost = (t - total) - y;
    total = t;
  }
  out[index] = total;
}

// Arg-reductions carry pairs; of equal values the first place wins.
template <typename T> struct candidate {
  T value;
  uint32_t place;
  template <bool largest> bool beats(thread const candidate &other) const {
    if (value == other.value) return place < other.place;
    return largest ? value > other.value : value < other.value;
  }
  candidate from_lane(ushort distance) const {
    return {simd_shuffle_xor(value, distance), simd_shuffle_xor(place, distance)};
  }
};

template <typename T, bool largest>
[[kernel]] void arg_of_row(const device T *in [[buffer(0)]], device uint32_t *out [[buffer(1)]],
                           const constant size_t &width [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                           uint t [[thread_position_in_threadgroup]], uint threads [[threads_per_threadgroup]],
                           uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                           uint simdgroups [[simdgroups_per_threadgroup]]) {
  using pair = candidate<T>;
  threadgroup pair places[SIMD_SIZE];
  const pair none = {largest ? Limits<T>::lowest : Limits<T>::highest, UINT_MAX};
  const auto best_lane = [](pair mine) {
    for (ushort d = SIMD_SIZE / 2; d != 0; d >>= 1) {
      const pair theirs = mine.from_lane(d);
      if (theirs.template beats<largest>(mine)) mine = theirs;
    }
    return mine;
  };
  pair best = none;
  for (size_t i = t; i < width; i += threads) {
    const pair here = {in[row * width + i], uint32_t(i)};
    if (here.template beats<largest>(best)) best = here;
  }
  best = best_lane(best);
  if (lane == 0) places[simdgroup] = best;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup > 0) return;
  if (lane < simdgroups) best = places[lane];
  else best = none;
  best = best_lane(best);
  if (lane == 0) out[row] = best.place;
}
template [[host_name("argmin_f32")]] [[kernel]] decltype(arg_of_row<float, false>) arg_of_row<float, false>;
template [[host_name("argmax_i8")]] [[kernel]] decltype(arg_of_row<char, true>) arg_of_row<char, true>;
template [[host_name("argmax_bf16")]] [[kernel]] decltype(arg_of_row<bfloat16_t, true>) arg_of_row<bfloat16_t, true>;

// log(sum(exp(x))) with a running maximum.
template <typename T>
[[kernel]] void logsumexp(const device T *in [[buffer(0)]], device T *out [[buffer(1)]], constant int &width [[buffer(2)]],
                          uint row [[threadgroup_position_in_grid]], uint lid [[thread_position_in_threadgroup]],
                          uint lsize [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                          uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float2 local[SIMD_SIZE]; // maximum, sum
  float top = Limits<float>::lowest, sum = 0;
  for (int i = lid; i < width; i += lsize) {
    float x = in[row * size_t(width) + i];
    float before = top;
    top = max(top, x);
    sum = sum * fast::exp(before - top) + fast::exp(x - top);
  }
  float simd_top = simd_max(top);
  sum = simd_sum(top == simd_top ? sum : sum * fast::exp(top - simd_top));
  if (simdgroup == 0) local[lane] = float2(Limits<float>::lowest, 0);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) local[simdgroup] = float2(simd_top, sum);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float2 all = local[lane];
  top = simd_max(all.x);
  sum = simd_sum(all.x == top ? all.y : all.y * fast::exp(all.x - top));
  if (lid == 0) out[row] = isinf(top) ? T(top) : T(log(sum) + top);
}
#define instantiate_logsumexp(name, itype) \
  template [[host_name("logsumexp_" #name)]] [[kernel]] decltype(logsumexp<itype>) logsumexp<itype>;
instantiate_logsumexp(f32, float)
instantiate_logsumexp(f16, half)
