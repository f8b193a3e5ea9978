// What goes over arrays once: a copy, zeros, exp. 256 threads a group; eight floats a thread, in two accesses of 16 bytes.
#include <metal_stdlib>
using namespace metal;

constant constexpr uint threads = 256;

kernel void copy(device const float4 *in [[buffer(0)]], device float4 *out [[buffer(1)]],
                 uint group [[threadgroup_position_in_grid]], uint me [[thread_position_in_threadgroup]]) {
    const uint first = group * (2 * threads) + me;
    const float4 a = in[first], b = in[first + threads];
    out[first] = a;
    out[first + threads] = b;
}

kernel void zero(device float4 *out [[buffer(0)]], uint group [[threadgroup_position_in_grid]],
                 uint me [[thread_position_in_threadgroup]]) {
    const uint first = group * (2 * threads) + me;
    out[first] = float4(0.0f);
    out[first + threads] = float4(0.0f);
}

kernel void exponential(device const float4 *in [[buffer(0)]], device float4 *out [[buffer(1)]],
                        uint group [[threadgroup_position_in_grid]], uint me [[thread_position_in_threadgroup]]) {
    const uint first = group * (2 * threads) + me;
    const float4 a = in[first], b = in[first + threads];
    out[first] = exp(a);
    out[first + threads] = exp(b);
}

// As a user writes it first: one float a thread.
kernel void exponential_plain(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
                              uint i [[thread_position_in_grid]]) {
    out[i] = exp(in[i]);
}
