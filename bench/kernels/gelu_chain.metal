// gelu(x * scale + bias) * residual, in one kernel and in four. Rows of `columns` elements; scale and bias one a column.
#include <metal_stdlib>
using namespace metal;

METAL_FUNC float gelu(float x) {
    return 0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
}

kernel void gelu_chain(device const float *x [[buffer(0)]], device const float *scale [[buffer(1)]],
                       device const float *bias [[buffer(2)]], device const float *residual [[buffer(3)]],
                       device float *out [[buffer(4)]], uint2 at [[thread_position_in_grid]],
                       uint2 size [[threads_per_grid]]) {
    uint i = at.y * size.x + at.x;
    out[i] = gelu(x[i] * scale[at.x] + bias[at.x]) * residual[i];
}

kernel void multiply_columns(device const float *x [[buffer(0)]], device const float *scale [[buffer(1)]],
                             device float *out [[buffer(2)]], uint2 at [[thread_position_in_grid]],
                             uint2 size [[threads_per_grid]]) {
    uint i = at.y * size.x + at.x;
    out[i] = x[i] * scale[at.x];
}

kernel void add_columns(device const float *x [[buffer(0)]], device const float *bias [[buffer(1)]],
                        device float *out [[buffer(2)]], uint2 at [[thread_position_in_grid]],
                        uint2 size [[threads_per_grid]]) {
    uint i = at.y * size.x + at.x;
    out[i] = x[i] + bias[at.x];
}

kernel void gelu_each(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
                      uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    uint i = at.y * size.x + at.x;
    out[i] = gelu(x[i]);
}

kernel void multiply_each(device const float *x [[buffer(0)]], device const float *y [[buffer(1)]],
                          device float *out [[buffer(2)]], uint2 at [[thread_position_in_grid]],
                          uint2 size [[threads_per_grid]]) {
    uint i = at.y * size.x + at.x;
    out[i] = x[i] * y[i];
}
