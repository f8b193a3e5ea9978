// Bilinear samples: x (batch, height, width, channels), points (batch, rows, columns, 2), out (batch, rows, columns,
// channels). Zeros outside, corners not aligned. All four corners are loaded, and those outside thrown away.
#include <metal_stdlib>
using namespace metal;

struct Sizes {
    int height, width, channels, rows, columns;
};

kernel void sample_grid(device const float *x [[buffer(0)]], device const float *points [[buffer(1)]],
                        device float *out [[buffer(2)]], constant Sizes &size [[buffer(3)]],
                        uint element [[thread_position_in_grid]]) {
    int height = size.height, width = size.width, channels = size.channels;
    uint point = element / channels * 2;
    float ix = ((points[point] + 1) * width - 1) / 2;
    float iy = ((points[point + 1] + 1) * height - 1) / 2;
    int left = floor(ix), top = floor(iy);
    int right = left + 1, bottom = top + 1;

    float nw = (right - ix) * (bottom - iy);
    float ne = (ix - left) * (bottom - iy);
    float sw = (right - ix) * (iy - top);
    float se = (ix - left) * (iy - top);

    int image = element / channels / size.rows / size.columns * (height * width * channels);
    int base = image + element % channels;
    float at_nw = x[base + (top * width + left) * channels];
    float at_ne = x[base + (top * width + right) * channels];
    float at_sw = x[base + (bottom * width + left) * channels];
    float at_se = x[base + (bottom * width + right) * channels];
    at_nw = top >= 0 && top < height && left >= 0 && left < width ? at_nw : 0;
    at_ne = top >= 0 && top < height && right >= 0 && right < width ? at_ne : 0;
    at_sw = bottom >= 0 && bottom < height && left >= 0 && left < width ? at_sw : 0;
    at_se = bottom >= 0 && bottom < height && right >= 0 && right < width ? at_se : 0;

    out[element] = nw * at_nw + ne * at_ne + sw * at_sw + se * at_se;
}
