// More kernels that look wrong and are not; see suspicious.metal.
#include <metal_stdlib>
using namespace metal;

// run: -b 0=arange:float32:1000 -b 1:out:float32:1000 --bytes 2=uint32:1000 --grid 128 --threadgroup 64
kernel void grid_stride(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                        constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]],
                        uint step [[threads_per_grid]]) {
  for (; i < n; i += step) o[i] = 2 * a[i];
}

// run: -b 0=ones:float32:256 -b 1:out:float32:256 --grid 64 --threadgroup 64
kernel void simdgroup_tiles(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                            uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float tiles[2][2][64];
  threadgroup float *mine = tiles[sg][0];
  for (uint k = 0; k < 2; k++) {
    for (uint j = lane; j < 64; j += 32) mine[j] = a[sg * 128 + k * 64 + j];
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = lane; j < 64; j += 32) o[sg * 128 + k * 64 + j] = mine[63 - j];
    mine = tiles[sg][1 - k];
  }
}

// run: -b 0=arange:float32:256 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void double_buffer(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                          uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[2][64];
  s[0][t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint k = 1; k <= 4; k++) {
    if (k < 4) s[k & 1][t] = a[k * 64 + t];
    sum += s[(k - 1) & 1][63 - t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  o[t] = sum;
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:1 -b 2:out:uint32:64 --grid 64 --threadgroup 64
kernel void aggregated_append(device const uint *a [[buffer(0)]], device atomic_uint *count [[buffer(1)]],
                              device uint *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  bool keep = a[i] % 3 == 0;
  uint before = simd_prefix_exclusive_sum(uint(keep)), all = simd_sum(uint(keep)), base = 0;
  if (simd_is_first()) base = atomic_fetch_add_explicit(count, all, memory_order_relaxed);
  base = simd_broadcast_first(base);
  if (keep) o[base + before] = a[i];
}

// run: -b 0=ones:float32:128 -b 1:out:float32:128 -b 2=zeros:uint32:4 -b 3=zeros:float32:4 --grid 128 --threadgroup 32
kernel void lookback(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                     device atomic_uint *flags [[buffer(2)]], device float *sums [[buffer(3)]],
                     uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
  float v = simd_prefix_inclusive_sum(a[g * 32 + t]), all = simd_broadcast(v, 31), before = 0;
  if (t == 0) {
    for (uint k = 0; k < g; k++) {
      while (atomic_load_explicit(&flags[k], memory_order_relaxed) == 0) continue;
      atomic_thread_fence(mem_flags::mem_device, memory_order_acquire, thread_scope_device);
      before += sums[k];
    }
    sums[g] = all;
    atomic_thread_fence(mem_flags::mem_device, memory_order_release, thread_scope_device);
    atomic_store_explicit(&flags[g], 1u, memory_order_relaxed);
  }
  o[g * 32 + t] = v + simd_broadcast(before, 0);
}

// run: -b 0=arange:float32:64 --grid 64 --threadgroup 64
kernel void reversed_in_place(device float *a [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
  float v = a[63 - t];
  threadgroup_barrier(mem_flags::mem_device);
  a[t] = v;
}

// run: -b 0=arange:float32:64 --grid 32 --threadgroup 32
kernel void swapped_in_pairs(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float x = a[2 * i], y = a[2 * i + 1];
  a[2 * i] = y;
  a[2 * i + 1] = x;
}

// run: -b 0=ones:float32:1147 -b 1:out:float32:1147 --bytes 2=uint32:37,31 --grid 48,32 --threadgroup 16,16
kernel void partial_tiles(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                          constant uint2 &n [[buffer(2)]], uint2 i [[thread_position_in_grid]],
                          uint2 t [[thread_position_in_threadgroup]], uint2 g [[threadgroup_position_in_grid]]) {
  threadgroup float s[16][17];
  if (all(i < n)) s[t.y][t.x] = a[i.y * n.x + i.x];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint2 r = g * 16 + t.yx;
  if (all(r < n)) o[r.x * n.y + r.y] = s[t.x][t.y];
}

// run: -b 0=arange:float32:64 -b 1=ones:float32:16 -b 2:out:float32:64 --grid 64 --threadgroup 64
kernel void pointer_by_a_choice(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                                device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  device const float *p = i < 16 ? b + i : a + i - 16;
  o[i] = i & 1 ? *p : p[0] + 1;
}

struct View { device const float *in; device float *out; uint stride; };
struct Pair { View left, right; };
static void copy(View v, uint i) { v.out[i * v.stride] = v.in[i]; }
// run: -b 0=arange:float32:32 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void structures_of_pointers(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                   uint i [[thread_position_in_grid]]) {
  Pair p = {{a, o, 2}, {a, o + 1, 2}};
  copy(p.left, i);
  copy(p.right, i);
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --threadgroup-memory 0=640 --grid 64 --threadgroup 64
kernel void pieces_of_an_array(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                               threadgroup float *all [[threadgroup(0)]], uint t [[thread_position_in_threadgroup]]) {
  threadgroup float *x = all;
  threadgroup half *h = (threadgroup half *)(all + 64);
  threadgroup uint *u = (threadgroup uint *)(h + 64);
  threadgroup atomic_uint *count = (threadgroup atomic_uint *)(u + 32);
  x[t] = a[t];
  h[t] = half(a[t]);
  if (t < 32) u[t] = t;
  if (t == 0) atomic_store_explicit(count, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_fetch_add_explicit(count, u[t % 32], memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = x[63 - t] + float(h[63 - t]) + atomic_load_explicit(count, memory_order_relaxed);
}

// run: -b 0=ones:float32:100 -b 1:out:float32:1 --bytes 2=uint32:100 --grid 64 --threadgroup 64
kernel void tree_in_one_simdgroup_at_last(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                          constant uint &n [[buffer(2)]], uint t [[thread_position_in_threadgroup]],
                                          uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float s[64];
  float v = 0;
  for (uint i = t; i < n; i += 64) v += a[i];
  s[t] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 32) {
    v = s[t] + s[t + 32];
    for (ushort d = 16; d > 0; d /= 2) v += simd_shuffle_xor(v, d);
    if (lane == 0) o[0] = v;
  }
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void window_that_is_selected(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {
  float before = a[int(i) - 1], after = a[i + 1];
  o[i] = (i > 0 ? before : 0) + (i + 1 < n ? after : 0);
}

// run: -b 0=arange:uint8:64 -b 1:out:uint32:16 --grid 16 --threadgroup 16
kernel void bytes_as_words(device const uchar *a [[buffer(0)]], device uint *o [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  o[i] = ((device const uint *)a)[i] ^ as_type<uint>(((device const packed_uchar4 *)a)[i]);
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void all_write_one_value(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                uint t [[thread_position_in_threadgroup]]) {
  threadgroup bool found;
  found = false;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (a[t] > 0) found = true;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = found;
}

// run: -b 0=arange:uint32:128 -b 1=zeros:uint32:16 --grid 128 --threadgroup 64
kernel void private_counts_then_shared(device const uint *a [[buffer(0)]], device atomic_uint *bins [[buffer(1)]],
                                       uint i [[thread_position_in_grid]],
                                       uint t [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint local[16];
  if (t < 16) atomic_store_explicit(local + t, 0u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uchar own[16] = {};
  own[a[i] & 15]++;
  for (uint k = 0; k < 16; k++)
    if (own[k]) atomic_fetch_add_explicit(local + k, uint(own[k]), memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 16) atomic_fetch_add_explicit(bins + t, atomic_load_explicit(local + t, memory_order_relaxed), memory_order_relaxed);
}

// run: -b 0=arange:float32:100 -b 1:out:float32:100 --grid 128 --threadgroup 64
kernel void some_return_before_the_barrier(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                           uint i [[thread_position_in_grid]],
                                           uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[64];
  if (i >= 100) return;
  s[t] = a[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint left = min(64u, 100 - (i - t));
  o[i] = s[left - 1 - t];
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void one_simdgroup_loads_for_all(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                        uint t [[thread_position_in_threadgroup]],
                                        uint lane [[thread_index_in_simdgroup]],
                                        uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float s[64];
  if (sg == 0)
    for (uint k = 0; k < 2; k++) s[k * 32 + lane] = a[k * 32 + lane];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[t ^ 33];
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void bitonic(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                    uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = a[(t * 37) & 63];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 2; k <= 64; k *= 2)
    for (uint j = k / 2; j > 0; j /= 2) {
      uint other = t ^ j;
      if (other > t && (s[t] > s[other]) == ((t & k) == 0)) {
        float x = s[t];
        s[t] = s[other];
        s[other] = x;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  o[t] = s[t];
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 32 --threadgroup 32
kernel void halves_as_words(device const float2 *a [[buffer(0)]], device float2 *o [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  uint w = as_type<uint>(half2(a[i]));
  w = simd_shuffle_xor(w, 1);
  o[i] = float2(as_type<half2>(w));
}

// run: -b 0=arange:int32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void hash_that_wraps(device const int *a [[buffer(0)]], device uint *o [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  uint h = uint(a[i]) * 2654435761u;
  h ^= h >> 16;
  o[i] = h * 0x85ebca6bu - 1;
}

// run: -b 0=arange:float32:64 -b 1:out:int32:64 --grid 64 --threadgroup 64
kernel void conversions_in_range(device const float *a [[buffer(0)]], device int *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  int q = int(clamp(rint(a[i] * 8 - 200), -128.0f, 127.0f));
  o[i] = int(char(q)) + int(uchar(q & 255)) + (q >> 3);
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void quotient_by_a_selected_divisor(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                           uint i [[thread_position_in_grid]]) {
  uint d = a[i] / 8;
  o[i] = d ? i / d : 0;
}

// run: -b 0=ones:float32:64 -b 1=ones:float32:64 -b 2:out:float32:64 --grid 32 --threadgroup 32
kernel void matrices_through_a_tile(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                                    device float *c [[buffer(2)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float tile[64];
  simdgroup_float8x8 x, y, z = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_load(x, a, 8);
  simdgroup_load(y, b, 8, ulong2(0, 0), true);
  simdgroup_multiply_accumulate(z, x, y, z);
  simdgroup_store(z, tile, 8);
  simdgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = lane; k < 64; k += 32) c[k] = tile[(k % 8) * 8 + k / 8];
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void scan_by_two_arrays(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                               uint t [[thread_position_in_threadgroup]]) {
  threadgroup float x[64], y[64];
  threadgroup float *from = x, *to = y;
  from[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint d = 1; d < 64; d *= 2) {
    to[t] = from[t] + (t >= d ? from[t - d] : 0);
    threadgroup float *last = from;
    from = to;
    to = last;
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  o[t] = from[t];
}

// run: -b 0=zeros:uint32:2 -b 1=zeros:uint32:2 --grid 64 --threadgroup 32
kernel void one_thread_under_a_lock(device atomic_uint *lock [[buffer(0)]], device uint *total [[buffer(1)]],
                                    uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
  if (t > 0) return;
  uint expected = 0;
  while (!atomic_compare_exchange_weak_explicit(lock, &expected, 1u, memory_order_relaxed, memory_order_relaxed)) expected = 0;
  atomic_thread_fence(mem_flags::mem_device, memory_order_acquire, thread_scope_device);
  total[0] += i;
  atomic_thread_fence(mem_flags::mem_device, memory_order_release, thread_scope_device);
  atomic_store_explicit(lock, 0u, memory_order_relaxed);
}

// run: -b 0=ones:float32:128 -b 1:out:float32:128 --grid 128 --threadgroup 64
kernel void rows_by_simdgroup(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                              uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
                              uint g [[threadgroup_position_in_grid]]) {
  threadgroup float s[2][32];
  uint row = g * 2 + sg;
  s[sg][lane] = a[row * 32 + lane];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (uint k = 0; k < 32; k++) sum += s[sg][(lane + k) % 32];
  o[row * 32 + lane] = s[sg][lane] / sum;
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void loop_with_the_barrier_at_its_head(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                              uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[64];
  float v = a[t];
  for (uint k = 0; k < 3; k++) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    s[t] = v;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    v = s[(t + 1) % 64];
  }
  o[t] = v;
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void union_of_bits(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                          uint t [[thread_position_in_threadgroup]]) {
  thread float v[4];
  thread uint *bits = (thread uint *)v;
  for (uint k = 0; k < 4; k++) bits[k] = as_type<uint>(a[(t + k) % 64]);
  float4 sum = float4(v[0], v[1], v[2], v[3]);
  o[t] = sum[t % 4];
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 -b 2=zeros:uint32:1 --grid 64 --threadgroup 32
kernel void the_last_group_works_alone(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                       device atomic_uint *done [[buffer(2)]], uint i [[thread_position_in_grid]],
                                       uint t [[thread_position_in_threadgroup]], uint n [[threadgroups_per_grid]]) {
  threadgroup uint ticket;
  o[i] = a[i];
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  threadgroup_barrier(mem_flags::mem_device);
  if (t == 0) ticket = atomic_fetch_add_explicit(done, 1u, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (ticket != n - 1) return;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  float sum = 0;
  for (uint k = t; k < 64; k += 32) sum += o[k];
  threadgroup_barrier(mem_flags::mem_device);
  if (t == 0) o[0] = sum;
}

// run: -b 0=arange:float32:96 -b 1:out:float32:32 --grid 32 --threadgroup 32
kernel void packed_vectors(device const packed_float3 *a [[buffer(0)]], device float *o [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  float3 p = a[i];
  packed_float3 q = p.zxy;
  o[i] = dot(float3(q), p) + a[31 - i].y;
}
