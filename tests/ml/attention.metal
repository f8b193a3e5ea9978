// Attention: one query over a long cache (a simdgroup a block of keys, joined in threadgroup memory), the same split over
// threadgroups in two passes, a paged cache, and tiles of queries with simdgroup matrices.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant bool has_mask [[function_constant(20)]];
constant bool query_transposed [[function_constant(21)]];
constant bool do_causal [[function_constant(22)]];

// ---- One query, grouped heads: simdgroup g takes keys g, g + 32 …, its lanes the dimensions; each has its own running
// maximum and sums, which are joined through threadgroup memory one simdgroup a slice of the output.
template <int N> struct slice {
  float v[N];
  template <typename T> static slice of(const device T *from) {
    slice s;
    for (int i = 0; i < N; i++) s.v[i] = float(from[i]);
    return s;
  }
  float dot(thread const slice &o) const {
    float sum = 0;
    for (int i = 0; i < N; i++) sum = fma(v[i], o.v[i], sum);
    return sum;
  }
  void decay_and_add(float keep, float weight, thread const slice &o) {
    for (int i = 0; i < N; i++) v[i] = fma(weight, o.v[i], keep * v[i]);
  }
};
struct cache_shape {
  int group; // query heads a key head
  int keys;
  long k_head, k_row, v_head, v_row; // strides
  float scale;
};

