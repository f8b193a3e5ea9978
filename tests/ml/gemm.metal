// Matrix products: tiles by simdgroup matrices whatever the transpositions, an epilogue, function constants for edges; a naive
// and a register-tiled one without them; matrix times vector both ways; a mixture of experts.
#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>
using namespace metal;

constant bool whole_rows [[function_constant(200)]]; // every tile is full
constant bool whole_columns [[function_constant(201)]];
constant bool whole_depth [[function_constant(202)]];
constant bool adds [[function_constant(100)]]; // alpha · AB + beta · C

struct product_shape {
  const int m, n, k;
  const int a_stride, b_stride, d_stride; // of rows as they lie
  const int64_t a_batch, b_batch, d_batch;
};
struct sum_factors {
  const int stride;
  const float alpha, beta;
};

namespace epilogue {
struct none {
  template <typename T> METAL_FUNC T operator()(float x, T) const { return static_cast<T>(x); }
};
struct scaled_sum {
  const float alpha, beta;
  explicit scaled_sum(constant sum_factors &f) : alpha(f.alpha), beta(f.beta) {}
  template <typename T> METAL_FUNC T operator()(float x, T c) const { return static_cast<T>(fma(alpha, x, beta * float(c))); }
};
} // namespace epilogue

// A tile of a matrix in threadgroup memory, as it lies in device memory; rows a little longer, so that they begin in different
// banks. All threads fetch vectors of WIDE numbers.
template <typename T, short ROWS, short COLUMNS, short THREADS> struct staged_tile {
  static constant constexpr short STRIDE = COLUMNS + 16 / sizeof(T);
  static constant constexpr short WIDE = ROWS * COLUMNS / THREADS < 8 ? ROWS * COLUMNS / THREADS : 8;
  static_assert(COLUMNS % WIDE == 0 && ROWS * COLUMNS % (THREADS * WIDE) == 0, "a tile must be shared out evenly");
  struct alignas(sizeof(T)) packet {
    T numbers[WIDE];
  };
  threadgroup T *place;

  METAL_FUNC void fetch(const device T *from, int stride, short thread_) const {
    for (short i = thread_ * WIDE; i < ROWS * COLUMNS; i += THREADS * WIDE) {
      const short r = i / COLUMNS, c = i % COLUMNS;
      *(threadgroup packet *)(place + r * STRIDE + c) = *(const device packet *)(from + r * stride + c);
    }
  }
  // What lies beyond `inside` (columns, rows) is 0 and never read.
  METAL_FUNC void fetch_inside(const device T *from, int stride, short thread_, short2 inside) const {
    for (short i = thread_ * WIDE; i < ROWS * COLUMNS; i += THREADS * WIDE) {
      const short r = i / COLUMNS, c = i % COLUMNS;
      packet p;
#pragma clang loop unroll(full)
      for (short w = 0; w < WIDE; w++) {
        const bool in = all(short2(c + w, r) < inside);
        p.numbers[w] = in ? from[r * stride + c + w] : T(0);
      }
      *(threadgroup packet *)(place + r * STRIDE + c) = p;
    }
  }
};

// D = epilogue(op(A) op(B), C). A threadgroup has BM x BN numbers of D, each of its WM x WN simdgroups a block of 8x8 tiles.
template <typename T, short BM, short BN, short BK, short WM, short WN, bool a_turned, bool b_turned>
struct tiled_product {
  static constant constexpr short THREADS = WM * WN * 32;
  static constant constexpr short TM = BM / WM / 8, TN = BN / WN / 8;
  using a_tile = staged_tile<T, a_turned ? BK : BM, a_turned ? BM : BK, THREADS>;
  using b_tile = staged_tile<T, b_turned ? BN : BK, b_turned ? BK : BN, THREADS>;
  using sums = simdgroup_matrix<float, 8, 8>;

  sums tiles[TM][TN];

  tiled_product() thread {
    for (auto &row : tiles)
      for (auto &tile : row) tile = sums(0);
  }

