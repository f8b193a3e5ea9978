// Bugs of the kinds that public bug reports describe, in kernels as people write them; see bounds.metal.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

// run: -b 0=ones:float32:4096 -b 1=ones:float32:4096 -b 2:out:float32:4096 --bytes 3=uint32:64 --grid 64,64 --threadgroup 16,16
kernel void a_stale_tile(device const float *A [[buffer(0)]], device const float *B [[buffer(1)]],
                         device float *C [[buffer(2)]], constant uint &n [[buffer(3)]],
                         uint2 gid [[thread_position_in_grid]], uint2 tid [[thread_position_in_threadgroup]]) {
  threadgroup float As[16][16], Bs[16][16];
  float sum = 0;
  for (uint t = 0; t < n; t += 16) {
    As[tid.y][tid.x] = A[gid.y * n + t + tid.x]; // SM003 As
    Bs[tid.y][tid.x] = B[(t + tid.y) * n + gid.x]; // SM002 SM003 Bs
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < 16; k++) sum += As[tid.y][k] * Bs[k][tid.x]; // SM002 SM003 Bs
  }
  C[gid.y * n + gid.x] = sum;
}

// run: -b 0=ones:float32:256 -b 1:out:float32:1 --grid 256 --threadgroup 256
kernel void the_last_warp_without_barriers(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                           uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[256];
  s[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 128; k > 32; k >>= 1) {
    if (t < k) s[t] += s[t + k];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t < 32) {
    s[t] += s[t + 32]; // SM003
    s[t] += s[t + 16];
    s[t] += s[t + 8];
    s[t] += s[t + 4];
    s[t] += s[t + 2];
    s[t] += s[t + 1];
  }
  if (t == 0) o[0] = s[0];
}

