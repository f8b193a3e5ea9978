// Values that nobody set, outputs that nobody wrote, barriers that threads miss; see bounds.metal.
#include <metal_stdlib>
using namespace metal;

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void set_on_one_way(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  float v;
  if (a[i] > 3) v = 1;
  o[i] = v; // SM005 v
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void set_on_all_ways(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  float v;
  if (a[i] > 3) v = 1;
  else v = 2;
  o[i] = v;
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void sum_without_a_start(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  float sum;
  for (int j = 0; j < 4; j++) sum += a[(i + j) & 63];
  o[i] = sum; // SM005 sum
}

// run: -b 0:out:float32:64 --bytes 1=uint32:3 --grid 64 --threadgroup 64
kernel void part_of_an_array(device float *o [[buffer(0)]], constant uint &n [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
  float own[4];
  for (uint j = 0; j < n; j++) own[j] = j;
  o[i] = own[i & 3]; // SM005 own
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void a_branch(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  bool flag;
  if (i > 10) flag = true;
  if (flag) o[i] = 1; // SM005 flag
  else o[i] = 2;
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void an_index(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
  uint j;
  if (i < 60) j = i;
  o[i] = a[j & 63]; // SM005 j
}

// run: -b 0:out:float32:256 --grid 64 --threadgroup 64
kernel void part_of_a_vector(device float4 *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float4 v;
  v.x = i;
  v.y = 2;
  v.w = 3;
  o[i] = v.zyxw; // SM005 v
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void threadgroup_memory(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[64];
  if (t < 60) s[t] = t;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[63 - t]; // SM005
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void copied_and_never_used(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  struct pair { float a, b; } p, q;
  p.a = i;
  q = p;
  o[i] = q.a;
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void some_miss_the_barrier(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  if (t < 40) threadgroup_barrier(mem_flags::mem_threadgroup); // SM007
  o[t] = t;
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void two_barriers(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  if (t < 40)
    threadgroup_barrier(mem_flags::mem_threadgroup); // SM007
  else
    threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = t;
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void some_have_returned(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  if (t >= 40) return;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = t;
}

// run: -b 0=rand:uint8:128 -b 1:out:uint32:16 --grid 128 --threadgroup 64
kernel void bins_that_are_not_cleared(device const uchar *a [[buffer(0)]], device atomic_uint *o [[buffer(1)]],
                                      uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup atomic_uint bins[16];
  atomic_fetch_add_explicit(&bins[a[i] / 16], 1, memory_order_relaxed); // SM005 bins
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t < 16) atomic_fetch_add_explicit(&o[t], atomic_load_explicit(&bins[t], memory_order_relaxed), memory_order_relaxed);
}

// run: -b 0=rand:float32:64 -b 1:out:uint32:1 --grid 64 --threadgroup 64
kernel void the_first_that_is_exchanged(device const float *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                        uint i [[thread_position_in_grid]]) {
  threadgroup atomic_uint first;
  uint none = 0;
  if (a[i] > 0.5f)
    atomic_compare_exchange_weak_explicit(&first, &none, i, memory_order_relaxed, memory_order_relaxed); // SM005 first
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) o[0] = atomic_load_explicit(&first, memory_order_relaxed);
}

// run: -b 0=rand:uint8:64 -b 1:out:uint32:1 --grid 64 --threadgroup 64
kernel void an_exchange_sets_its_value(device const uchar *a [[buffer(0)]], device uint *o [[buffer(1)]],
                                       uint i [[thread_position_in_grid]]) {
  threadgroup atomic_uint last;
  atomic_exchange_explicit(&last, a[i], memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i == 0) o[0] = atomic_load_explicit(&last, memory_order_relaxed);
}

// ---- Stores whose address is not known to be an argument's.

struct two_outputs { device float *even, *odd; };
static void put(thread two_outputs &to, uint i, float v) {
  (i % 2 ? to.odd : to.even)[i] = v; // SM005 v
}
// run: -b 0:out:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void through_one_of_two(device float *o [[buffer(0)]], device float *p [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  two_outputs to = {o, p};
  float v;
  if (i > 3) v = 1;
  (i % 2 ? o : p)[i] = 0;
  put(to, i, v);
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void through_a_captured_pointer(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float v;
  if (i > 3) v = 1;
  o += 1, o -= 1;
  auto store = [&](float x) { o[i] = x; }; // SM005 v
  store(v);
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void thread_memory_through_a_pointer(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float v, first[2] = {0, 0}, second[2] = {0, 0};
  if (i > 3) v = 1;
  thread float *to = i % 2 ? first : second;
  to[0] = v;
  o[i] = i > 3 ? first[0] + second[0] : 0;
}

// run: -b 0=ones:float32:4 -b 1=zeros:float32:1 --grid 32 --threadgroup 32
kernel void summed_by_a_simdgroup(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                  uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float part[8];
  if (lane < 4) part[lane] = a[lane];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = simd_sum(lane < 8 ? part[lane] : 0);
  if (lane == 0) o[0] = sum; // SM005 part
}

// run: -b 0=ones:float32:31 -b 1=zeros:float32:32 --grid 32 --threadgroup 32
kernel void scanned_from_the_lane_on(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                     uint lane [[thread_index_in_simdgroup]]) {
  float v;
  if (lane != 20) v = a[lane < 20 ? lane : lane - 1];
  float before = simd_prefix_exclusive_sum(v), upto = simd_prefix_inclusive_sum(v);
  if (lane <= 20) o[lane] = before;
  if (lane == 21) o[lane] = before; // SM005 v
  if (lane == 20) o[lane] += upto;  // SM005 v
}

// run: -b 0=arange:int32:32 -b 1=zeros:uint32:2 --grid 32 --threadgroup 32
kernel void voted_by_some(device const int *a [[buffer(0)]], device uint *o [[buffer(1)]],
                          uint lane [[thread_index_in_simdgroup]]) {
  int v;
  if (lane < 20) v = a[lane];
  uint votes = uint(ulong(simd_ballot(v > 3)));
  if (lane == 0) o[0] = votes & 0xfffff;
  if (lane == 0) o[1] = votes; // SM005 v
}

// run: -b 0=ones:float32:20 -b 1=zeros:float32:32 --grid 32 --threadgroup 32
kernel void a_greatest_that_no_lane_needs(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                          uint lane [[thread_index_in_simdgroup]]) {
  float v;
  if (lane < 20) v = a[lane];
  float greatest = quad_max(v);
  if (lane < 20) o[lane] = greatest;
}
