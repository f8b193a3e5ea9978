// Bilinear samples and their derivatives: x (batch, height, width, C), grid (batch, rows, columns, 2), out (batch, rows,
// columns, C). Zeros outside, corners not aligned. C / 4 neighbouring threads have one point, four channels each; the
// grid of threads is (columns · C / 4, rows, batch), so that nothing is divided.
#include <metal_stdlib>
using namespace metal;

struct sample_size {
    int height, width, rows, columns;
};

// Corners are numbered 0 north-west, 1 north-east, 2 south-west, 3 south-east.
struct place {
    int left, top;
    float east, south; // from corner 0
    int height, width;

    // Beyond the limits no corner is inside, as at them.
    place(float2 at, int height, int width) : height(height), width(width) {
        const float x = clamp(((at.x + 1.0f) * float(width) - 1.0f) * 0.5f, -2.0f, float(width) + 1.0f);
        const float y = clamp(((at.y + 1.0f) * float(height) - 1.0f) * 0.5f, -2.0f, float(height) + 1.0f);
        const float whole_x = floor(x), whole_y = floor(y);
        left = int(whole_x);
        top = int(whole_y);
        east = x - whole_x;
        south = y - whole_y;
    }
    bool inside(int corner) const {
        return uint(left + (corner & 1)) < uint(width) && uint(top + (corner >> 1)) < uint(height);
    }
    int pixel(int corner) const { return (top + (corner >> 1)) * width + left + (corner & 1); }
    float across(int corner) const { return corner & 1 ? east : 1.0f - east; }
    float down(int corner) const { return corner >> 1 ? south : 1.0f - south; }
    float weight(int corner) const { return across(corner) * down(corner); }
};

template <uint C>
kernel void sample(device const float4 *x [[buffer(0)]], device const float2 *grid [[buffer(1)]],
                   device float4 *out [[buffer(2)]], constant sample_size &size [[buffer(3)]],
                   uint3 thread_position [[thread_position_in_grid]]) {
    constexpr uint quarters = C / 4;
    const uint quarter = thread_position.x % quarters;
    const uint point = (thread_position.z * size.rows + thread_position.y) * size.columns + thread_position.x / quarters;
    const place at(grid[point], size.height, size.width);
    device const float4 *image = x + size_t(thread_position.z) * uint(size.height * size.width) * quarters + quarter;
    float4 corners[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        corners[k] = float4(0.0f);
        if (at.inside(k)) corners[k] = image[uint(at.pixel(k)) * quarters];
    }
    float4 sum = at.weight(0) * corners[0];
#pragma unroll
    for (int k = 1; k < 4; k++) sum = fma(float4(at.weight(k)), corners[k], sum);
    out[point * quarters + quarter] = sum;
}

// x_grad starts at 0.
template <uint C>
kernel void sample_vjp(device const float4 *x [[buffer(0)]], device const float2 *grid [[buffer(1)]],
                       device const float4 *cotangent [[buffer(2)]], device atomic<float> *x_grad [[buffer(3)]],
                       device float2 *grid_grad [[buffer(4)]], constant sample_size &size [[buffer(5)]],
                       uint3 thread_position [[thread_position_in_grid]]) {
    constexpr uint quarters = C / 4;
    const uint quarter = thread_position.x % quarters;
    const uint point = (thread_position.z * size.rows + thread_position.y) * size.columns + thread_position.x / quarters;
    const place at(grid[point], size.height, size.width);
    const float4 slope = cotangent[point * quarters + quarter];
    const size_t image = size_t(thread_position.z) * uint(size.height * size.width) * quarters + quarter;
    float across = 0.0f, down = 0.0f;
    float4 corners[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        corners[k] = float4(0.0f);
        if (at.inside(k)) corners[k] = x[image + uint(at.pixel(k)) * quarters];
    }
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (at.inside(k)) {
            device atomic<float> *to = x_grad + 4 * (image + uint(at.pixel(k)) * quarters);
            const float4 part = at.weight(k) * slope;
            atomic_fetch_add_explicit(to, part.x, memory_order_relaxed);
            atomic_fetch_add_explicit(to + 1, part.y, memory_order_relaxed);
            atomic_fetch_add_explicit(to + 2, part.z, memory_order_relaxed);
            atomic_fetch_add_explicit(to + 3, part.w, memory_order_relaxed);
        }
        const float product = dot(slope, corners[k]);
        across += k & 1 ? product * at.down(k) : -product * at.down(k);
        down += k >> 1 ? product * at.across(k) : -product * at.across(k);
    }
#pragma unroll
    for (uint distance = quarters / 2; distance > 0; distance /= 2) {
        across += simd_shuffle_xor(across, distance);
        down += simd_shuffle_xor(down, distance);
    }
    if (quarter == 0) grid_grad[point] = 0.5f * float2(across * float(size.width), down * float(size.height));
}

template [[host_name("sample_64")]] kernel void sample<64>(device const float4 *, device const float2 *, device float4 *,
                                                           constant sample_size &, uint3);
template [[host_name("sample_vjp_64")]] kernel void sample_vjp<64>(device const float4 *, device const float2 *,
                                                                   device const float4 *, device atomic<float> *,
                                                                   device float2 *, constant sample_size &, uint3);
