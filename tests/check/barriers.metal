// Barriers that some threads miss; see bounds.metal.
#include <metal_stdlib>
using namespace metal;

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
kernel void in_the_reduction(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                             uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = a[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint half_way = 32; half_way > 0; half_way /= 2) {
    if (t < half_way) {
      s[t] += s[t + half_way];
      threadgroup_barrier(mem_flags::mem_threadgroup); // SM007
    }
  }
  if (t == 0) o[0] = s[0];
}

// run: -b 0:out:float32:64 --grid 64 --threadgroup 64
kernel void two_barriers_for_one(device float *o [[buffer(0)]], uint t [[thread_position_in_threadgroup]]) {
  threadgroup float s[64];
  s[t] = t;
  if (t % 2 == 0) {
    threadgroup_barrier(mem_flags::mem_threadgroup); // SM007
  } else {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  o[t] = s[t];
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void rounds_of_its_own(device const uint *n [[buffer(0)]], device uint *o [[buffer(1)]],
                              uint t [[thread_position_in_threadgroup]]) {
  threadgroup uint s[64];
  s[t] = t;
  for (uint k = 0; k <= n[t] / 32; k++) {
    threadgroup_barrier(mem_flags::mem_threadgroup); // SM007
  }
  o[t] = s[t];
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void left_by_break(device const uint *n [[buffer(0)]], device uint *o [[buffer(1)]],
                          uint t [[thread_position_in_threadgroup]]) {
  threadgroup uint s[64];
  for (uint k = 0; k < 4; k++) {
    if (n[t] < k) break;
    s[t] = k;
    threadgroup_barrier(mem_flags::mem_threadgroup); // SM007
  }
  o[t] = s[t];
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:48 --grid 64 --threadgroup 64
kernel void leaves_by_return(device const uint *n [[buffer(0)]], device uint *o [[buffer(1)]],
                             uint t [[thread_position_in_threadgroup]]) {
  threadgroup uint s[64];
  if (t >= 48) return;
  s[t] = n[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[t] = s[47 - t];
}

// run: -b 0=ones:int32:128 -b 1:out:int32:2 --grid 128 --threadgroup 64
kernel void a_tree_in_device_memory(device int *a [[buffer(0)]], device int *o [[buffer(1)]],
                                    uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
                                    uint g [[threadgroup_position_in_grid]]) {
  for (uint k = 32; k > 0; k >>= 1) {
    if (t < k) a[i] += a[i + k];
    threadgroup_barrier(mem_flags::mem_device_and_threadgroup);
  }
  if (t == 0) o[g] = a[i];
}