template <typename T, int D, int V>
[[kernel, max_total_threads_per_threadgroup(1024)]] void
attend_one(const device T *queries [[buffer(0)]], const device T *keys [[buffer(1)]], const device T *values [[buffer(2)]],
           device T *out [[buffer(3)]], constant cache_shape &cache [[buffer(4)]],
           const device bool *allowed [[buffer(5), function_constant(has_mask)]], uint2 at [[threadgroup_position_in_grid]],
           uint2 all [[threadgroups_per_grid]], uint sg [[simdgroup_index_in_threadgroup]],
           uint lane [[thread_index_in_simdgroup]]) {
  constexpr int MINE = D / 32, OUT = V / 32, GROUPS = 32;
  threadgroup float crossing[GROUPS][32 + 1];
  threadgroup float2 states[GROUPS]; // maximum, sum

  const uint head = at.x, row = head * all.y + at.y, kv = head / cache.group;
  auto q = slice<MINE>::of(queries + (query_transposed ? at.y * all.x + head : row) * D + lane * MINE);
  for (int i = 0; i < MINE; i++) q.v[i] *= cache.scale;
  slice<OUT> sum = {{0}};
  float top = -INFINITY, total = 0;
  const int last = do_causal ? cache.keys - int(all.y) + int(at.y) : cache.keys - 1;
  for (int k = sg; k <= last; k += GROUPS) {
    if (has_mask && !allowed[row * cache.keys + k]) continue;
    const auto key = slice<MINE>::of(keys + kv * cache.k_head + k * cache.k_row + lane * MINE);
    const float score = simd_sum(q.dot(key)), grown = max(top, score);
    const float keep = fast::exp(top - grown), weight = fast::exp(score - grown);
    sum.decay_and_add(keep, weight, slice<OUT>::of(values + kv * cache.v_head + k * cache.v_row + lane * OUT));
    total = fma(total, keep, weight);
    top = grown;
  }
  if (simd_is_first()) states[sg] = float2(top, total);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float2 theirs = states[lane];
  const float share = fast::exp(theirs.x - simd_max(theirs.x));
  total = simd_sum(theirs.y * share);
  for (int i = 0; i < OUT; i++) {
    crossing[lane][sg] = sum.v[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float whole = simd_sum(crossing[sg][lane] * share);
    if (lane == 0) out[row * V + sg * OUT + i] = T(total > 0 ? whole / total : 0.0f);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}
template [[host_name("attend_one_float_64_64")]] [[kernel]] decltype(attend_one<float, 64, 64>) attend_one<float, 64, 64>;
template [[host_name("attend_one_half_128_96")]] [[kernel]] decltype(attend_one<half, 128, 96>) attend_one<half, 128, 96>;

// ---- The cache cut into blocks, one threadgroup each; then one simdgroup a head joins the partial results.
template <typename T, int D, int BLOCKS>
[[kernel]] void sdpa_2pass_1(const device T* queries [[buffer(0)]], const device T* keys [[buffer(1)]],
                             const device T* values [[buffer(2)]], device float* partials [[buffer(3)]],
                             device float2* stats [[buffer(4)]], constant int2& shape /* heads a kv head, keys */ [[buffer(5)]],
                             constant float& scale [[buffer(6)]], uint2 tid [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
                             uint sgs [[simdgroups_per_threadgroup]]) {
  using T4 = vec<T, 4>;
  constexpr int per_lane = D / 4; // lanes 0 .. per_lane - 1 hold four numbers of a row; several rows side by side
  constexpr int rows = 32 / per_lane;
  const int head = tid.x, block = tid.y, N = shape.y;
  threadgroup float2 shared_stats[8];
  threadgroup float4 shared_out[8][per_lane];
  const int at = lane % per_lane, r = lane / per_lane;
  const float4 q = float4(((const device T4*)(queries + head * D))[at]) * (scale * M_LOG2E_F);
  const device T* kh = keys + size_t(head / shape.x) * N * D;
  const device T* vh = values + size_t(head / shape.x) * N * D;
  float4 o = 0;
  float m = -INFINITY, s = 0;
  for (int i = (block * int(sgs) + int(sg)) * rows + r; i - r < N; i += BLOCKS * int(sgs) * rows) {
    const bool valid = i < N;
    float score = valid ? dot(q, float4(((const device T4*)(kh + i * D))[at])) : 0.0f;
    for (ushort d = per_lane / 2; d > 0; d >>= 1) score += simd_shuffle_xor(score, d);
    if (!valid) continue;
    const float grown = max(m, score);
    const float f = exp2(m - grown), e = exp2(score - grown);
    m = grown;
    s = s * f + e;
    o = o * f + e * float4(((const device T4*)(vh + i * D))[at]);
  }
  const float top = simd_max(m);
  const float f = top == -INFINITY ? 0.0f : exp2(m - top);
  s *= f;
  o *= f;
  for (ushort d = per_lane; d < 32; d <<= 1) {
    s += simd_shuffle_xor(s, d);
    o += float4(simd_shuffle_xor(o.x, d), simd_shuffle_xor(o.y, d), simd_shuffle_xor(o.z, d), simd_shuffle_xor(o.w, d));
  }
  if (lane == 0) shared_stats[sg] = float2(top, s);
  if (lane < per_lane) shared_out[sg][lane] = o;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg == 0 && lane < per_lane) {
    float all = -INFINITY, total = 0;
    float4 sum = 0;
    for (uint i = 0; i < sgs; i++) all = max(all, shared_stats[i].x);
    for (uint i = 0; i < sgs; i++) {
      const float w = all == -INFINITY ? 0.0f : exp2(shared_stats[i].x - all);
      total += w * shared_stats[i].y;
      sum += w * shared_out[i][lane];
    }
    ((device float4*)(partials + (head * BLOCKS + block) * D))[lane] = sum;
    if (lane == 0) stats[head * BLOCKS + block] = float2(all, total);
  }
}
template <typename T, int D, int BLOCKS>
[[kernel]] void sdpa_2pass_2(const device float* partials [[buffer(0)]], const device float2* stats [[buffer(1)]],
                             device T* out [[buffer(2)]], uint head [[threadgroup_position_in_grid]],
                             uint lane [[thread_index_in_simdgroup]]) {
  const float2 mine = lane < BLOCKS ? stats[head * BLOCKS + lane] : float2(-INFINITY, 0);
  const float top = simd_max(mine.x);
  const float factor = exp2(mine.x - top);
  const float total = simd_sum(factor * mine.y);
  for (int d = lane; d < D; d += 32) {
    float sum = 0;
    for (ushort b = 0; b < BLOCKS; b++) sum += simd_shuffle(factor, b) * partials[(head * BLOCKS + b) * D + d];
    out[head * D + d] = T(sum / total);
  }
}
template [[host_name("sdpa_2pass_1_bf16_32")]] [[kernel]] decltype(sdpa_2pass_1<bfloat, 32, 5>) sdpa_2pass_1<bfloat, 32, 5>;
template [[host_name("sdpa_2pass_2_bf16_32")]] [[kernel]] decltype(sdpa_2pass_2<bfloat, 32, 5>) sdpa_2pass_2<bfloat, 32, 5>;
template [[host_name("sdpa_2pass_1_f32_128")]] [[kernel]] decltype(sdpa_2pass_1<float, 128, 3>) sdpa_2pass_1<float, 128, 3>;
template [[host_name("sdpa_2pass_2_f32_128")]] [[kernel]] decltype(sdpa_2pass_2<float, 128, 3>) sdpa_2pass_2<float, 128, 3>;

// ---- A paged cache: keys as (page, head, D / x, slot, x) with 16 bytes of a key together, values as (page, head, D, slot);
// sequences of any length. A threadgroup a head of a sequence; scores lie in threadgroup memory.
struct paged_shape {
  int kv_heads;
  int pages_each;
  float scale;
  float cap; // 0: none
};
template <typename Op> static float across(float mine, threadgroup float *shared, ushort lane, ushort sg, ushort sgs, float nothing, Op op) {
  mine = op(mine);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) shared[sg] = mine;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return op(lane < sgs ? shared[lane] : nothing);
}
template <typename T, int D, int PAGE>
kernel void attend_pages(device T *out [[buffer(0)]], device const T *queries [[buffer(1)]], device const T *k_pages [[buffer(2)]],
                         device const T *v_pages [[buffer(3)]], device const uint *tables [[buffer(4)]],
                         device const uint *lengths [[buffer(5)]], constant paged_shape &shape [[buffer(6)]],
                         threadgroup float *scores [[threadgroup(0)]], uint2 at [[threadgroup_position_in_grid]],
                         uint2 all [[threadgroups_per_grid]], ushort t [[thread_index_in_threadgroup]],
                         ushort2 threads [[threads_per_threadgroup]], ushort lane [[thread_index_in_simdgroup]],
                         ushort sg [[simdgroup_index_in_threadgroup]], ushort sgs [[simdgroups_per_threadgroup]]) {
  constexpr int TOGETHER = 16 / sizeof(T);
  threadgroup float query[D], shared[32];
  const int length = lengths[at.y], kv_head = at.x * shape.kv_heads / all.x;
  device const uint *table = tables + at.y * shape.pages_each;
  const size_t row = (size_t(at.y) * all.x + at.x) * D;
  for (int d = t; d < D; d += threads.x) query[d] = float(queries[row + d]) * shape.scale;
  threadgroup_barrier(mem_flags::mem_threadgroup);

  float top = -INFINITY;
  for (int token = t; token < length; token += threads.x) {
    const int64_t page = table[token / PAGE];
    device const T *key = k_pages + (page * shape.kv_heads + kv_head) * (D * PAGE) + token % PAGE * TOGETHER;
    float score = 0;
    for (int d = 0; d < D; d += TOGETHER, key += PAGE * TOGETHER)
      for (int e = 0; e < TOGETHER; e++) score += query[d + e] * float(key[e]);
    if (shape.cap > 0) score = shape.cap * precise::tanh(score / shape.cap);
    scores[token] = score;
    top = fmax(top, score);
  }
  top = across(top, shared, lane, sg, sgs, -INFINITY, [](float v) { return simd_max(v); });
  float sum = 0;
  for (int token = t; token < length; token += threads.x) sum += scores[token] = exp(scores[token] - top);
  sum = across(sum, shared, lane, sg, sgs, 0, [](float v) { return simd_sum(v); });
  for (int d = sg; d < D; d += sgs) {
    float mine = 0;
    for (int token = lane; token < length; token += 32) {
      const int64_t page = table[token / PAGE];
      mine += scores[token] * float(v_pages[((page * shape.kv_heads + kv_head) * D + d) * PAGE + token % PAGE]);
    }
    mine = simd_sum(mine);
    if (lane == 0) out[row + d] = T(divide(mine, sum));
  }
}
template [[host_name("attend_pages_half_80_16")]] kernel decltype(attend_pages<half, 80, 16>) attend_pages<half, 80, 16>;
template [[host_name("attend_pages_float_64_8")]] kernel decltype(attend_pages<float, 64, 8>) attend_pages<float, 64, 8>;

// ---- Prefill: 8 queries a simdgroup, keys in blocks of 32 through threadgroup memory, scores and output as 8x8 tiles.
struct PrefillShape {
  int D;
  int query_count; // queries
  int key_count; // keys
  int first_key; // the key that query 0 is at
  float scale;
};
template <typename T, int DK, short SGS = 2>
[[kernel, max_total_threads_per_threadgroup(SGS * 32)]] void
flash_attention(const device T* Q [[buffer(0)]], const device T* K [[buffer(1)]], const device T* V [[buffer(2)]],
                device T* O [[buffer(3)]], const constant PrefillShape& params [[buffer(4)]],
                uint3 tid [[threadgroup_position_in_grid]], ushort thread_index [[thread_index_in_threadgroup]],
                ushort lane [[thread_index_in_simdgroup]], ushort sg [[simdgroup_index_in_threadgroup]]) {
  constexpr short BK = 32, TD = DK / 8, TK = BK / 8;
  threadgroup T Ks[BK * DK];
  threadgroup T Vs[BK * DK];
  threadgroup float Ss[SGS][8 * BK];
  threadgroup float Os[SGS][8 * DK];
  const size_t head = tid.y;
  const int q0 = (tid.x * SGS + sg) * 8;
  Q += head * params.query_count * DK, O += head * params.query_count * DK;
  K += head * params.key_count * DK, V += head * params.key_count * DK;

  // The queries as tiles, scaled; rows past the end are 0.
  simdgroup_matrix<float, 8, 8> q[TD], o[TD];
  for (short i = lane; i < 8 * DK; i += 32) {
    const int row = q0 + i / DK;
    Os[sg][i] = row < params.query_count ? float(Q[row * DK + i % DK]) * params.scale : 0.0f;
  }
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (short d = 0; d < TD; d++) {
    simdgroup_load(q[d], &Os[sg][0] + d * 8, DK);
    o[d] = make_filled_simdgroup_matrix<float, 8>(0.0f);
  }
  // Lane's part of a row: 4 lanes a row, 8 keys each.
  const short row = lane / 4, part = lane % 4;
  float m = -INFINITY, s = 0;
  for (int k0 = 0; k0 < params.key_count; k0 += BK) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (short i = thread_index; i < BK * DK; i += SGS * 32) {
      const bool in = k0 + i / DK < params.key_count;
      Ks[i] = in ? K[size_t(k0) * DK + i] : T(0);
      Vs[i] = in ? V[size_t(k0) * DK + i] : T(0);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (short k = 0; k < TK; k++) {
      simdgroup_matrix<float, 8, 8> score = simdgroup_matrix<float, 8, 8>(0);
#pragma clang loop unroll(full)
      for (short d = 0; d < TD; d++) {
        simdgroup_matrix<T, 8, 8> kt;
        simdgroup_load(kt, Ks + k * 8 * DK + d * 8, DK, ulong2(0, 0), true);
        simdgroup_multiply_accumulate(score, q[d], kt, score);
      }
      simdgroup_store(score, &Ss[sg][0] + k * 8, BK);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    float top = -INFINITY, sum = 0;
    float p[8];
    for (short j = 0; j < 8; j++) {
      const int k = k0 + part * 8 + j;
      const bool visible = k < params.key_count && (!do_causal || k <= q0 + row + params.first_key);
      p[j] = visible ? Ss[sg][row * BK + part * 8 + j] : -INFINITY;
      top = max(top, p[j]);
    }
    top = max(top, simd_shuffle_xor(top, 1));
    top = max(top, simd_shuffle_xor(top, 2));
    const float grown = max(m, top);
    const float f = grown == -INFINITY ? 1.0f : exp(m - grown);
    for (short j = 0; j < 8; j++) {
      p[j] = grown == -INFINITY ? 0.0f : exp(p[j] - grown);
      sum += p[j];
      Ss[sg][row * BK + part * 8 + j] = p[j];
    }
    sum += simd_shuffle_xor(sum, 1);
    sum += simd_shuffle_xor(sum, 2);
    s = s * f + sum;
    m = grown;
    // A diagonal matrix scales the rows of the output.
    simdgroup_matrix<float, 8, 8> scale(0.0f);
    threadgroup float* diagonal = Os[sg];
    diagonal[lane] = 0, diagonal[lane + 32] = 0;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (part == 0) diagonal[row * 9] = f;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(scale, diagonal, 8);
    for (short d = 0; d < TD; d++) {
      simdgroup_multiply(o[d], scale, o[d]);
      for (short k = 0; k < TK; k++) {
        simdgroup_matrix<float, 8, 8> ps;
        simdgroup_matrix<T, 8, 8> v;
        simdgroup_load(ps, &Ss[sg][0] + k * 8, BK);
        simdgroup_load(v, Vs + k * 8 * DK + d * 8, DK);
        simdgroup_multiply_accumulate(o[d], ps, v, o[d]);
      }
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (short d = 0; d < TD; d++) simdgroup_store(o[d], &Os[sg][0] + d * 8, DK);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (short i = part; i < DK; i += 4)
    if (q0 + row < params.query_count) O[(q0 + row) * DK + i] = T(Os[sg][row * DK + i] / s);
}
template [[host_name("flash_attention_f32_64")]] [[kernel]] decltype(flash_attention<float, 64>) flash_attention<float, 64>;
template [[host_name("flash_attention_f16_32")]] [[kernel]] decltype(flash_attention<half, 32, 4>) flash_attention<half, 32, 4>;
