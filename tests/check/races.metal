// Accesses that no barrier orders; see bounds.metal.
#include <metal_stdlib>
using namespace metal;

// run: -b 0=arange:float32:128 -b 1:out:float32:128 --grid 128 --threadgroup 128
kernel void no_barrier(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                       uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[128];
  s[t] = a[t]; // SM002
  o[t] = s[127 - t]; // SM002 SM005
}

// run: -b 0=arange:float32:128 -b 1:out:float32:128 --grid 128 --threadgroup 128
kernel void with_a_barrier(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                           uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[128];
  s[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[127 - t];
}

// run: -b 0:out:float32:128 --grid 128 --threadgroup 128
kernel void a_barrier_for_other_memory(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[128];
  s[t] = t;
  threadgroup_barrier(mem_flags::mem_device);
  o[t] = s[127 - t]; // SM002
}

// run: -b 0:out:float32:128 --grid 128 --threadgroup 128
kernel void device_memory(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  o[t] = t;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float v = o[127 - t]; // SM002
  threadgroup_barrier(mem_flags::mem_device);
  o[t] = v;
}

// run: -b 0:out:float32:128 --grid 128 --threadgroup 128
kernel void second_round(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[128];
  float sum = 0;
  for (int round = 0; round < 3; round++) {
    s[t] = t * round; // SM002
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += s[127 - t]; // SM002
  }
  o[t] = sum;
}

// run: -b 0:out:float32:32 --grid 32 --threadgroup 32
kernel void in_step(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[32];
  s[t] = t; // SM003
  o[t] = s[31 - t]; // SM003 SM005
}

// run: -b 0:out:float32:32 --grid 32 --threadgroup 32
kernel void with_a_barrier_of_the_simdgroup(device float *o [[buffer(0)]],
                                            uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[32];
  s[t] = t;
  simdgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[31 - t];
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void a_barrier_of_the_simdgroup_is_not_enough(device float *o [[buffer(0)]],
                                                     uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = t; // SM002
  simdgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[63 - t]; // SM002 SM005
}

// run: -b 0=arange:float32:256 -b 1:out:float32:1 --grid 256 --threadgroup 64
kernel void sums_of_groups(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                           uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  float sum = simd_sum(a[i]);
  if (t == 0) o[0] += sum; // SM004 SM004
}

// run: -b 0=arange:float32:256 -b 1=zeros:float32:1 --grid 256 --threadgroup 64
kernel void sums_by_atomics(device const float *a [[buffer(0)]], device atomic_float *o [[buffer(1)]],
                            uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  float sum = simd_sum(a[i]);
  if (t % 32 == 0) atomic_fetch_add_explicit(o, sum, memory_order_relaxed);
}

// run: -b 0=zeros:int32:1 -b 1:out:int32:128 --grid 128 --threadgroup 64
kernel void atomic_and_plain(device atomic_int *n [[buffer(0)]], device int *o [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(n, 1, memory_order_relaxed); // SM003 SM002 SM004
  o[i] = *(device int *)n;
}

// run: -b 0:out:int32:4 --grid 128 --threadgroup 64
kernel void the_same_value(device int *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  o[i & 3] = 7;
}

// run: -b 0:out:int32:128 --grid 128 --threadgroup 64
kernel void the_same_value_last(device int *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  threadgroup int s[4];
  o[i] = i;
  s[i & 3] = 7;
}

// run: -b 0:out:uint8:256 --grid 256 --threadgroup 64
kernel void neighbouring_bytes(device uchar *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  o[i] = i;
}

// run: -b 0:out:int32:130 --grid 128 --threadgroup 64
kernel void overlapping_tiles(device int *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  for (uint j = 0; j < 3; j++) o[i + j] = i; // SM003 SM002 SM004
}

// Elements of less than four bytes: their neighbours in a word are other threads' own.

// run: -b 0=arange:float16:64 -b 1:out:float16:80 --grid 64,2 --threadgroup 64
kernel void rows_of_halves(device const half *a [[buffer(0)]], device half *o [[buffer(1)]],
                           uint2 p [[thread_position_in_grid]]) {
  o[p.y * 8 + p.x] = a[p.x]; // SM004 o[8]
}

// run: -b 0=arange:uint8:64 -b 1:out:uint8:80 --grid 64,2 --threadgroup 64
kernel void rows_of_bytes(device const uchar *a [[buffer(0)]], device uchar *o [[buffer(1)]],
                          uint2 p [[thread_position_in_grid]]) {
  o[p.y * 8 + p.x] = a[p.x]; // SM004 o[8]
}

// run: -b 0:out:float16:128 --grid 128 --threadgroup 128
kernel void halves_without_a_barrier(device half *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup half s[128];
  s[t] = half(t); // SM002
  o[t] = s[(t + 64) % 128]; // SM002 SM005
}

// run: -b 0:out:uint8:128 --grid 128 --threadgroup 128
kernel void bytes_read_before(device uchar *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup uchar s[128];
  s[t] = t;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uchar v = s[(t + 36) % 128]; // SM002
  s[t] = v; // SM002
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[t];
}

// run: -b 0:out:uint8:256 --grid 64 --threadgroup 64
kernel void words_and_bytes(device uchar *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  ((device uint *)o)[t] = t; // SM002
  o[(t * 4 + 133) % 256] = 7; // SM002 SM003
}

// run: -b 0:out:uint8:256 -b 1:out:float16:64 --grid 64 --threadgroup 64
kernel void words_and_their_parts(device uchar *o [[buffer(0)]], device half *h [[buffer(1)]],
                                  uint t [[thread_index_in_threadgroup]]) {
  ((device uint *)o)[t] = t;
  o[t * 4 + 2] = 7;
  ((device ushort *)o)[t * 2] = 9;
  threadgroup_barrier(mem_flags::mem_device);
  o[(t * 4 + 133) % 256] = 7;
  h[t] = half(o[(t * 4 + 132) % 256]);
  threadgroup_barrier(mem_flags::mem_device);
  ((device uint *)o)[63 - t] = uint(h[t]);
}

// The group that is counted last adds up what all groups wrote: fences order device memory, and the barrier the threads.
// run: -b 0=ones:float32:256 -b 1:out:float32:8 -b 2:out:uint32:1 -b 3:out:float32:1 --grid 256 --threadgroup 32
kernel void the_last_group_adds(device const float *a [[buffer(0)]], device float *partial [[buffer(1)]],
                                device atomic_uint *done [[buffer(2)]], device float *o [[buffer(3)]],
                                uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                                uint g [[threadgroup_position_in_grid]], uint n [[threadgroups_per_grid]]) {
  threadgroup bool last;
  float s = simd_sum(a[i]);
  if (t == 0) {
    partial[g] = s;
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    last = atomic_fetch_add_explicit(done, 1u, memory_order_relaxed) == n - 1;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (last) {
    atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
    s = simd_sum(t < n ? partial[t] : 0);
    if (t == 0) o[0] = s;
  }
}

// One simdgroup loads what the other one uses a round later: two buffers, one barrier per round.
// run: -b 0=arange:float32:128 -b 1:out:float32:128 --grid 64 --threadgroup 64
kernel void a_producer_and_a_consumer(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                      uint lane [[thread_index_in_simdgroup]],
                                      uint sg [[simdgroup_index_in_threadgroup]]) {
  threadgroup float s[2][32];
  if (sg == 0) s[0][lane] = a[lane];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < 4; k++) {
    if (sg == 1)
      o[k * 32 + lane] = 2 * s[k & 1][31 - lane];
    else if (k < 3)
      s[(k + 1) & 1][lane] = a[(k + 1) * 32 + lane];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// run: -b 0=zeros:uint32:1 -b 1=zeros:float32:64 -b 2=zeros:float32:1 --grid 64 --threadgroup 64
kernel void the_last_thread_adds(device atomic_uint *count [[buffer(0)]], device float *d [[buffer(1)]],
                                 device float *o [[buffer(2)]], uint t [[thread_position_in_threadgroup]]) {
  d[t] = t;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  uint before = atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  if (before < 63) return;
  float sum = 0;
  for (uint k = 0; k < 64; k++) sum += d[k];
  o[0] = sum;
}

// run: -b 0=zeros:uint32:1 -b 1=zeros:float32:64 -b 2=zeros:float32:1 --grid 64 --threadgroup 64
kernel void the_other_threads_lack_a_fence(device atomic_uint *count [[buffer(0)]], device float *d [[buffer(1)]],
                                           device float *o [[buffer(2)]], uint t [[thread_position_in_threadgroup]]) {
  d[t] = t;
  uint before = atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
  if (before < 63) return;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  float sum = 0;
  for (uint k = 0; k < 64; k++) sum += d[k]; // SM002 SM003 d
  o[0] = sum;
}

// run: -b 0=arange:float32:64 -b 1=zeros:float32:64 --grid 64 --threadgroup 64
kernel void a_fence_for_other_memory(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = a[t];
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_device);
  if (t >= 32) o[t] = tile[t - 32]; // SM002 tile
}

// The barrier orders threadgroup memory, and so does the fence: nothing orders what the threads write to o.
// run: -b 0=arange:float32:64 -b 1=zeros:float32:128 --grid 64 --threadgroup 64
kernel void a_fence_for_threadgroup_memory(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                           uint t [[thread_position_in_threadgroup]]) {
  o[t] = a[t];
  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst, thread_scope_threadgroup);
  o[64 + t] = o[(t + 32) % 64]; // SM002 o
}

// The same with a fence for the memory that is meant.
// run: -b 0=arange:float32:64 -b 1=zeros:float32:128 --grid 64 --threadgroup 64
kernel void a_fence_and_a_barrier(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                  uint t [[thread_position_in_threadgroup]]) {
  o[t] = a[t];
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_threadgroup);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[64 + t] = o[(t + 32) % 64];
}

// A barrier without memory between two fences orders what they name.
// run: -b 0=arange:float32:64 -b 1=zeros:float32:64 --grid 64 --threadgroup 64
kernel void a_barrier_between_fences(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = a[t];
  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_release, thread_scope_threadgroup);
  threadgroup_barrier(mem_flags::mem_none);
  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_acquire, thread_scope_threadgroup);
  o[t] = tile[63 - t];
}

