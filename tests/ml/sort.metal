// Sorting: bitonic in threadgroup memory, merge sort of blocks that are then merged by partitions, a radix sort of
// 8 bits a pass; and top-k and top-p on top of such.
#include <metal_stdlib>
#include <metal_atomic>
using namespace metal;

// ---- Bitonic argsort of a row, padded with places beyond its end, which belong behind all others.

enum class direction : int { up = 0, down = 1 };

template <typename T, direction D> struct by_value {
  device const T* row;
  int width;
  // Whether place a belongs behind place b.
  bool behind(uint a, uint b) const {
    if (int(b) >= width) return false;
    if (int(a) >= width) return true;
    return D == direction::up ? row[b] < row[a] : row[a] < row[b];
  }
};
template <typename T>
METAL_FUNC void exchange_if(bool yes, threadgroup T& a, threadgroup T& b) {
  const T old = a;
  a = yes ? b : old;
  b = yes ? old : b;
}

template <typename T, direction D>
kernel void bitonic_order(device const T* values [[buffer(0)]], device uint* order [[buffer(1)]],
                          constant int2& size /* width, padded width */ [[buffer(2)]], threadgroup uint* places [[threadgroup(0)]],
                          ushort2 row [[threadgroup_position_in_grid]], ushort2 at [[thread_position_in_threadgroup]]) {
  const ushort t = at.x;
  const by_value<T, D> compare{values + row.y * size.x, size.x};
  places[t] = t;
  for (ushort run = 2; run <= size.y; run <<= 1) {
    for (ushort apart = run >> 1; apart; apart >>= 1) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      const ushort partner = t ^ apart;
      if (partner < t) continue;
      const bool rising = !(t & run);
      const uint a = places[t], b = places[partner];
      exchange_if(rising ? compare.behind(a, b) : compare.behind(b, a), places[t], places[partner]);
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < size.x) order[row.y * size.x + t] = places[t];
}
template [[host_name("bitonic_order_f32_up")]] kernel decltype(bitonic_order<float, direction::up>) bitonic_order<float, direction::up>;
template [[host_name("bitonic_order_f16_down")]] kernel decltype(bitonic_order<half, direction::down>) bitonic_order<half, direction::down>;

// ---- Merge sort of a block: a thread sorts its own few in registers, then runs of twice the length are merged, each thread
// writing its share after a search for where the share begins.

template <typename T> struct item {
  T key;
  uint place;
};
template <typename T> METAL_FUNC bool ahead(T a, T b) { return a < b; }
// NaN is behind everything.
template <> METAL_FUNC bool ahead(float a, float b) { return isnan(b) ? !isnan(a) : a < b; }
template <typename T> struct end_of { static constexpr constant T value = numeric_limits<T>::max(); };
template <> struct end_of<float> { static constexpr constant float value = NAN; };

// How many of the first run are among the first `count` of both; of equals those of the first run come first.
template <typename T>
METAL_FUNC int taken_from_first(threadgroup const item<T>* first, threadgroup const item<T>* second, int length, int count) {
  int low = max(0, count - length), high = min(count, length);
  while (low != high) {
    const int middle = low + (high - low) / 2;
    if (ahead(second[count - middle - 1].key, first[middle].key)) high = middle;
    else low = middle + 1;
  }
  return low;
}

