// c = a · b by simdgroup matrices, in the manner of public libraries: both tiles in threadgroup memory, fragments loaded by
// the lanes themselves, every simdgroup a block of fragments whose sums stay in registers. All sizes multiples of the tile's.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

template <typename T, typename Sum, short BM, short BN, short BK, short WM, short WN, bool turned, bool fenced = false>
[[kernel, max_total_threads_per_threadgroup(WM *WN * 32)]] void
product(const device T *a [[buffer(0)]], const device T *b [[buffer(1)]], device float *c [[buffer(2)]],
        const constant int3 &sizes [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
        ushort me [[thread_index_in_threadgroup]], ushort simdgroup [[simdgroup_index_in_threadgroup]],
        ushort lane [[thread_index_in_simdgroup]]) {
  constexpr short TM = BM / WM / 8, TN = BN / WN / 8, A_ROW = BK + 16 / sizeof(T), B_ROW = BN + 16 / sizeof(T);
  threadgroup T a_tile[BM * A_ROW], b_tile[BK * B_ROW];
  const int n = sizes.y, depth = sizes.z;
  const short quad = lane / 4, row = (quad & 4) + lane / 2 % 4, column = (quad & 2) * 2 + lane % 2 * 2;
  const short top = simdgroup / WN * TM * 8, left = simdgroup % WN * TN * 8;
  simdgroup_matrix<Sum, 8, 8> sums[TM][TN];
  for (short i = 0; i < TM; i++)
    for (short j = 0; j < TN; j++) sums[i][j] = simdgroup_matrix<Sum, 8, 8>(0);
  for (int base = 0; base < depth; base += BK) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short i = me; i < BM * BK; i += WM * WN * 32)
      a_tile[i / BK * A_ROW + i % BK] = a[(group.y * BM + i / BK) * depth + base + i % BK];
    for (short i = me; i < BK * BN; i += WM * WN * 32)
      b_tile[i / BN * B_ROW + i % BN] = turned ? b[(group.x * BN + i % BN) * depth + base + i / BN] : b[(base + i / BN) * n + group.x * BN + i % BN];
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (short k = 0; k < BK; k += 8) {
      simdgroup_matrix<T, 8, 8> as[TM], bs[TN];
#pragma clang loop unroll(full)
      for (short i = 0; i < TM; i++)
        for (short e = 0; e < 2; e++) as[i].thread_elements()[e] = a_tile[(top + 8 * i + row) * A_ROW + k + column + e];
      if (fenced) simdgroup_barrier(mem_flags::mem_none);
#pragma clang loop unroll(full)
      for (short j = 0; j < TN; j++)
        for (short e = 0; e < 2; e++) bs[j].thread_elements()[e] = b_tile[(k + row) * B_ROW + left + 8 * j + column + e];
      if (fenced) simdgroup_barrier(mem_flags::mem_none);
#pragma clang loop unroll(full)
      for (short i = 0; i < TM; i++)
#pragma clang loop unroll(full)
        for (short j = 0; j < TN; j++) {
          const short serpentine = i % 2 ? TN - 1 - j : j;
          simdgroup_multiply_accumulate(sums[i][serpentine], as[i], bs[serpentine], sums[i][serpentine]);
        }
    }
  }
  for (short i = 0; i < TM; i++)
    for (short j = 0; j < TN; j++)
      for (short e = 0; e < 2; e++)
        c[(group.y * BM + top + 8 * i + row) * n + group.x * BN + left + 8 * j + column + e] = sums[i][j].thread_elements()[e];
}
#define FENCED(name, T, Sum, bm, bn, bk, wm, wn, turned)                                \
  template [[host_name(#name)]] [[kernel]] decltype(product<T, Sum, bm, bn, bk, wm, wn, turned, true>) product<T, Sum, bm, bn, bk, wm, wn, turned, true>;
FENCED(half_fenced_64x64x16, half, float, 64, 64, 16, 2, 2, false)
#define INSTANTIATE(name, T, Sum, bm, bn, bk, wm, wn, turned)                           \
  template [[host_name(#name)]] [[kernel]] decltype(product<T, Sum, bm, bn, bk, wm, wn, turned>) product<T, Sum, bm, bn, bk, wm, wn, turned>;
INSTANTIATE(half_64x64x16, half, float, 64, 64, 16, 2, 2, false)
INSTANTIATE(bfloat_64x64x16, bfloat, float, 64, 64, 16, 2, 2, false)
INSTANTIATE(float_64x64x16, float, float, 64, 64, 16, 2, 2, false)
INSTANTIATE(half_32x32x32, half, float, 32, 32, 32, 2, 2, true)
INSTANTIATE(bfloat_32x16x8, bfloat, float, 32, 16, 8, 2, 1, false)
INSTANTIATE(half_sums_16x32x16, half, half, 16, 32, 16, 1, 2, false)
INSTANTIATE(bfloat_sums_32x32x16, bfloat, bfloat, 32, 32, 16, 2, 2, false)
INSTANTIATE(float_24x40x8, float, float, 24, 40, 8, 1, 1, true)
INSTANTIATE(half_8x8x8, half, float, 8, 8, 8, 1, 1, false)

// A lane loads what it stored itself, without waiting for others: what they stored may not be there yet.
kernel void own_elements(const device half *a [[buffer(0)]], const device half *b [[buffer(1)]], device float *c [[buffer(2)]],
                         ushort lane [[thread_index_in_simdgroup]]) {
  threadgroup half a_tile[64], b_tile[64];
  const short quad = lane / 4, row = (quad & 4) + lane / 2 % 4, column = (quad & 2) * 2 + lane % 2 * 2;
  for (short e = 0; e < 2; e++) {
    a_tile[row * 8 + column + e] = a[row * 8 + column + e];
    b_tile[row * 8 + column + e] = b[row * 8 + column + e];
  }
  simdgroup_half8x8 left, right;
  simdgroup_load(left, a_tile);
  simdgroup_load(right, b_tile);
  simdgroup_float8x8 sum(0);
  simdgroup_multiply_accumulate(sum, left, right, sum);
  simdgroup_store(sum, c);
}

// Sums that each lane divides by a number of its own, and a division between two products that can be one instruction.
kernel void divided(const device half *a [[buffer(0)]], const device half *b [[buffer(1)]], device float *c [[buffer(2)]],
                    const device float *by [[buffer(3)]], device float *quotients [[buffer(4)]],
                    ushort lane [[thread_index_in_simdgroup]]) {
  simdgroup_half8x8 above, below, right;
  simdgroup_load(above, a);
  simdgroup_load(below, a + 64);
  simdgroup_load(right, b);
  simdgroup_float8x8 sums[2];
  simdgroup_multiply(sums[0], above, right);
  quotients[lane] = by[lane] / by[lane + 32];
  simdgroup_multiply(sums[1], below, right);
  const short quad = lane / 4, row = (quad & 4) + lane / 2 % 4, column = (quad & 2) * 2 + lane % 2 * 2;
  for (short i = 0; i < 2; i++)
    for (short e = 0; e < 2; e++) c[(8 * i + row) * 8 + column + e] = sums[i].thread_elements()[e] / by[lane];
}

// Threadgroup memory that the launch gives, one product after another.
kernel void given_nt(const device half *a [[buffer(0)]], const device half *b [[buffer(1)]], device float *c [[buffer(2)]],
                     threadgroup half *tiles [[threadgroup(0)]], ushort lane [[thread_index_in_simdgroup]]) {
  threadgroup half *a_tile = tiles, *b_tile = tiles + 16 * 24;
  for (short i = lane; i < 256; i += 32) {
    a_tile[i / 16 * 24 + i % 16] = a[i];
    b_tile[i / 16 * 24 + i % 16] = b[i];
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (short i = 0; i < 4; i++) {
    simdgroup_float8x8 sum(0);
    for (short k = 0; k < 16; k += 8) {
      simdgroup_half8x8 left, right;
      simdgroup_load(left, a_tile, 24, ulong2(k, i / 2 * 8));
      simdgroup_load(right, b_tile, 24, ulong2(k, i % 2 * 8), true);
      simdgroup_multiply_accumulate(sum, left, right, sum);
    }
    simdgroup_store(sum, c, 16, ulong2(i % 2 * 8, i / 2 * 8));
  }
}

// 16 x 16 numbers by simdgroup_load, of matrices that lie as they are or turned, in threadgroup or device memory.
template <typename T, bool a_turned, bool b_turned, bool staged>
[[kernel]] void loaded(const device T *a [[buffer(0)]], const device T *b [[buffer(1)]], device float *c [[buffer(2)]],
                       ushort lane [[thread_index_in_simdgroup]]) {
  threadgroup T a_tile[16 * 24], b_tile[16 * 24];
  simdgroup_float8x8 sums[2][2];
  for (short i = 0; i < 4; i++) sums[i / 2][i % 2] = simdgroup_float8x8(0);
  if (staged) {
    for (short i = lane; i < 256; i += 32) {
      a_tile[i / 16 * 24 + i % 16] = a[i];
      b_tile[i / 16 * 24 + i % 16] = b[i];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
#pragma clang loop unroll(full)
  for (short k = 0; k < 16; k += 8) {
    simdgroup_matrix<T, 8, 8> left[2], right[2];
    for (short i = 0; i < 2; i++) {
      const ulong2 at = a_turned ? ulong2(8 * i, k) : ulong2(k, 8 * i), from = b_turned ? ulong2(k, 8 * i) : ulong2(8 * i, k);
      if (staged) {
        simdgroup_load(left[i], a_tile, 24, at, a_turned);
        simdgroup_load(right[i], b_tile, 24, from, b_turned);
      } else {
        simdgroup_load(left[i], a, 16, at, a_turned);
        simdgroup_load(right[i], b, 16, from, b_turned);
      }
    }
    for (short i = 0; i < 4; i++)
      simdgroup_multiply_accumulate(sums[i / 2][i % 2], left[i / 2], right[i % 2], sums[i / 2][i % 2]);
  }
  for (short i = 0; i < 4; i++) simdgroup_store(sums[i / 2][i % 2], c, 16, ulong2(i % 2 * 8, i / 2 * 8));
}
#define INSTANTIATE_LOADED(name, T, a, b, staged) template [[host_name(#name)]] [[kernel]] decltype(loaded<T, a, b, staged>) loaded<T, a, b, staged>;
INSTANTIATE_LOADED(loaded_nn, half, false, false, true)
INSTANTIATE_LOADED(loaded_nt, half, false, true, true)
INSTANTIATE_LOADED(loaded_tn, bfloat, true, false, true)
INSTANTIATE_LOADED(loaded_tt, half, true, true, true)
INSTANTIATE_LOADED(device_nt, bfloat, false, true, false)
INSTANTIATE_LOADED(device_tn, half, true, false, false)
INSTANTIATE_LOADED(float_nt, float, false, true, true)

// Eight matrices times one left matrix, which is diagonal or not, as where attention rescales its sums.
kernel void rescaled(const device float *left [[buffer(0)]], const device float *right [[buffer(1)]], device float *out [[buffer(2)]]) {
  simdgroup_float8x8 by, parts[8];
  simdgroup_load(by, left);
  for (short i = 0; i < 8; i++) simdgroup_load(parts[i], right + 64 * i);
  for (short i = 0; i < 8; i++) simdgroup_multiply(parts[i], by, parts[i]);
  for (short i = 0; i < 8; i++) simdgroup_store(parts[i], out + 64 * i);
}

// Products of depth 16 of a float matrix and one of narrow numbers, in either order. Right matrices lie in threadgroup memory. Upper and
// lower rows are multiplied together, or one after the other.
template <typename L, typename R, bool together>
kernel void mixed(const device L *a [[buffer(0)]], const device R *b [[buffer(1)]], device float *c [[buffer(2)]],
                  ushort me [[thread_index_in_threadgroup]]) {
  threadgroup R tile[16 * 16];
  for (ushort i = me; i < 16 * 16; i += 32) tile[i] = b[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_matrix<L, 8, 8> left[4];
  simdgroup_matrix<R, 8, 8> right[4];
  simdgroup_float8x8 sums[4];
  for (short i = 0; i < 4; i++) simdgroup_load(left[i], a + 8 * 16 * (i / 2) + 8 * (i % 2), 16);
  for (short i = 0; i < 4; i++) simdgroup_load(right[i], tile + 8 * 16 * (i / 2) + 8 * (i % 2), 16);
  for (short i = 0; i < 4; i++) {
    sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.5f);
    for (short k = 0; k < 2 && !together; k++) simdgroup_multiply_accumulate(sums[i], left[i / 2 * 2 + k], right[2 * k + i % 2], sums[i]);
    if (!together) simdgroup_store(sums[i], c + 8 * 16 * (i / 2) + 8 * (i % 2), 16);
  }
  if (!together) return;
  for (short k = 0; k < 2; k++)
    for (short i = 0; i < 4; i++) simdgroup_multiply_accumulate(sums[i], left[i / 2 * 2 + k], right[2 * k + i % 2], sums[i]);
  for (short i = 0; i < 4; i++) simdgroup_store(sums[i], c + 8 * 16 * (i / 2) + 8 * (i % 2), 16);
}

#define INSTANTIATE_MIXED(L, R)                                                                          \
  template [[host_name(#L "_times_" #R)]] [[kernel]] decltype(mixed<L, R, false>) mixed<L, R, false>; \
  template [[host_name(#L "_times_" #R "_together")]] [[kernel]] decltype(mixed<L, R, true>) mixed<L, R, true>;
INSTANTIATE_MIXED(float, half)
INSTANTIATE_MIXED(half, float)
INSTANTIATE_MIXED(float, bfloat)
INSTANTIATE_MIXED(bfloat, float)

// As attention does: the loop looks at the sums, where Metal's lanes have them. Each simdgroup takes every second block of eight rows of
// `b`; numbers are small integers.
kernel void looked_at(const device half *a [[buffer(0)]], const device half *b [[buffer(1)]], device float *out [[buffer(2)]],
                      device int *lanes [[buffer(3)]], constant uint &blocks [[buffer(4)]], ushort lane [[thread_index_in_simdgroup]],
                      ushort me [[thread_index_in_threadgroup]], ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup half tile[2][64];
  const ushort row = (lane / 4 & 4) + lane / 2 % 4, column = (lane / 4 & 2) * 2 + lane % 2 * 2;
  simdgroup_half8x8 left, right;
  simdgroup_float8x8 sums = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(left, a, 8);
  float top = -1000, total = 0, least = 1000, shifted = 0;
  int prefix = 0;
  for (uint block = simdgroup;; block += 2) {
    if (block >= blocks) break;
    for (ushort i = lane; i < 64; i += 32) tile[simdgroup][i] = b[64 * block + i];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(right, tile[simdgroup], 8, 0, true);
    simdgroup_float8x8 score = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    simdgroup_barrier(mem_flags::mem_none);
    simdgroup_multiply_accumulate(score, left, right, score);
    float2 mine = float2(score.thread_elements()[0], score.thread_elements()[1]);
    float highest = max(mine.x, mine.y);
    highest = max(highest, simd_shuffle_xor(highest, 1));
    highest = max(highest, simd_shuffle_xor(highest, 8));
    const float factor = highest > top ? 2 : 1;
    top = max(top, highest);
    total += simd_sum(mine.x * lane);
    least = min(least, simd_min(mine.y));
    shifted += simd_shuffle_down(mine.x, 3);
    prefix += simd_prefix_inclusive_sum(int(mine.y)) + int(uint(ulong(simd_ballot(mine.x > 0))) >> lane & 3);
    simdgroup_half8x8 weights;
    weights.thread_elements()[0] = half(clamp(mine.x - top + 8, 0.0f, 8.0f));
    weights.thread_elements()[1] = half(clamp(mine.y - top + 8, 0.0f, 8.0f));
    for (ushort e = 0; e < 2; e++) sums.thread_elements()[e] *= factor;
    simdgroup_load(right, tile[simdgroup], 8);
    simdgroup_multiply_accumulate(sums, weights, right, sums);
    simdgroup_multiply_accumulate(sums, right, weights, sums);
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (ushort e = 0; e < 2; e++) out[64 * simdgroup + 8 * row + column + e] = sums.thread_elements()[e];
  lanes[me * 5] = int(top);
  lanes[me * 5 + 1] = int(total);
  lanes[me * 5 + 2] = int(least);
  lanes[me * 5 + 3] = lane < 29 ? int(shifted) : 0;
  lanes[me * 5 + 4] = prefix;
}

// Tiles without padding, filled by a loop over the threads, and a loop of products that the source does not unroll.
template <typename T, uint BM, uint BN, uint BK>
kernel void rows(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device float *c [[buffer(2)]], constant int3 &sizes [[buffer(3)]],
                 uint me [[thread_index_in_threadgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup T left[BM * BK], right[BK * BN];
  const uint n = sizes.y, depth = sizes.z;
  simdgroup_float8x8 sums[2][BN / 8];
  for (uint i = 0; i < 2; i++)
    for (uint j = 0; j < BN / 8; j++) sums[i][j] = simdgroup_float8x8(0);
  for (uint base = 0; base < depth; base += BK) {
    for (uint i = me; i < BM * BK / 4; i += BM * 2)
      ((threadgroup vec<T, 4> *)left)[i] = *(device const vec<T, 4> *)(a + i / (BK / 4) * depth + base + i % (BK / 4) * 4);
    for (uint i = me; i < BK * BN / 4; i += BM * 2)
      ((threadgroup vec<T, 4> *)right)[i] = *(device const vec<T, 4> *)(b + (base + i / (BN / 4)) * n + i % (BN / 4) * 4);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < BK; k += 8) {
      simdgroup_matrix<T, 8, 8> l[2], r[BN / 8];
      for (uint i = 0; i < 2; i++) simdgroup_load(l[i], left + (simdgroup * 16 + i * 8) * BK + k, BK);
      for (uint j = 0; j < BN / 8; j++) simdgroup_load(r[j], right + k * BN + j * 8, BN);
      for (uint i = 0; i < 2; i++)
        for (uint j = 0; j < BN / 8; j++) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (uint i = 0; i < 2; i++)
    for (uint j = 0; j < BN / 8; j++) simdgroup_store(sums[i][j], c + (simdgroup * 16 + i * 8) * n + j * 8, n);
}
#define ROWS(name, T, bm, bn, bk) template [[host_name(#name)]] [[kernel]] decltype(rows<T, bm, bn, bk>) rows<T, bm, bn, bk>;
ROWS(half_rows_32x64x32, half, 32, 64, 32)