// run: -b 0=ones:float32:96 -b 1:out:float32:1 --grid 96 --threadgroup 96
kernel void a_tree_of_96(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                         uint t [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup float s[96];
  s[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 64; k > 0; k /= 2) {
    if (t < k) s[t] += s[t + k]; // SM001 s[96]
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t == 0) o[0] = s[0];
}

// run: -b 0=ones:float32:256 -b 1:out:float32:2 --grid 256 --threadgroup 128
kernel void partial_sums_read_too_early(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                        uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                                        uint sg [[simdgroup_index_in_threadgroup]],
                                        uint group [[threadgroup_position_in_grid]]) {
  threadgroup float part[4];
  float v = simd_sum(a[i]);
  if (lane == 0) part[sg] = v; // SM002 part
  simdgroup_barrier(mem_flags::mem_threadgroup);
  if (sg == 0 && lane == 0) {
    o[group] = part[0] + part[1] + part[2] + part[3]; // SM005 part
  }
}

// run: -b 0=ones:float32:128 -b 1:out:float32:128 --grid 128 --threadgroup 64
kernel void a_halo_of_one(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                          uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                          uint n [[threads_per_grid]]) {
  threadgroup float s[66];
  s[t + 1] = a[i];
  if (t == 0) s[0] = a[i - 1]; // SM001 a[4294967295]
  if (t == 63) s[65] = a[i + 1]; // SM001 a[128]
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = s[t] + s[t + 1] + s[t + 2];
}

// run: -b 0=ones:float32:1024 -b 1:out:float32:1024 --bytes 2=int32:32 --grid 32,32 --threadgroup 8,8
kernel void a_stencil_without_edges(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    constant int &w [[buffer(2)]], uint2 p [[thread_position_in_grid]]) {
  float sum = 0;
  for (int dy = -1; dy <= 1; dy++)
    for (int dx = -1; dx <= 1; dx++) sum += a[(int(p.y) + dy) * w + int(p.x) + dx]; // SM001 a
  o[p.y * w + p.x] = sum / 9;
}

// run: -b 0=ones:float32:4 -b 1:out:float32:4 --bytes 2=int32:65536,65537 --grid 4 --threadgroup 4
kernel void a_row_number_of_32_bits(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    constant int *shape [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  long total = shape[0] * shape[1]; // SM008
  o[i] = long(i) < total ? a[i] : 0;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --bytes 2=int32:8,8 --grid 64 --threadgroup 64
kernel void rows_for_columns(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                             constant int *stride [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  uint row = i / 8, column = i % 8;
  o[i] = a[row * stride[0] + column * stride[1]]; // SM001 a
}

// run: -b 0=arange:uint32:256 -b 1:out:uint32:16 --grid 256 --threadgroup 64
kernel void a_plain_read_of_a_counter(device const uint *a [[buffer(0)]], device atomic_uint *bins [[buffer(1)]],
                                      uint i [[thread_position_in_grid]]) {
  device uint *plain = (device uint *)bins;
  if (plain[a[i] % 16] < 3) atomic_fetch_add_explicit(&bins[a[i] % 16], 1, memory_order_relaxed); // SM003 SM002 SM004
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void an_accumulator_in_a_register(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                         uint i [[thread_position_in_grid]]) {
  float4 acc;
  for (uint k = 0; k < 4; k++) acc[k] += a[(i + k) % 64];
  o[i] = acc.x + acc.y + acc.z + acc.w; // SM005 acc
}

// run: -b 0=ones:float32:128 -b 1:out:float32:128 --grid 128 --threadgroup 64
kernel void a_buffer_for_two_phases(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = a[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float most = s[63 - t]; // SM002 s
  s[t] = most * 2; // SM002 s
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = s[t ^ 1] + most;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void a_barrier_of_no_memory(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                   uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = a[t];
  threadgroup_barrier(mem_flags::mem_none);
  o[t] = s[t ^ 32]; // SM002 s
}

// run: -b 0=ones:float32:60 -b 1:out:float32:60 --grid 60 --threadgroup 60
kernel void a_vector_load_of_the_tail(device const float4 *a [[buffer(0)]], device float4 *o [[buffer(1)]],
                                      uint i [[thread_position_in_grid]]) {
  if (i * 4 < 64) o[i] = a[i] * 2; // SM001 a[15]
}

// run: -b 0=ones:float32:1000 -b 1:out:float32:1000 --grid 1024 --threadgroup 256
kernel void a_grid_that_is_rounded_up(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                      uint i [[thread_position_in_grid]]) {
  o[i] = fast::exp(a[i]); // SM001
}

// run: -b 0=ones:float32:32 -b 1:out:float32:32 --grid 32 --threadgroup 32
kernel void returns_before_a_barrier(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[32];
  if (t < 20) {
    s[t] = a[t];
    threadgroup_barrier(mem_flags::mem_threadgroup); // SM007
    o[t] = s[19 - t];
  }
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void a_scan_in_place(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                            uint t [[thread_index_in_threadgroup]]) {
  threadgroup int s[64];
  s[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint d = 1; d < 64; d *= 2) {
    if (t >= d) s[t] += s[t - d]; // SM002 SM003 s
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  o[t] = s[t];
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void a_queue_of_indices(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                               uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint count;
  threadgroup uint queue[16];
  if (t == 0) atomic_store_explicit(&count, 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (a[i] > 0) queue[atomic_fetch_add_explicit(&count, 1, memory_order_relaxed)] = i; // SM001 queue[16]
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = queue[0];
}

struct block { half d; uchar qs[16]; };

// run: -b 0=zeros:uint8:144 -b 1:out:float32:256 --grid 256 --threadgroup 256
kernel void quants_of_another_format(device const block *x [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint i [[thread_position_in_grid]]) {
  device const block &b = x[i / 32];
  o[i] = float(b.d) * b.qs[i % 32]; // SM001 x
}

// run: -b 0=ones:float32:64 -b 1:out:float32:2 --grid 64 --threadgroup 32
kernel void all_groups_add_to_one_cell(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                       uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float v = simd_sum(a[i]);
  if (lane == 0) o[0] += v; // SM004 o[0]
}

// run: -b 0=ones:float32:64 -b 1:out:int32:64 --bytes 2=uint32:0 --grid 64 --threadgroup 32
kernel void a_mean_of_nothing(device const float *a [[buffer(0)]], device int *o [[buffer(1)]],
                              constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint k = 0; k < n; k++) sum += a[k];
  o[i] = int(sum / n); // SM011
}

// run: -b 0=ones:float32:1024 -b 1:out:float32:1024 --grid 32 --threadgroup 32
kernel void a_ring_buffer_per_thread(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint i [[thread_position_in_grid]]) {
  float last[4];
  for (int k = 0; k < 32; k++) {
    last[k & 3] = a[i * 32 + k];
    o[i * 32 + k] = last[(k & 3) + 1 - 4 * (k % 8 == 7)] + k; // SM001 SM005 last
  }
}

// run: -b 0=ones:float32:256 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void a_matrix_past_the_end(device const float *a [[buffer(0)]], device float *o [[buffer(1)]]) {
  simdgroup_float8x8 x, y, z = make_filled_simdgroup_matrix<float, 8, 8>(0);
  simdgroup_load(x, a, 32);
  simdgroup_load(y, a + 32, 32); // SM001 a[256]
  simdgroup_multiply_accumulate(z, x, y, z);
  simdgroup_store(z, o, 8);
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --threadgroup-memory 0=128 --grid 64 --threadgroup 64
kernel void memory_for_half_the_threads(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                        threadgroup float *s [[threadgroup(0)]],
                                        uint t [[thread_index_in_threadgroup]]) {
  s[t] = a[t]; // SM001 s[32]
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[t & 31];
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --bytes 2=int32:0 --grid 64 --threadgroup 64
kernel void a_page_that_is_not_mapped(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                      constant int &first [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  int page = first - 1;
  o[i] = a[page * 16 + int(i % 16)]; // SM001 a[-16]
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void a_mask_of_the_lanes_below(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                      uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  uint votes = uint(uint64_t(simd_ballot(a[i] % 3 == 0)));
  o[i] = popcount(votes & ((1u << (lane + 1)) - 1)); // SM009
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void a_maximum_that_only_lane_0_has(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                           uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float most;
  if (lane == 0) most = simd_max(a[i]);
  o[i] = a[i] / most; // SM005 most
}
