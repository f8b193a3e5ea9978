// More bugs of the kinds that public bug reports describe; see bounds.metal.
#include <metal_stdlib>
using namespace metal;

// run: -b 0=ones:float32:256 -b 1:out:float32:2 --grid 256 --threadgroup 128
kernel void slots_reused_for_the_sum(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint i [[thread_position_in_grid]], uint g [[threadgroup_position_in_grid]],
                                     uint t [[thread_position_in_threadgroup]],
                                     uint lane [[thread_index_in_simdgroup]],
                                     uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float part[4];
  float v = a[i] * t, most = simd_max(v);
  if (lane == 0) part[sg] = most;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  most = max(max(part[0], part[1]), max(part[2], part[3])); // SM002 part
  float sum = simd_sum(exp(v - most));
  if (lane == 0) part[sg] = sum; // SM002 SM003 part
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t == 0) o[g] = part[0] + part[1] + part[2] + part[3];
}

// run: -b 0=ones:float32:128 -b 1:out:float32:128 --grid 128 --threadgroup 128
kernel void norm_reads_the_mean_too_early(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                          uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[128];
  s[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 64; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  float mean = s[0] / 128; // SM002 SM003 s[0]
  float d = a[t] - mean;
  s[t] = d * d + t;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[t];
}

// run: -b 0=ones:float32:192 -b 1:out:float32:1 --grid 192 --threadgroup 192
kernel void guard_for_larger_groups(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[128];
  if (t < 128) {
    s[t] = a[t];
    threadgroup_barrier(mem_flags::mem_threadgroup); // SM007
    if (t == 0) o[0] = s[127];
  }
}

// run: -b 0=arange:float32:128 -b 1=zeros:float32:128 -b 2:out:float32:4 --grid 128 --threadgroup 32
kernel void cache_written_by_another_group(device const float *k [[buffer(0)]], device float *cache [[buffer(1)]],
                                           device float *o [[buffer(2)]], uint i [[thread_position_in_grid]],
                                           uint g [[threadgroup_position_in_grid]],
                                           uint t [[thread_position_in_threadgroup]]) {
  cache[i] = k[i]; // SM004 cache
  threadgroup_barrier(mem_flags::mem_device);
  float s = 0;
  for (uint j = t; j < 128; j += 32) s += cache[j]; // SM004 cache
  s = simd_sum(s);
  if (t == 0) o[g] = s;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void broadcast_slot_reused_for_rotation(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                               uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[64];
  float sum = simd_sum(a[t]);
  if (t == 0) s[0] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float scale = rsqrt(s[0] / 64 + 1e-5f), v = a[t] * scale; // SM002 SM003 s[0]
  s[t] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = t < 32 ? v - s[t + 32] : v + s[t - 32];
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void exchange_with_mem_none(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                   uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = a[t];
  threadgroup_barrier(mem_flags::mem_none);
  o[t] = s[63 - t]; // SM002 s
}

// run: -b 0=ones:float32:70 -b 1:out:float32:70 --grid 70 --threadgroup 32
kernel void halo_past_the_end(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                              uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[34];
  s[t + 1] = a[i];
  if (t == 31) s[33] = a[i + 1];
  if (t == 0) s[0] = i ? a[i - 1] : 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = s[t] + s[t + 2]; // SM005 s
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void halo_of_the_last_group(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[34];
  s[t + 1] = a[i];
  if (t == 31) s[33] = a[i + 1]; // SM001 a[64]
  if (t == 0) s[0] = i ? a[i - 1] : 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = s[t] + s[t + 2];
}

struct Half4 { packed_half4 v; };
// run: -b 0=zeros:float16:62 -b 1:out:float32:16 --grid 16 --threadgroup 16
kernel void vectors_of_a_short_row(device const Half4 *a [[buffer(0)]], device float *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]]) {
  half4 v = half4(a[i].v); // SM001 a[15]
  o[i] = float(v.x) + float(v.w);
}

// run: -b 0=arange:int32:33 -b 1=ones:float32:32 -b 2:out:float32:32 --grid 32 --threadgroup 32
kernel void segment_end_of_the_last_row(device const int *offsets [[buffer(0)]], device const float *v [[buffer(1)]],
                                        device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float s = 0;
  for (int k = offsets[i]; k < offsets[i + 2]; k++) s += v[k]; // SM001 offsets[33]
  o[i] = s;
}

// run: -b 0=arange:int32:64 -b 1=ones:float32:64 -b 2:out:float32:64 --grid 64 --threadgroup 64
kernel void padding_index(device const int *ids [[buffer(0)]], device const float *rows [[buffer(1)]],
                          device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] = rows[ids[i] - 1]; // SM001 rows[-1]
}

// run: -b 0=arange:uint8:256 -b 1:out:uint32:255 --grid 256 --threadgroup 64
kernel void histogram_one_bin_short(device const uchar *a [[buffer(0)]], device atomic_uint *bins [[buffer(1)]],
                                    uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&bins[a[i]], 1u, memory_order_relaxed); // SM001 bins[255]
}

