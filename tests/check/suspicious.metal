// Kernels that look wrong and are not: nothing is found in them; see bounds.metal.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void every_thread_writes_one_value(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                          uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint found;
  found = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (a[t] > 0) found = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = found;
}

// run: -b 0=ones:float32:256 -b 1:out:float32:8 --grid 256 --threadgroup 32
kernel void one_simdgroup_with_its_own_barrier(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                               uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                                               uint group [[threadgroup_position_in_grid]]) {
  threadgroup float s[32];
  s[t] = a[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 16; k > 0; k /= 2) {
    float v = t < k ? s[t + k] : 0;
    simdgroup_barrier(mem_flags::mem_threadgroup);
    if (t < k) s[t] += v;
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (t == 0) o[group] = s[0];
}

// run: -b 0=ones:float32:128 -b 1:out:float32:128 --grid 128 --threadgroup 64
kernel void two_buffers_in_turn(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[2][64];
  float sum = 0;
  for (uint k = 0; k < 6; k++) {
    s[k % 2][t] = a[(i + k) % 128];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += s[k % 2][63 - t];
  }
  o[i] = sum;
}

// run: -b 0=ones:float32:1000 -b 1:out:float32:1000 --grid 1024 --threadgroup 256 --bytes 2=uint32:1000
kernel void leaves_before_a_barrier(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]],
                                    uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[256];
  if (i >= n) return;
  s[t] = a[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint from = min(i + 1, n - 1);
  o[i] = s[t] + (from / 256 == i / 256 ? s[from % 256] : a[from]);
}

// run: -b 0=ones:float32:100 -b 1:out:float32:100 --grid 128 --threadgroup 32 --bytes 2=int32:100
kernel void clamped_neighbours(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                               constant int &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  int left = max(int(i) - 1, 0), right = min(int(i) + 1, n - 1);
  float v = a[left] + a[right];
  if (int(i) < n) o[i] = v;
}

