// Simdgroup functions that lanes miss; see bounds.metal.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

// ---- Values of lanes that do not take part.

// run: -b 0=ones:float32:48 -b 1:out:float32:1 --grid 48 --threadgroup 48
kernel void a_sum_by_shuffles(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) {
  float sum = a[i];
  for (ushort k = 16; k > 0; k /= 2) sum += simd_shuffle_down(sum, k); // SM014
  if (i == 32) o[0] = sum;
}

// run: -b 0=ones:float32:40 -b 1:out:float32:32 --grid 32 --threadgroup 32
kernel void after_some_returned(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  if (i >= 20) return;
  o[i] = a[i] + simd_shuffle_xor(a[i], 16); // SM014
}

// run: -b 0=arange:int32:32 -b 1:out:int32:32 --grid 32 --threadgroup 32
kernel void within_a_branch(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  int v = a[i];
  if (i % 2 == 0) v = simd_shuffle(v, ushort(i + 1)); // SM014
  o[i] = v;
}

// run: -b 0=arange:int32:32 -b 1:out:int32:32 --grid 32 --threadgroup 32
kernel void broadcast_from_an_idle_lane(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                                        uint i [[thread_position_in_grid]]) {
  int v = 0;
  if (i > 3) v = simd_broadcast(a[i], 0); // SM014
  o[i] = v;
}

// run: -b 0=arange:int32:32 -b 1:out:int32:32 --grid 32 --threadgroup 32
kernel void a_branch_depends_on_it(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]]) {
  if (i < 8) {
    half v = simd_shuffle_down(half(a[i]), 4); // SM014
    if (v > 3) o[i] = 1;
  }
}

// ---- Values of lanes that no simdgroup or quad has.

// run: -b 0=arange:int32:32 -b 1:out:int32:32 --grid 32 --threadgroup 32
kernel void a_shuffle_from_lane_32(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]]) {
  o[i] = simd_shuffle(a[i], 32); // SM014
}

// run: -b 0=arange:int32:32 -b 1:out:int32:32 --grid 32 --threadgroup 32
kernel void from_the_lane_before_the_first(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                                           uint i [[thread_position_in_grid]]) {
  o[i] = a[i] - simd_shuffle(a[i], i - 1); // SM014
}

// run: -b 0=arange:float32:32 -b 1:out:float32:32 --bytes 2=uint32:40 --grid 32 --threadgroup 32
kernel void a_broadcast_from_lane_40(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float2 v = simd_broadcast(float2(a[i], i), n); // SM014
  o[i] = v.x + v.y;
}

// run: -b 0=arange:uint8:64 -b 1:out:uint8:64 --grid 64 --threadgroup 64
kernel void a_butterfly_of_64_lanes(device const uchar *a [[buffer(0)]], device uchar *o [[buffer(1)]],
                                    uint i [[thread_position_in_grid]]) {
  uchar most = a[i];
  for (ushort k = 32; k > 0; k /= 2) most = max(most, simd_shuffle_xor(most, k)); // SM014
  o[i] = most;
}

// run: -b 0=arange:float32:32 -b 1:out:float32:32 --grid 32 --threadgroup 32
kernel void a_quad_of_five(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  o[i] = quad_broadcast(a[i], 4); // SM014
}

// run: -b 0=arange:uint32:32 -b 1:out:uint32:32 --grid 32 --threadgroup 32
kernel void a_lane_of_the_simdgroup_in_a_quad(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                              uint i [[thread_position_in_grid]]) {
  o[i] = quad_shuffle(a[i], i ^ 1); // SM014
}

// run: -b 0=arange:float16:32 -b 1:out:float16:32 --grid 32 --threadgroup 32
kernel void a_neighbouring_quad(device const half *a [[buffer(0)]], device half *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  o[i] = quad_shuffle_xor(a[i], 4); // SM014
}

