// Accesses that miss their array. Each kernel is run as the comment before it says; the marks at the ends of
// lines are the findings: the code, and the element.
#include <metal_stdlib>
using namespace metal;

// run: -b 0:out:float32:64 --grid 64 --threadgroup 32
kernel void one_past_the_end(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  o[i + 1] = i; // SM001 o[64]
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 32
kernel void one_before_the_start(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  o[int(i) - 1] = i; // SM001 o[-1]
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void reads_past_the_end(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                               uint i [[thread_position_in_grid]]) {
  o[i] = a[i] + a[i + 1]; // SM001 a[64]
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void branches_on_what_is_outside(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                        uint i [[thread_position_in_grid]]) {
  float v = a[i + 1]; // SM001 a[64]
  if (v > 3) o[i] = 1;
  else o[i] = 2;
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void sums_what_is_outside(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  float v = a[i + 1]; // SM001 a[64]
  o[i] = simd_sum(v);
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 32
kernel void loads_first_and_selects(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    uint i [[thread_position_in_grid]]) {
  float v = a[i + 1];
  o[i] = i + 1 < 64 ? v : 0.0f;
}

// run: -b 0=arange:float32:63 -b 1:out:float32:64 --grid 16 --threadgroup 16
kernel void vector_past_the_end(device const float4 *a [[buffer(0)]], device float4 *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  o[i] = a[i]; // SM001 a[15]
}

// run: -b 0=arange:float16:70 -b 1:out:float16:64 --grid 35 --threadgroup 32
kernel void halves_past_the_end(device const half2 *a [[buffer(0)]], device half2 *o [[buffer(1)]],
                                uint i [[thread_position_in_grid]]) {
  o[i] = a[i]; // SM001 o[32]
}

// run: -b 0=arange:uint8:16 -b 1:out:uint8:16 --grid 16 --threadgroup 16
kernel void byte_past_the_end(device const uchar *a [[buffer(0)]], device uchar *o [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) {
  o[i] = a[i + (i == 15)]; // SM001 a[16]
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void threadgroup_array(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float s[32], after[64];
  after[t] = 0;
  s[t] = t; // SM001 s[32]
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[t & 31] + after[t];
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void threadgroup_array_below(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float before[64], s[64];
  before[t] = s[t] = t;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = before[t] + s[int(t) - 1]; // SM001 s[-1]
}

// run: -b 0:out:float32:64 --threadgroup-memory 0=128 --grid 64 --threadgroup 64
kernel void threadgroup_argument(device float *o [[buffer(0)]], threadgroup float *s [[threadgroup(0)]],
                                 uint t [[thread_index_in_threadgroup]]) {
  s[t] = t; // SM001
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[t & 31];
}

// run: -b 0:out:float32:64 --bytes 1=uint32:5 --grid 64 --threadgroup 64
kernel void private_array(device float *o [[buffer(0)]], constant uint &n [[buffer(1)]],
                          uint t [[thread_index_in_threadgroup]]) {
  float own[4], other[4] = {1, 2, 3, 4};
  for (uint j = 0; j < n; j++) own[j] = j; // SM001 own[4]
  o[t] = own[0] + own[1] + own[2] + own[3] + other[t & 3];
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void private_array_by_a_constant(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  float own[4] = {1, 2, 3, 4};
  own[4] = t; // SM001 own[4]
  o[t] = own[t & 3];
}

float last(thread const float *values, int count) {
  return values[count]; // SM001 own[4]
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void in_a_function(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  float own[4] = {1, 2, 3, float(t)};
  o[t] = last(own, 4);
}

constant float table[3] = {1, 2, 3};

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void constant_array(device float *o [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
  o[t] = table[t & 3]; // SM001 table[3]
}

struct item {
  int key;
  float value[3];
};

// run: -b 0=arange:int32:64 -b 1:out:float32:17 --grid 17 --threadgroup 17
kernel void structures(device const item *a [[buffer(0)]], device float *o [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  float v = a[i].value[1]; // SM001 a[16]
  o[i] = v;
}

// run: -b 0=zeros:int32:1 -b 1:out:int32:4 --grid 8 --threadgroup 8
kernel void atomics(device atomic_int *a [[buffer(0)]], device int *o [[buffer(1)]],
                    uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(a + i / 4, 1, memory_order_relaxed); // SM001 a[1]
  if (i < 4) o[i] = i;
}

// run: -b 0=arange:float32:64 -b 1:out:float32:8 --grid 8 --threadgroup 8
kernel void a_pointer_that_walks(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  float sum = 0;
  device const float *p = a + 8 * i;
  for (int j = 0; j <= 8; j++) sum += *p++; // SM001 a[64]
  o[i] = sum;
}

// run: -b 0=arange:float32:64 -b 1=arange:float32:64 -b 2:out:float32:64 --grid 64 --threadgroup 32
kernel void one_of_two_arrays(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                              device float *o [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] = (i & 1 ? a : b)[i];
}

// ---- Alignment.

// run: -b 0=zeros:uint8:64 -b 1:out:int32:8 --grid 8 --threadgroup 8
kernel void a_number_between_two(device const uchar *a [[buffer(0)]], device int *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  o[i] = *(device const int *)(a + 6 * i); // SM012 a
}

// run: -b 0:out:uint8:64 --grid 8 --threadgroup 8
kernel void a_header_of_one_byte(device uchar *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  device half *values = (device half *)(o + 1);
  values[i] = 1.0h; // SM012 o
}

// run: -b 0=zeros:uint8:64 -b 1:out:float32:8 -b 2=1 --grid 8 --threadgroup 8
kernel void behind_a_flag(device const uchar *a [[buffer(0)]], device float *o [[buffer(1)]],
                          constant int &flags [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  device const float *values = reinterpret_cast<device const float *>(a + flags);
  o[i] = values[i]; // SM012 a
}

// run: -b 0=arange:uint32:64 -b 1:out:uint64:8 -b 2=4 --grid 8 --threadgroup 8
kernel void half_a_number_on(device const uint *a [[buffer(0)]], device ulong *o [[buffer(1)]],
                             constant int &bytes [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] = *(device const ulong *)((device const uchar *)a + bytes); // SM012 a
}

struct packed_block {
  half scale;
  uchar values[16];
};

// run: -b 0=zeros:uint8:180 -b 1:out:float32:8 --grid 8 --threadgroup 8
kernel void blocks_of_18_bytes(device const packed_block *a [[buffer(0)]], device float *o [[buffer(1)]],
                               uint i [[thread_position_in_grid]]) {
  o[i] = a[i].scale * a[i].values[3] + float(packed_short2(*(device const packed_short2 *)a[i].values).y);
}

// ---- Before products of matrices, which need all lanes of a simdgroup.

// run: -b 0=ones:float16:32 -b 1:out:float32:128 --grid 64 --threadgroup 64
kernel void a_lane_before_a_product(device const half *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    uint i [[thread_position_in_grid]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup half s[128];
  s[2 * i] = a[i == 45 ? 2000 : i % 32]; // SM001 a[2000]
  s[2 * i + 1] = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_half8x8 left, right;
  simdgroup_float8x8 sum(0);
  simdgroup_load(left, s + 64 * simdgroup, 8);
  simdgroup_load(right, s + 64 * simdgroup, 8, 0, true);
  simdgroup_multiply_accumulate(sum, left, right, sum);
  simdgroup_store(sum, o + 64 * simdgroup, 8);
}

// run: -b 0=ones:float32:64 -b 1:out:float32:128 --grid 64 --threadgroup 64
kernel void a_simdgroup_of_two_in_a_loop(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                         uint i [[thread_position_in_grid]],
                                         uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  threadgroup float s[128];
  simdgroup_float8x8 left, right, sum(0);
  for (uint k = 0; k < 4; k++) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    s[2 * i] = a[i + k * 16 * simdgroup]; // SM001 a
    s[2 * i + 1] = k;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    simdgroup_load(left, s + 64 * (1 - simdgroup), 8);
    simdgroup_load(right, s + 64 * simdgroup, 8);
    simdgroup_multiply_accumulate(sum, left, right, sum);
  }
  simdgroup_store(sum, o + 64 * simdgroup, 8);
}

// run: -b 0=arange:uint8:64 -b 1:out:uint8:64 --threadgroup-memory 0=160 --grid 64 --threadgroup 64
kernel void threadgroup_argument_with_a_stride(device const uchar *a [[buffer(0)]], device uchar *o [[buffer(1)]],
                                               threadgroup uchar *tile [[threadgroup(0)]],
                                               uint t [[thread_position_in_threadgroup]]) {
  tile[t * 3] = a[t]; // SM001 tile[162]
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = tile[t * 3]; // SM001 tile[162]
}

// run: -b 0=ones:float32:60 -b 1=zeros:float32:64 --grid 64 --threadgroup 64
kernel void stored_through_a_captured_pointer(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                              uint i [[thread_position_in_grid]]) {
  o += 1, o -= 1;
  auto store = [&](float x) { o[i] = x; };
  store(a[i]); // SM001 a[60]
}

struct Walk {
  device const float *at;
  int stride;
  float next() thread {
    float value = *at; // SM001 a[64]
    at += stride;
    return value;
  }
};
template <typename F> void call_with(bool even, F f) {
  if (even) f(2);
  else f(3);
}
// run: -b 0=ones:float32:64 -b 1=zeros:float32:32 --bytes 2=int32:2 --grid 32 --threadgroup 32
kernel void through_nested_lambdas(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                   constant int &n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  Walk walk = {a + i, 32};
  float sum = 0;
  call_with(n % 2 == 0, [&](int rounds) {
    call_with(n > 3, [&](int steps) {
      for (int k = 0; k < steps; k++) sum += walk.next() * rounds;
    });
  });
  o[i] = sum;
}
