// Positions from shapes and strides, whose number the launch passes.
#include <metal_stdlib>
using namespace metal;

uint place_of(uint index, ulong dimensions, constant ulong *shape, constant ulong *strides) {
    uint place = 0;
    for (uint d = 0; d < dimensions; d++) {
        const uint i = dimensions - 1 - d;
        place += index % shape[i] * strides[i];
        index /= shape[i];
    }
    return place;
}

// As candle's kernels: two arrays of one shape, sizes of 64 bits. Places are taken modulo the arrays' length.
kernel void sums(device const int *a [[buffer(0)]], device const int *b [[buffer(1)]], device int *o [[buffer(2)]],
                 constant ulong &dimensions [[buffer(3)]], constant ulong *shape [[buffer(4)]], constant ulong *from [[buffer(5)]],
                 constant ulong *at [[buffer(6)]], constant uint &first [[buffer(7)]], uint i [[thread_position_in_grid]]) {
    const uint x = place_of(first + i, dimensions, shape, from), y = place_of(first + i, dimensions, shape, at);
    o[i] = a[x % 128] + 1000 * b[y % 128] + int(x ^ y);
}

// As MLX's kernels: sizes of 32 bits and strides of 64, from the last dimension to the first, with a sign.
kernel void signed_sums(device const int *a [[buffer(0)]], device int *o [[buffer(1)]], constant int &dimensions [[buffer(2)]],
                        constant int *shape [[buffer(3)]], constant long *strides [[buffer(4)]], uint i [[thread_position_in_grid]]) {
    long place = 0;
    int index = int(i);
    for (int d = dimensions - 1; d >= 0 && index > 0; d--) {
        place += index % shape[d] * strides[d];
        index /= shape[d];
    }
    o[i] = a[place & 127] - int(place);
}
