// What is looked for on request; see bounds.metal.
#include <metal_stdlib>
using namespace metal;

// ---- NaN and infinity that come up in the kernel.

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64 --also not-finite
kernel void a_quotient(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  o[i] = 1 / a[i]; // SM016
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64 --also not-finite
kernel void an_exponential(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                           uint i [[thread_position_in_grid]]) {
  o[i] = exp(2 * a[i]); // SM016
}

// run: -b 0=arange:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64 --also not-finite
kernel void a_root_of_components(device const float2 *a [[buffer(0)]], device float2 *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  if (i < 32) o[i] = sqrt(a[i] - float2(0, 4)); // SM016
}

// run: -b 0=arange:float16:64 -b 1:out:float16:64 --grid 64 --threadgroup 64 --also not-finite
kernel void a_sum_of_halves(device const half *a [[buffer(0)]], device half *o [[buffer(1)]],
                            uint i [[thread_position_in_grid]]) {
  half sum = 0;
  for (int k = 0; k < 64; k++)
    sum += a[i] * a[k]; // SM016
  o[i] = sum;
}

// run: -b 0=arange:float32:64 -b 1:out:float16:64 --grid 64 --threadgroup 64 --also not-finite
kernel void a_conversion(device const float *a [[buffer(0)]], device half *o [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  o[i] = half(a[i] * 2000); // SM016
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64 --also not-finite
kernel void a_row_without_a_maximum(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                    uint i [[thread_position_in_grid]]) {
  float most = -INFINITY;
  for (uint k = 0; k < i % 4; k++) most = max(most, a[k]);
  float score = i % 4 ? a[i] : -INFINITY;
  o[i] = exp(score - most); // SM016
}

// run: -b 0=ones:float32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64 --also not-finite
kernel void infinities_that_are_meant(device const float *a [[buffer(0)]], device float *o [[buffer(1)]],
                                      uint i [[thread_position_in_grid]]) {
  float most = -INFINITY, least = numeric_limits<float>::infinity();
  for (uint k = 0; k < 64; k++) {
    most = max(most, a[k]);
    least = min(least, a[k]);
  }
  float quotient = 1 / (a[i] - 1);
  float guarded = select(log(a[i] - 1), 0.0f, a[i] == 1);
  o[i] = tanh(100 * a[i]) + exp(-INFINITY - most) + least + (a[i] == 1 ? 0 : quotient) + guarded;
}

// ---- Unsigned numbers that wrap.

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64 --also unsigned
kernel void below_zero(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
  o[i] = a[i] - 1; // SM017
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64 --also unsigned
kernel void a_sum_that_wraps(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                             uint i [[thread_position_in_grid]]) {
  o[i] = a[i] + 0xffffffe0u; // SM017
}

// run: -b 0=arange:uint32:64 -b 1:out:uint64:64 --grid 64 --threadgroup 64 --also unsigned
kernel void a_product_that_wraps(device const uint *a [[buffer(0)]], device ulong *o [[buffer(1)]],
                                 uint i [[thread_position_in_grid]]) {
  o[i] = a[i] * 100000000u; // SM017
}

static uint offset_of(uint row, uint rows) {
  return rows - row; // SM017
}

// run: -b 0:out:uint32:64 --grid 64 --threadgroup 64 --also unsigned
kernel void a_difference_that_is_compared(device uint *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  o[i] = offset_of(i, 32) > 0;
}

// run: -b 0=arange:uint32:64 -b 1:out:uint32:64 --grid 64 --threadgroup 64
kernel void a_hash_wraps(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
                         uint i [[thread_position_in_grid]]) {
  o[i] = (a[i] ^ 2166136261u) * 16777619u - 7u;
}