template <typename T, ushort THREADS, ushort OWN>
[[kernel, max_total_threads_per_threadgroup(THREADS)]] void
sort_block(const device T* in [[buffer(0)]], device T* out [[buffer(1)]], device uint* order [[buffer(2)]],
           constant int& width [[buffer(3)]], uint2 row [[threadgroup_position_in_grid]],
           ushort2 at [[thread_position_in_threadgroup]]) {
  threadgroup item<T> items[THREADS * OWN];
  const ushort t = at.x;
  const ulong start = ulong(row.y) * width;
  item<T> own[OWN];
  for (ushort i = 0; i < OWN; i++) {
    const int k = t * OWN + i;
    own[i] = {k < width ? in[start + k] : end_of<T>::value, uint(k)};
  }
  // By insertion; OWN is small.
#pragma clang loop unroll(full)
  for (ushort i = 1; i < OWN; i++) {
#pragma clang loop unroll(full)
    for (ushort j = i; j > 0; j--) {
      if (!ahead(own[j].key, own[j - 1].key)) continue;
      const item<T> other = own[j];
      own[j] = own[j - 1];
      own[j - 1] = other;
    }
  }
  for (ushort length = OWN; length < THREADS * OWN; length *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (ushort i = 0; i < OWN; i++) items[t * OWN + i] = own[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const int mine = t * OWN, both = mine / (2 * length) * (2 * length);
    threadgroup const item<T>*first = items + both, *second = first + length;
    int a = taken_from_first(first, second, length, mine - both), b = mine - both - a;
    for (ushort i = 0; i < OWN; i++) {
      const bool from_second = a == length || (b < length && ahead(second[b].key, first[a].key));
      own[i] = from_second ? second[b++] : first[a++];
    }
  }
  for (ushort i = 0; i < OWN; i++) {
    const int k = t * OWN + i;
    if (k < width) out[start + k] = own[i].key, order[start + k] = own[i].place;
  }
}
template [[host_name("sort_block_f32_64_4")]] [[kernel]] decltype(sort_block<float, 64, 4>) sort_block<float, 64, 4>;
template [[host_name("sort_block_i8_128_8")]] [[kernel]] decltype(sort_block<int8_t, 128, 8>) sort_block<int8_t, 128, 8>;

// Merging of sorted runs in device memory: every thread finds its place by a binary search and merges a few.
template <typename T>
[[kernel]] void merge_runs(const device T* in [[buffer(0)]], device T* out [[buffer(1)]], constant uint& n [[buffer(2)]],
                           constant uint& run [[buffer(3)]], constant uint& per_thread [[buffer(4)]],
                           uint gid [[thread_position_in_grid]]) {
  uint first = gid * per_thread;
  if (first >= n) return;
  uint pair = first / (2 * run) * (2 * run);
  uint a_end = min(pair + run, n), b_end = min(pair + 2 * run, n);
  uint na = a_end - pair, nb = b_end - a_end, diagonal = first - pair;
  const device T* A = in + pair;
  const device T* B = in + a_end;
  uint low = diagonal > nb ? diagonal - nb : 0, high = min(diagonal, na);
  while (low < high) {
    uint middle = (low + high) >> 1;
    if (B[diagonal - 1 - middle] < A[middle]) high = middle;
    else low = middle + 1;
  }
  uint a = low, b = diagonal - low;
  for (uint k = 0; k < per_thread && first + k < b_end; k++) {
    if (b >= nb || (a < na && !(B[b] < A[a]))) out[first + k] = A[a++];
    else out[first + k] = B[b++];
  }
}
template [[host_name("merge_runs_i64")]] [[kernel]] decltype(merge_runs<int64_t>) merge_runs<int64_t>;

// ---- Radix sort: histograms by blocks, one scan over (digit, block), a stable scatter.

constant constexpr uint RADIX = 256;

template <typename T> struct RadixKey;
template <> struct RadixKey<float> {
  static uint encode(float x) {
    uint bits = as_type<uint>(x);
    return bits ^ ((bits & 0x80000000u) ? 0xffffffffu : 0x80000000u);
  }
};
template <> struct RadixKey<int> {
  static uint encode(int x) { return as_type<uint>(x) ^ 0x80000000u; }
};
template <typename T>
[[kernel]] void radix_histogram(const device T* keys [[buffer(0)]], device uint* histogram [[buffer(1)]],
                                constant uint& n [[buffer(2)]], constant uint& shift [[buffer(3)]],
                                constant uint& blocks [[buffer(4)]], uint gid [[threadgroup_position_in_grid]],
                                uint tid [[thread_index_in_threadgroup]], uint count [[threads_per_threadgroup]]) {
  threadgroup atomic_uint local[RADIX];
  for (uint d = tid; d < RADIX; d += count) atomic_store_explicit(&local[d], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint i = gid * count + tid;
  if (i < n) {
    uint digit = (RadixKey<T>::encode(keys[i]) >> shift) & (RADIX - 1);
    atomic_fetch_add_explicit(&local[digit], 1u, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint d = tid; d < RADIX; d += count)
    histogram[d * blocks + gid] = atomic_load_explicit(&local[d], memory_order_relaxed);
}

kernel void radix_scan(device uint* histogram [[buffer(0)]], constant uint& size [[buffer(1)]],
                       uint lane [[thread_index_in_simdgroup]]) {
  uint carry = 0;
  for (uint base = 0; base < size; base += 32) {
    uint i = base + lane;
    uint v = i < size ? histogram[i] : 0;
    uint sum = simd_prefix_exclusive_sum(v);
    if (i < size) histogram[i] = carry + sum;
    carry += simd_broadcast(sum + v, 31);
  }
}

// A key's place among the equals of its simdgroup: a ballot for each bit of the digit.
template <typename T>
[[kernel]] void radix_scatter(const device T* keys [[buffer(0)]], const device uint* values [[buffer(1)]],
                              device T* keys_out [[buffer(2)]], device uint* values_out [[buffer(3)]],
                              const device uint* offsets [[buffer(4)]], constant uint& n [[buffer(5)]],
                              constant uint& shift [[buffer(6)]], constant uint& blocks [[buffer(7)]],
                              uint gid [[threadgroup_position_in_grid]], uint tid [[thread_index_in_threadgroup]],
                              uint count [[threads_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]],
                              ushort sg [[simdgroup_index_in_threadgroup]],
                              ushort sgs [[simdgroups_per_threadgroup]]) {
  threadgroup ushort in_simdgroup[32][RADIX];
  for (uint d = lane; d < RADIX; d += 32) in_simdgroup[sg][d] = 0;
  uint i = gid * count + tid;
  bool valid = i < n;
  T key = valid ? keys[i] : T(0);
  uint digit = valid ? (RadixKey<T>::encode(key) >> shift) & (RADIX - 1) : RADIX;
  ulong peers = (ulong)(simd_vote::vote_t)simd_ballot(valid);
  for (uint bit = 0; bit < 8; bit++) {
    bool set = (digit >> bit) & 1;
    ulong vote = (ulong)(simd_vote::vote_t)simd_ballot(set);
    peers &= set ? vote : ~vote;
  }
  uint rank = popcount(uint(peers) & ((1u << lane) - 1));
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (valid && rank == 0) in_simdgroup[sg][digit] = popcount(uint(peers));
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!valid) return;
  for (ushort s = 0; s < sg; s++) rank += in_simdgroup[s][digit];
  uint to = offsets[digit * blocks + gid] + rank;
  keys_out[to] = key;
  values_out[to] = values[i];
}
#define instantiate_radix(name, T)                                                                             \
  template [[host_name("radix_histogram_" #name)]] [[kernel]] decltype(radix_histogram<T>) radix_histogram<T>; \
  template [[host_name("radix_scatter_" #name)]] [[kernel]] decltype(radix_scatter<T>) radix_scatter<T>;
instantiate_radix(f32, float)
instantiate_radix(i32, int)

// ---- Top-k of a row by selection: the k-th key is found digit by digit, then the larger ones and enough equals are
// written in the order of the row.
kernel void topk_radix_select(device const float* logits [[buffer(0)]], device float* values [[buffer(1)]],
                              device int* indices [[buffer(2)]], constant uint& vocab [[buffer(3)]],
                              constant uint& k [[buffer(4)]], uint row [[threadgroup_position_in_grid]],
                              uint tid [[thread_index_in_threadgroup]], uint count [[threads_per_threadgroup]],
                              uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
                              uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup atomic_uint histogram[256];
  threadgroup uint chosen, wanted;
  threadgroup uint2 sums[32];
  logits += row * vocab;
  uint prefix = 0, mask = 0, need = k;
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (uint d = tid; d < 256; d += count) atomic_store_explicit(&histogram[d], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = tid; i < vocab; i += count) {
      uint key = RadixKey<float>::encode(logits[i]);
      if ((key & mask) == prefix)
        atomic_fetch_add_explicit(&histogram[(key >> shift) & 255u], 1, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (tid == 0) {
      uint above = 0;
      int d = 255;
      for (; d > 0; d--) {
        uint here = atomic_load_explicit(&histogram[d], memory_order_relaxed);
        if (above + here >= need) break;
        above += here;
      }
      chosen = uint(d);
      wanted = need - above;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    prefix |= chosen << shift;
    mask |= 255u << shift;
    need = wanted;
  }
  // `need` of those equal to the threshold are still wanted.
  uint2 before = 0;
  for (uint base = 0; base < vocab; base += count) {
    uint i = base + tid;
    float x = i < vocab ? logits[i] : -INFINITY;
    uint key = RadixKey<float>::encode(x);
    uint2 mine = uint2(i < vocab && key > prefix, i < vocab && key == prefix);
    uint2 place = simd_prefix_inclusive_sum(mine);
    if (lane == 31) sums[sg] = place;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint2 all = 0, ahead = 0;
    for (uint s = 0; s < sgs; s++) {
      if (s < sg) ahead += sums[s];
      all += sums[s];
    }
    place += ahead + before - mine;
    // Among the taken, i stands behind all larger and all taken equals before it.
    bool take = mine.x || (mine.y && place.y < need);
    if (take) {
      uint at = place.x + min(place.y, need);
      values[row * k + at] = x;
      indices[row * k + at] = int(i);
    }
    before += all;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// ---- Top-p: of probabilities sorted down, keep the shortest head that holds p; draw by a uniform number.
kernel void top_p_sample(device const float* sorted_probs [[buffer(0)]], device const uint* sorted_ids [[buffer(1)]],
                         device const float* uniforms [[buffer(2)]], device uint* token [[buffer(3)]],
                         constant uint& vocab [[buffer(4)]], constant float& top_p [[buffer(5)]],
                         uint row [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  sorted_probs += row * vocab;
  float carry = 0;
  uint kept = vocab;
  for (uint base = 0; base < vocab; base += 32) {
    uint i = base + lane;
    float p = i < vocab ? sorted_probs[i] : 0.0f;
    float head = carry + simd_prefix_inclusive_sum(p);
    simd_vote over = simd_ballot(i < vocab && head >= top_p);
    if (over.any()) {
      kept = base + ctz(uint((simd_vote::vote_t)over)) + 1;
      carry = simd_shuffle(head, ushort(kept - 1 - base));
      break;
    }
    carry = simd_broadcast(head, 31);
  }
  float target = uniforms[row] * carry, sofar = 0;
  uint pick = kept - 1;
  for (uint base = 0; base < kept; base += 32) {
    uint i = base + lane;
    float p = i < kept ? sorted_probs[i] : 0.0f;
    float head = sofar + simd_prefix_inclusive_sum(p);
    bool past = i < kept && head > target;
    uint first = simd_min(past ? i : UINT_MAX);
    if (first != UINT_MAX) {
      pick = first;
      break;
    }
    sofar = simd_broadcast(head, 31);
  }
  if (lane == 0) token[row] = sorted_ids[row * vocab + pick];
}