// run: -b 0=ones:float32:64 -b 1:out:uint32:1 -b 2:out:float32:32 --grid 64 --threadgroup 64
kernel void appends_past_the_end(device const float *a [[buffer(0)]], device atomic_uint *count [[buffer(1)]],
                                 device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (a[i] > 0) {
    uint at = atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);
    o[at] = a[i]; // SM001 o
  }
}

// run: -b 0=arange:uint32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void flags_without_atomics(device const uint *a [[buffer(0)]], device float *o [[buffer(1)]],
                                  uint t [[thread_position_in_threadgroup]]) {
  threadgroup uint any[1];
  if (t == 0) any[0] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (a[t] > 60) any[0] |= 1u << (a[t] & 31); // SM003 any
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = any[0];
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void scan_in_place_without_two_barriers(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                               uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint d = 1; d < 64; d *= 2) {
    float v = t >= d ? s[t - d] : 0; // SM002 SM003 s
    s[t] += v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  o[t] = s[t];
}

// run: -b 0=ones:float32:256 -b 1=ones:float32:256 -b 2:out:float32:256 --grid 16,16 --threadgroup 16,16
kernel void tiles_overwritten_in_the_loop(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                                          device float *c [[buffer(2)]], uint2 t [[thread_position_in_threadgroup]]) {
  threadgroup float x[8][16], y[16][8];
  float s = 0;
  for (uint k = 0; k < 16; k += 8) {
    if (t.x < 8) y[t.y][t.x] = a[t.y * 16 + k + t.x] + k; // SM003 y
    if (t.y < 8) x[t.y][t.x] = b[(k + t.y) * 16 + t.x] + k; // SM002 SM003 x
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < 8; j++) s += y[t.y][j] * x[j][t.x]; // SM002 SM003
  }
  c[t.y * 16 + t.x] = s;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:8 --grid 64 --threadgroup 64
kernel void matrix_tile_beyond_the_row(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                       uint sg [[simdgroup_index_in_threadgroup]]) {
  simdgroup_float8x8 m;
  simdgroup_load(m, a + sg * 8, 8); // SM001 a
  simdgroup_store(m, o, 8); // SM001 o
}

// run: -b 0=ones:float32:48 -b 1:out:float32:2 --grid 48 --threadgroup 48
kernel void broadcast_from_lane_31(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                   uint t [[thread_position_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                                   uint sg [[simdgroup_index_in_threadgroup]]) {
  float total = simd_broadcast(simd_prefix_inclusive_sum(a[t]), 31); // SM014
  if (lane == 0) o[sg] = total;
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void vote_picks_a_lane_that_is_gone(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                           uint t [[thread_position_in_threadgroup]],
                                           uint lane [[thread_index_in_simdgroup]]) {
  if (lane % 4 == 3) return;
  o[t] = simd_shuffle(a[t], ushort(lane | 3)); // SM014
}

// run: -b 0=ones:uint8:64 -b 1:out:uint32:15 --grid 15 --threadgroup 15
kernel void words_at_odd_bytes(device const uchar *a [[buffer(0)]], device uint *o [[buffer(1)]],
                               uint i [[thread_position_in_grid]]) {
  device const uchar *block = a + i * 3;
  o[i] = *(device const uint *)block; // SM012 a
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void shift_of_a_negative_exponent(device const int *e [[buffer(0)]], device int *o [[buffer(1)]],
                                         uint i [[thread_position_in_grid]]) {
  o[i] = 1 << (e[i] - 8); // SM009
}

// run: -b 0=arange:int32:64 -b 1:out:int64:64 --grid 64 --threadgroup 64
kernel void row_times_stride_in_int(device const int *rows [[buffer(0)]], device long *o [[buffer(1)]],
                                    uint i [[thread_position_in_grid]]) {
  int stride = 50000000;
  o[i] = rows[i] * stride; // SM008
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void groups_of_heads_that_are_none(device const uint *heads [[buffer(0)]], device uint *o [[buffer(1)]],
                                          uint i [[thread_position_in_grid]]) {
  uint repeat = heads[i] / 8;
  o[i] = i / repeat; // SM010
}

// run: -b 0=arange:float32:64 -b 1:out:int8:64 --grid 64 --threadgroup 64
kernel void quantised_without_a_clamp(device const float *x [[buffer(0)]], device char *q [[buffer(1)]],
                                      uint i [[thread_position_in_grid]]) {
  float scale = x[1] / 1.5f;
  q[i] = char(rint(x[i] / scale * 4)); // SM011
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void best_of_nothing(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  int best;
  float most = 100;
  for (int k = 0; k < 4; k++)
    if (a[(i + k) % 64] > most) most = a[(i + k) % 64], best = k;
  o[i] = best; // SM005 best
}

// run: -b 0=ones:float32:128 -b 1:out:float32:128 --grid 128 --threadgroup 64
kernel void only_one_group_clears_the_total(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                            uint i [[thread_position_in_grid]],
                                            uint t [[thread_position_in_threadgroup]],
                                            uint g [[threadgroup_position_in_grid]]) {
  threadgroup atomic_uint total;
  if (g == 0 && t == 0) atomic_store_explicit(&total, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&total, 1u, memory_order_relaxed); // SM005 total
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = a[i] + atomic_load_explicit(&total, memory_order_relaxed);
}

// run: -b 0=ones:float32:64 -b 1=zeros:float32:64 --grid 64 --threadgroup 32
kernel void next_group_reads_without_a_flag(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                            uint t [[thread_position_in_threadgroup]],
                                            uint g [[threadgroup_position_in_grid]]) {
  o[g * 32 + t] = a[g * 32 + t];
  if (g == 1) o[t + 32] += o[t]; // SM004 o
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void swap_through_device_memory(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                       uint t [[thread_position_in_threadgroup]]) {
  o[t] = a[t];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  float other = o[t ^ 1]; // SM003 o
  simdgroup_barrier(mem_flags::mem_device);
  o[t] = other;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --threadgroup-memory 0=256 --threadgroup-memory 1=128 --grid 64 --threadgroup 64
kernel void second_piece_is_shorter(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    threadgroup float *x [[threadgroup(0)]], threadgroup float *y [[threadgroup(1)]],
                                    uint t [[thread_position_in_threadgroup]]) {
  x[t] = a[t];
  y[t] = 2 * a[t]; // SM001 y[32]
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = x[63 - t] + y[t % 32];
}

struct Args { device const float *in; device float *out; };
// run: -b 0=ones:float32:64 -b 1:out:float32:63 --grid 64 --threadgroup 64
kernel void through_a_structure(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  Args args = {a, b};
  args.out[i] = args.in[i] * 2; // SM001 b[63]
}

// run: -b 0=ones:float32:96 -b 1:out:float32:32 --grid 32 --threadgroup 32
kernel void chosen_source_is_shorter(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint i [[thread_position_in_grid]]) {
  threadgroup float s[16];
  if (i < 16) s[i] = a[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const threadgroup float *p = i < 20 ? s + i : s;
  o[i] = *p; // SM001 s[16]
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void digit_counts_by_lane(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                 uint t [[thread_position_in_threadgroup]]) {
  uint counts[16];
  for (uint k = 0; k < 15; k++) counts[k] = 0;
  counts[a[t] & 15] += 1;
  uint s = 0;
  for (uint k = 0; k < 16; k++) s += counts[k] << k;
  o[t] = s; // SM005 counts
}
