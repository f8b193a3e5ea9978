// Kernels as users write them first: an element per thread, or a loop over a row by the threads of a group.
#include <metal_stdlib>
#include <metal_simdgroup>
using namespace metal;

kernel void plain_exp(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *out [[buffer(2)]],
                      constant uint &n [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    out[i] = exp(a[i]);
}

template <typename T>
kernel void swiglu(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *out [[buffer(2)]],
                   constant uint &n [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    if (i >= n) return;
    const float gate = float(a[i]);
    out[i] = T(gate / (1.0f + exp(-gate)) * float(b[i]));
}

template <typename T>
kernel void gelu(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *out [[buffer(2)]],
                 constant uint &n [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    if (i >= n) return;
    const float x = float(a[i]);
    out[i] = T(0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * x * x * x))));
}

template <typename T>
kernel void residual(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *out [[buffer(2)]],
                     constant uint &n [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    out[i] = a[i] + b[i];
}

#define EACH(T)                                                                                                              \
    template [[host_name("swiglu_" #T)]] kernel void swiglu<T>(device const T *, device const T *, device T *, constant uint &, uint); \
    template [[host_name("gelu_" #T)]] kernel void gelu<T>(device const T *, device const T *, device T *, constant uint &, uint);     \
    template [[host_name("residual_" #T)]] kernel void residual<T>(device const T *, device const T *, device T *, constant uint &, uint);
EACH(half)
EACH(bfloat)

// Planes of n x n elements.
kernel void transpose_read(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *out [[buffer(2)]],
                           constant uint &n [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
    out[at.y * n + at.x] = a[at.x * n + at.y];
}

kernel void broadcast(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *out [[buffer(2)]],
                      constant uint &n [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
    out[at.y * n + at.x] = a[at.y * n + at.x] + b[at.x];
}

// Rows of n elements.
kernel void scale_rows(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *out [[buffer(2)]],
                       constant uint &n [[buffer(3)]], uint row [[threadgroup_position_in_grid]],
                       uint me [[thread_position_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
    for (uint c = me; c < n; c += threads) out[row * n + c] = a[row * n + c] * 2.0f;
}

kernel void layer_norm(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *out [[buffer(2)]],
                       constant uint &n [[buffer(3)]], uint row [[threadgroup_position_in_grid]],
                       uint me [[thread_position_in_threadgroup]], uint threads [[threads_per_threadgroup]],
                       uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                       uint simdgroups [[simdgroups_per_threadgroup]]) {
    threadgroup float2 parts[32];
    a += row * n;
    out += row * n;
    float sum = 0.0f, squares = 0.0f;
    for (uint c = me; c < n; c += threads) {
        const float v = a[c];
        sum += v;
        squares += v * v;
    }
    sum = simd_sum(sum);
    squares = simd_sum(squares);
    if (lane == 0) parts[simdgroup] = float2(sum, squares);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float2 part = lane < simdgroups ? parts[lane] : float2(0.0f);
    const float mean = simd_sum(part.x) / n, variance = simd_sum(part.y) / n - mean * mean;
    const float scale = rsqrt(variance + 1e-5f);
    for (uint c = me; c < n; c += threads) out[c] = (a[c] - mean) * scale * b[c];
}