  METAL_FUNC void accumulate(threadgroup const T *a, threadgroup const T *b, short2 at) thread {
#pragma clang loop unroll(full)
    for (short k = 0; k < BK; k += 8) {
      simdgroup_matrix<T, 8, 8> as[TM], bs[TN];
      for (short i = 0; i < TM; i++) {
        const short row = at.y + 8 * i;
        simdgroup_load(as[i], a + (a_turned ? k * a_tile::STRIDE + row : row * a_tile::STRIDE + k), a_tile::STRIDE, 0, a_turned);
      }
      for (short j = 0; j < TN; j++) {
        const short column = at.x + 8 * j;
        simdgroup_load(bs[j], b + (b_turned ? column * b_tile::STRIDE + k : k * b_tile::STRIDE + column), b_tile::STRIDE, 0, b_turned);
      }
      for (short i = 0; i < TM; i++)
        for (short j = 0; j < TN; j++) simdgroup_multiply_accumulate(tiles[i][j], as[i], bs[j], tiles[i][j]);
    }
  }

  // A lane has two neighbours of each tile: it writes them itself, as far as they are inside.
  template <typename Epilogue>
  METAL_FUNC void write(device T *d, int stride, const device T *c, int c_stride, short2 at, short2 inside, ushort lane,
                        thread const Epilogue &finish) const thread {
    const short quarter = lane / 4;
    at += short2((quarter & 2) * 2 + lane % 2 * 2, (quarter & 4) + lane / 2 % 4);
    for (short i = 0; i < TM; i++)
      for (short j = 0; j < TN; j++) {
        const auto two = tiles[i][j].thread_elements();
        for (short e = 0; e < 2; e++) {
          const short2 place = at + short2(8 * j + e, 8 * i);
          if (any(place >= inside)) continue;
          d[place.y * stride + place.x] = finish(two[e], adds ? c[place.y * c_stride + place.x] : T(0));
        }
      }
  }
};