// ---- Functions that need all lanes.

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 32 --threadgroup 16
kernel void a_product_of_half_a_simdgroup(device const float *a [[buffer(0)]], device float *o [[buffer(1)]]) {
  simdgroup_float8x8 x, y, z = make_filled_simdgroup_matrix<float, 8, 8>(0);
  simdgroup_load(x, a, 8);
  simdgroup_load(y, a, 8);
  simdgroup_multiply_accumulate(z, x, y, z); // SM015
  simdgroup_store(z, o, 8);
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void a_product_in_a_branch(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                  uint i [[thread_position_in_grid]]) {
  simdgroup_float8x8 x, z = make_filled_simdgroup_matrix<float, 8, 8>(0);
  simdgroup_load(x, a, 8);
  if (i < 31) simdgroup_multiply(z, x, x); // SM015
  simdgroup_store(z, o, 8);
}

// run: -b 0:out:float32:32 --grid 32 --threadgroup 32
kernel void a_barrier_in_a_branch(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  threadgroup float s[32];
  s[i] = i;
  if (i < 16) simdgroup_barrier(mem_flags::mem_threadgroup); // SM015
  o[i] = s[i];
}

// run: -b 0:out:float32:32 --grid 32 --threadgroup 32
kernel void a_barrier_in_rounds_of_its_own(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  threadgroup float s[32];
  s[i] = 0;
  for (uint k = 0; k < 1 + i / 8; k++) {
    s[i] += k;
    simdgroup_barrier(mem_flags::mem_threadgroup); // SM015
  }
  o[i] = s[i];
}

// ---- On request: what Metal defines among the lanes that take part.

// run: -b 0=ones:float32:32 -b 1:out:float32:32 --grid 32 --threadgroup 32 --also divergent
kernel void a_sum_in_a_branch(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) {
  float v = 0;
  if (i < 20) v = simd_sum(a[i]); // SM015
  o[i] = v;
}

// run: -b 0=ones:float32:40 -b 1:out:float32:40 --grid 40 --threadgroup 40 --also divergent
kernel void a_scan_of_a_part(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
  o[i] = simd_prefix_inclusive_sum(a[i]); // SM015
}

// ---- Nothing wrong.

// run: -b 0=ones:float32:48 -b 1:out:float32:48 --grid 48 --threadgroup 48
kernel void thrown_away(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                        uint i [[thread_position_in_grid]], uint n [[threads_per_threadgroup]],
                        uint lane [[thread_index_in_simdgroup]]) {
  uint lanes = min(32u, n - (i - lane));
  float sum = a[i];
  for (ushort k = 16; k > 0; k /= 2) {
    float other = simd_shuffle_down(sum, k);
    sum += lane + k < lanes ? other : 0;
  }
  o[i] = lane == 0 ? sum : 0;
}

// run: -b 0=ones:float32:48 -b 1:out:float32:48 --grid 48 --threadgroup 48
kernel void the_shuffled_part_is_whole(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                       uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float sum = a[i];
  for (ushort k = 4; k > 0; k /= 2) sum += simd_shuffle_down(sum, k);
  o[i] = lane % 8 == 0 && lane < 16 ? sum : 0;
}

// run: -b 0=ones:float32:48 -b 1:out:float32:48 --grid 48 --threadgroup 48
kernel void sums_among_those_there(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]]) {
  float v = simd_sum(a[i]);
  if (i % 3 == 0) v += simd_max(a[i]) + simd_broadcast_first(a[i]);
  o[i] = v;
}

// run: -b 0=ones:float32:32 -b 1:out:float32:32 --grid 32 --threadgroup 32
kernel void a_barrier_after_returns(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    uint i [[thread_position_in_grid]]) {
  threadgroup float s[32];
  if (i >= 24) return;
  s[i] = a[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = s[23 - i];
}

// run: -b 0=ones:float32:32 -b 1:out:float32:32 --grid 32 --threadgroup 32 --also divergent
kernel void quads_that_are_whole(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  float v = 0;
  if (i < 8) v = quad_sum(a[i]);
  o[i] = v;
}

// run: -b 0=arange:float32:12 -b 1:out:float32:12 --grid 12 --threadgroup 12
kernel void in_half_of_a_vector(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  float p = simd_shuffle_down(a[i], 1); // SM014
  o[i] = length(float2(1, p));
}

// run: -b 0=ones:float16:12 -b 1:out:float32:12 --grid 12 --threadgroup 12
kernel void next_to_another_half(device const half *a [[buffer(0)]], device float *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  half total = simd_shuffle_down(a[i], 1), least = a[0]; // SM014
  for (uint j = 0; j < i; j++) {
    total += a[j];
    least = total < least ? total : least;
  }
  o[i] = float(total * least);
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void lanes_that_keep_their_own(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                      uint i [[thread_position_in_grid]]) {
  float v = simd_shuffle_down(a[i], 4) + simd_shuffle_up(a[i], 31) + simd_shuffle_up(a[i], 40);
  v += simd_shuffle_rotate_down(a[i], 33) + simd_shuffle_and_fill_up(a[i], a[63 - i], 3, 8);
  o[i] = v + quad_shuffle_up(a[i], 1) + quad_shuffle_down(a[i], 4) + quad_shuffle_xor(a[i], 3);
}

// run: -b 0=arange:float32:32 -b 1:out:float32:32 --grid 32 --threadgroup 32
kernel void no_such_lane_and_thrown_away(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                         uint i [[thread_position_in_grid]]) {
  float next = simd_shuffle(a[i], i + 1);
  o[i] = i < 31 ? next - a[i] : 0;
}