// run: -b 0=arange:float32:64 -b 1=zeros:float32:64 --grid 64 --threadgroup 64
kernel void a_fence_before_the_access(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                      uint t [[thread_position_in_threadgroup]]) {
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);
  o[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float other = o[63 - t]; // SM002 o
  threadgroup_barrier(mem_flags::mem_device);
  o[t] += other;
}

// A fence for the threads of a threadgroup does not order accesses of different ones.
// run: -b 0=zeros:uint32:1 -b 1=zeros:float32:4 -b 2=zeros:float32:1 --grid 128 --threadgroup 32
kernel void a_fence_for_one_threadgroup(device atomic_uint *count [[buffer(0)]], device float *d [[buffer(1)]],
                                        device float *o [[buffer(2)]], uint t [[thread_position_in_threadgroup]],
                                        uint g [[threadgroup_position_in_grid]]) {
  if (t > 0) return;
  d[g] = g;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_threadgroup);
  uint before = atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
  if (before < 3) return;
  atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_threadgroup);
  float sum = 0;
  for (uint k = 0; k < 4; k++) sum += d[k]; // SM004 d
  o[0] = sum;
}

// Nor does a fence for threadgroup memory.
// run: -b 0=zeros:uint32:1 -b 1=zeros:float32:4 -b 2=zeros:float32:1 --grid 128 --threadgroup 32
kernel void a_fence_for_other_memory_of_groups(device atomic_uint *count [[buffer(0)]], device float *d [[buffer(1)]],
                                               device float *o [[buffer(2)]],
                                               uint t [[thread_position_in_threadgroup]],
                                               uint g [[threadgroup_position_in_grid]]) {
  if (t > 0) return;
  d[g] = g;
  atomic_thread_fence(mem_flags::mem_threadgroup, memory_order_seq_cst);
  uint before = atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
  if (before < 3) return;
  float sum = 0;
  for (uint k = 0; k < 4; k++) sum += d[k]; // SM004 d
  o[0] = sum;
}

// A barrier that names no memory, or another one, separates nothing.
// run: -b 0=arange:float32:64 -b 1=zeros:float32:128 --grid 64 --threadgroup 64
kernel void barriers_for_other_memory(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                      uint t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  o[t] = a[t];
  tile[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float of_device = o[(t + 32) % 64]; // SM002 o
  float of_tile = tile[(t + 32) % 64];
  threadgroup_barrier(mem_flags::mem_device);
  tile[t] = of_device; // SM002 tile
  threadgroup_barrier(mem_flags::mem_none);
  o[64 + t] = of_tile + tile[63 - t]; // SM002 tile
}

// run: -b 0=arange:float32:32 -b 1=zeros:float32:64 --grid 32 --threadgroup 32
kernel void simdgroup_barriers_for_other_memory(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                                uint t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[32];
  tile[t] = a[t];
  o[t] = a[t];
  simdgroup_barrier(mem_flags::mem_device);
  float of_tile = tile[31 - t]; // SM003 tile
  float of_device = o[31 - t];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  o[32 + t] = of_tile + of_device;
}