template <typename T, short BM, short BN, short BK, short WM, short WN, bool a_turned, bool b_turned>
[[kernel, max_total_threads_per_threadgroup(WM *WN * 32)]] void
gemm(const device T *a [[buffer(0)]], const device T *b [[buffer(1)]], const device T *c [[buffer(2), function_constant(adds)]],
     device T *d [[buffer(3)]], const constant product_shape &shape [[buffer(4)]],
     const constant sum_factors &factors [[buffer(5), function_constant(adds)]], ushort lane [[thread_index_in_simdgroup]],
     ushort sg [[simdgroup_index_in_threadgroup]], ushort t [[thread_index_in_threadgroup]],
     uint3 group [[threadgroup_position_in_grid]]) {
  using product = tiled_product<T, BM, BN, BK, WM, WN, a_turned, b_turned>;
  using a_tile = typename product::a_tile;
  using b_tile = typename product::b_tile;
  threadgroup T a_memory[(a_turned ? BK : BM) * a_tile::STRIDE], b_memory[(b_turned ? BN : BK) * b_tile::STRIDE];
  const a_tile a_staged{a_memory};
  const b_tile b_staged{b_memory};

  const int row = group.y * BM, column = group.x * BN;
  a += shape.a_batch * group.z + (a_turned ? int64_t(row) : int64_t(row) * shape.a_stride);
  b += shape.b_batch * group.z + (b_turned ? int64_t(column) * shape.b_stride : int64_t(column));
  const int64_t corner = int64_t(row) * shape.d_stride + column;
  d += shape.d_batch * group.z + corner;
  const short rows = whole_rows ? BM : short(min(int(BM), shape.m - row));
  const short columns = whole_columns ? BN : short(min(int(BN), shape.n - column));
  const short2 at = short2(sg % WN * (BN / WN), sg / WN * (BM / WM));

  product result;
  const int64_t a_step = a_turned ? int64_t(BK) * shape.a_stride : BK, b_step = b_turned ? BK : int64_t(BK) * shape.b_stride;
  for (int k = shape.k; k > 0; k -= BK, a += a_step, b += b_step) {
    const short deep = whole_depth ? BK : short(min(int(BK), k));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (whole_rows && whole_columns && deep == BK) {
      a_staged.fetch(a, shape.a_stride, t);
      b_staged.fetch(b, shape.b_stride, t);
    } else {
      a_staged.fetch_inside(a, shape.a_stride, t, a_turned ? short2(rows, deep) : short2(deep, rows));
      b_staged.fetch_inside(b, shape.b_stride, t, b_turned ? short2(deep, columns) : short2(columns, deep));
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    result.accumulate(a_memory, b_memory, at);
  }
  if (adds) {
    const epilogue::scaled_sum finish(factors);
    result.write(d, shape.d_stride, c + shape.d_batch * group.z + int64_t(row) * factors.stride + column, factors.stride, at,
                 short2(columns, rows), lane, finish);
  } else {
    result.write(d, shape.d_stride, d, 0, at, short2(columns, rows), lane, epilogue::none());
  }
}
#define instantiate_gemm(turns, a_turned, b_turned, tname, T, bm, bn, bk, wm, wn)                                  \
  template [[host_name("gemm_" #turns "_" #tname)]] [[kernel]] decltype(gemm<T, bm, bn, bk, wm, wn, a_turned, b_turned>) \
      gemm<T, bm, bn, bk, wm, wn, a_turned, b_turned>;
instantiate_gemm(nn, false, false, float32, float, 32, 32, 16, 2, 2)
instantiate_gemm(nt, false, true, float16, half, 64, 32, 32, 2, 2)
instantiate_gemm(tn, true, false, bfloat16, bfloat, 32, 64, 16, 1, 2)
instantiate_gemm(tt, true, true, float32, float, 64, 64, 16, 2, 2)

// Naive, one number a thread; and 4 by 4 a thread through threadgroup memory.
kernel void gemm_naive(constant uint& M [[buffer(0)]], constant uint& N [[buffer(1)]], constant uint& K [[buffer(2)]],
                       device const float* A [[buffer(3)]], device const float* B [[buffer(4)]], device float* C [[buffer(5)]],
                       uint2 gid [[thread_position_in_grid]]) {
  if (gid.x >= N || gid.y >= M) return;
  float sum = 0;
  for (uint k = 0; k < K; ++k) sum += A[gid.y * K + k] * B[k * N + gid.x];
  C[gid.y * N + gid.x] = sum;
}
#define TILE 32
#define WPT 4
kernel void gemm_register_tiled(constant uint3& MNK [[buffer(0)]], device const float* A [[buffer(1)]],
                                device const float* B [[buffer(2)]], device float* C [[buffer(3)]],
                                uint2 group [[threadgroup_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]) {
  threadgroup float tile_a[TILE][TILE + 1], tile_b[TILE][TILE];
  const uint M = MNK.x, N = MNK.y, K = MNK.z;
  float acc[WPT][WPT] = {{0}};
  for (uint k0 = 0; k0 < K; k0 += TILE) {
    for (uint i = 0; i < WPT; i++)
      for (uint j = 0; j < WPT; j++) {
        uint r = t.y * WPT + i, c = t.x * WPT + j;
        uint row = group.y * TILE + r, col = group.x * TILE + c;
        tile_a[r][c] = (row < M && k0 + c < K) ? A[row * K + k0 + c] : 0.0f;
        tile_b[r][c] = (k0 + r < K && col < N) ? B[(k0 + r) * N + col] : 0.0f;
      }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < TILE; k++) {
      float a[WPT], b[WPT];
      for (uint i = 0; i < WPT; i++) a[i] = tile_a[t.y * WPT + i][k];
      for (uint j = 0; j < WPT; j++) b[j] = tile_b[k][t.x * WPT + j];
      for (uint i = 0; i < WPT; i++)
        for (uint j = 0; j < WPT; j++) acc[i][j] += a[i] * b[j];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint i = 0; i < WPT; i++)
    for (uint j = 0; j < WPT; j++) {
      uint row = group.y * TILE + t.y * WPT + i, col = group.x * TILE + t.x * WPT + j;
      if (row < M && col < N) C[row * N + col] = acc[i][j];
    }
}

// Matrix times vector: a simdgroup has ROWS rows, its lanes four neighbouring columns at a time; totals go down the lanes.
template <typename T, short ROWS>
[[kernel]] void gemv(const device T *matrix [[buffer(0)]], const device T *x [[buffer(1)]], device T *y [[buffer(2)]],
                     constant int3 &shape /* rows, columns, stride */ [[buffer(3)]], uint group [[threadgroup_position_in_grid]],
                     ushort sg [[simdgroup_index_in_threadgroup]], ushort sgs [[simdgroups_per_threadgroup]],
                     ushort lane [[thread_index_in_simdgroup]]) {
  // Where the last rows are fewer, they are counted back from the end, and some are done twice.
  const int wanted = int(group * sgs + sg) * ROWS;
  if (wanted >= shape.x) return;
  const int first = max(0, min(wanted, shape.x - ROWS)), rows = min(int(ROWS), shape.x);
  float sums[ROWS] = {0.0f};
  for (int c = lane * 4; c < shape.y; c += 128) {
    float4 part = 0;
    const int here = min(4, shape.y - c);
    for (int i = 0; i < here; i++) part[i] = x[c + i];
    for (short r = 0; r < ROWS && r < rows; r++) {
      const device T *line = matrix + int64_t(first + r) * shape.z + c;
      if (here == 4) sums[r] += dot(part, float4(line[0], line[1], line[2], line[3]));
      else
        for (int i = 0; i < here; i++) sums[r] = fma(part[i], float(line[i]), sums[r]);
    }
  }
#pragma unroll
  for (short r = 0; r < ROWS; r++) {
    for (ushort d = 16; d; d /= 2) sums[r] += simd_shuffle_down(sums[r], d);
    if (lane == 0 && r < rows) y[first + r] = T(sums[r]);
  }
}
template [[host_name("gemv_float32")]] [[kernel]] decltype(gemv<float, 4>) gemv<float, 4>;
template [[host_name("gemv_bfloat16")]] [[kernel]] decltype(gemv<bfloat, 1>) gemv<bfloat, 1>;

// Transposed: threads over columns, threadgroup rows over parts of the sum.
template <typename T, int BM = 8>
[[kernel]] void gemv_t(const device T* mat [[buffer(0)]], const device T* v [[buffer(1)]], device T* out [[buffer(2)]],
                       constant int2& size /* rows, columns */ [[buffer(3)]], uint tid [[threadgroup_position_in_grid]],
                       uint2 lid [[thread_position_in_threadgroup]]) {
  threadgroup float part[BM][32];
  const int col = tid * 32 + lid.x;
  float sum = 0;
  for (int r = lid.y; r < size.x; r += BM)
    if (col < size.y) sum += float(mat[r * size.y + col]) * float(v[r]);
  part[lid.y][lid.x] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lid.y != 0 || col >= size.y) return;
  for (int i = 1; i < BM; i++) sum += part[i][lid.x];
  out[col] = T(sum);
}
template [[host_name("gemv_t_float16")]] [[kernel]] decltype(gemv_t<half>) gemv_t<half>;

// A mixture of experts: each token's k experts, gathered, each matrix times that token; then weighted together.
kernel void moe_gather_mv(device const half* experts [[buffer(0)]], device const float* x [[buffer(1)]],
                          device const uint* ids [[buffer(2)]], device float* y [[buffer(3)]],
                          constant uint4& p /* out, in, experts a token, experts */ [[buffer(4)]],
                          uint2 tg [[threadgroup_position_in_grid]], uint sg [[simdgroup_index_in_threadgroup]],
                          uint sgs [[simdgroups_per_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  const uint out_row = tg.x * sgs + sg, slot = tg.y, token = slot / p.z;
  if (out_row >= p.x) return;
  const uint expert = ids[slot];
  if (expert >= p.w) {
    if (lane == 0) y[slot * p.x + out_row] = 0;
    return;
  }
  device const half* w = experts + (size_t(expert) * p.x + out_row) * p.y;
  device const float* xt = x + token * p.y;
  float sum = 0;
  uint i = lane * 4;
  for (; i + 3 < p.y; i += 128) {
    const half4 w4 = half4(w[i], w[i + 1], w[i + 2], w[i + 3]);
    sum += dot(float4(w4), float4(xt[i], xt[i + 1], xt[i + 2], xt[i + 3]));
  }
  if (i < p.y) // the lane with the last one to three
    for (uint k = i; k < p.y; k++) sum += float(w[k]) * xt[k];
  sum = simd_sum(sum);
  if (simd_is_first()) y[slot * p.x + out_row] = sum;
}
kernel void moe_combine(device const float* y [[buffer(0)]], device const float* gate [[buffer(1)]],
                        device float* out [[buffer(2)]], constant uint2& p /* width, experts a token */ [[buffer(3)]],
                        uint2 gid [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint e = 0; e < p.y; e++) sum = fma(gate[gid.y * p.y + e], y[(gid.y * p.y + e) * p.x + gid.x], sum);
  out[gid.y * p.x + gid.x] = sum;
}