// run: -b 0=ones:float32:100 -b 1:out:float32:100 --grid 128 --threadgroup 32 --bytes 2=uint32:100
kernel void loads_outside_and_throws_away(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                          constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float next = a[i + 1], before = a[i - 1];
  float v = (i + 1 < n ? next : 0) + (i > 0 && i < n ? before : 0);
  if (i < n) o[i] = v;
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void a_generator_wraps(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) {
  uint x = a[i] * 747796405u + 2891336453u;
  x = ((x >> ((x >> 28) + 4)) ^ x) * 277803737u;
  x ^= x << 13;
  x ^= x >> 17;
  o[i] = rotate(x, 5u) - 7u;
}

// run: -b 0=arange:uint32:256 -b 1:out:uint32:64 --grid 256 --threadgroup 64
kernel void a_histogram_by_threadgroup(device const uint *a [[buffer(0)]], device atomic_uint *o [[buffer(1)]],
                                       uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint bins[64];
  atomic_store_explicit(&bins[t], 0, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(&bins[a[i] * 7 % 64], 1, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint n = atomic_load_explicit(&bins[t], memory_order_relaxed);
  if (n) atomic_fetch_add_explicit(&o[t], n, memory_order_relaxed);
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void a_variable_without_a_start(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                       uint i [[thread_position_in_grid]]) {
  float most, sum = 0;
  bool any = false;
  for (uint k = 0; k < 4; k++) {
    float v = a[(i + k) % 64];
    most = any ? max(most, v) : v;
    any = true;
    sum += v - most;
  }
  o[i] = sum + most;
}

// run: -b 0=ones:float32:192 -b 1:out:float32:192 --grid 64 --threadgroup 64
kernel void three_in_a_vector_of_four(device const packed_float3 *a [[buffer(0)]], device packed_float3 *o [[buffer(1)]],
                                      uint i [[thread_position_in_grid]]) {
  float3 v = float3(a[i]);
  v.yz = v.zy;
  o[i] = packed_float3(normalize(v));
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void a_private_stack(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  float stack[8];
  int top = -1;
  for (int k = 0; k < 12; k++) {
    if (top < 7 && (k * 5 + int(i)) % 3) stack[++top] = a[(i + k) % 64];
    else if (top > 0) top--, stack[top] += stack[top + 1] * 0.5f;
  }
  float sum = 0;
  while (top >= 0) sum += stack[top--];
  o[i] = sum;
}

// run: -b 0=ones:float32:128 -b 1:out:float32:4 --grid 128 --threadgroup 128
kernel void sums_by_one_simdgroup(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                  uint t [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                                  uint sg [[simdgroup_index_in_threadgroup]], uint sgs [[simdgroups_per_threadgroup]]) {
  threadgroup float part[32];
  float v = simd_sum(a[t]);
  if (lane == 0) part[sg] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (sg == 0) {
    v = simd_sum(lane < sgs ? part[lane] : 0);
    if (lane == 0) o[0] = v;
  }
}

// run: -b 0=ones:float32:48 -b 1:out:float32:48 --grid 48 --threadgroup 48
kernel void a_partial_simdgroup(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float v = a[i], sum = simd_prefix_inclusive_sum(v);
  float before = simd_shuffle_up(sum, 1);
  o[i] = lane == 0 ? 0 : before;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void in_place_by_its_owner(device float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                  uint i [[thread_position_in_grid]]) {
  device float *row = a + i * 2;
  row[0] += row[1];
  row[1] = row[0] - row[1];
  o[i * 2] = row[1];
  o[i * 2 + 1] = row[0];
}

// run: -b 0=ones:float32:1024 -b 1:out:float32:1024 --grid 32,32 --threadgroup 32,32
kernel void a_transpose_of_a_padded_tile(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                         uint2 p [[thread_position_in_grid]]) {
  threadgroup float s[32 * 33];
  s[p.y * 33 + p.x] = a[p.y * 32 + p.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[p.y * 32 + p.x] = s[p.x * 33 + p.y];
}

// run: -b 0=arange:uint8:64 -b 1:out:uint32:16 --grid 16 --threadgroup 16
kernel void bytes_as_words(device const uchar *a [[buffer(0)]], device uint *o [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  uint word = *(device const uint *)(a + i * 4);
  o[i] = as_type<uint>(as_type<uchar4>(word).wzyx);
}

// run: -b 0=arange:int32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void as_far_as_an_int_goes(device const int *a [[buffer(0)]], device int *o [[buffer(1)]],
                                  uint i [[thread_position_in_grid]]) {
  int least = INT_MAX, most = INT_MIN;
  for (uint k = 0; k < 64; k += 8) {
    least = min(least, a[k]);
    most = max(most, a[k]);
  }
  o[i] = a[i] > 3 ? (a[i] << 25 >> 25) + least : most - (INT_MAX - 64) / (a[i] + 1);
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void an_infinity_as_a_start(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]]) {
  float most = -INFINITY, sum = 0;
  for (uint k = 0; k < 8; k++) {
    float v = a[(i + k) % 64], now = max(most, v);
    sum = sum * exp(most - now) + exp(v - now);
    most = now;
  }
  o[i] = most + log(sum);
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --bytes 2=uint32:64 --grid 64 --threadgroup 16
kernel void a_loop_with_the_stride_of_the_grid(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                               constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]],
                                               uint step [[threads_per_grid]]) {
  for (uint k = i; k < n; k += step) o[k] = a[n - 1 - k];
}

// run: -b 0=ones:float32:2048 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void matrices_of_a_strip(device const float *a [[buffer(0)]], device float *o [[buffer(1)]]) {
  simdgroup_float8x8 x, y, z(0);
  for (uint k = 0; k < 32; k += 8) {
    simdgroup_load(x, a, 32, ulong2(k, 0));
    simdgroup_load(y, a + 1024, 32, ulong2(0, k));
    simdgroup_multiply_accumulate(z, x, y, z);
  }
  simdgroup_store(z, o, 8);
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void written_by_one_and_read_by_all(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                           uint t [[thread_index_in_threadgroup]]) {
  threadgroup float scale;
  if (t == 63) scale = 1 / a[0];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = a[t] * scale;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void a_barrier_in_an_even_loop(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                      uint t [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup float s[64];
  float v = a[t];
  for (uint d = 1; d < n; d <<= 1) {
    s[t] = v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t >= d) v += s[t - d];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  o[t] = v;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:4 -b 2:out:uint32:1 --grid 64 --threadgroup 16
kernel void the_last_group_sums(device const float *a [[buffer(0)]], volatile device float *part [[buffer(1)]],
                                device atomic_uint *done [[buffer(2)]], uint i [[thread_position_in_grid]],
                                uint t [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]],
                                uint groups [[threadgroups_per_grid]]) {
  threadgroup bool last;
  float v = simd_sum(a[i]);
  if (t == 0) {
    part[group] = v;
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    last = atomic_fetch_add_explicit(done, 1, memory_order_relaxed) == groups - 1;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (!last) return;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  if (t == 0) part[0] = part[0] + part[1] + part[2] + part[3];
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void a_lane_that_reads_itself(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  float v = a[i];
  if (lane & 1) v = simd_shuffle(v, lane) + simd_shuffle_xor(v, 2) + simd_broadcast_first(v);
  o[i] = v;
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void shifts_up_to_the_width(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
  uint below = lane ? ~0u >> (32 - lane) : 0;
  o[i] = popcount(uint(uint64_t(simd_ballot(a[i] % 3 == 0))) & below) + extract_bits(a[i], 0, 32);
}

template <typename T, int step> T sum_of_lanes(T v) {
  T sum = v;
  for (ushort k = 16; k >= step; k /= 2) sum += simd_shuffle_xor(sum, k);
  return sum;
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void a_function_in_a_variable(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint i [[thread_position_in_grid]]) {
  auto apply = [&](auto which) {
    auto sum = sum_of_lanes<float, which()>;
    return sum(a[i]);
  };
  o[i] = apply(integral_constant<int, 1>{}) + apply(integral_constant<int, 4>{});
}
