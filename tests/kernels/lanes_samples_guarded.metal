// Threads behind a guard find their point by dividing by sizes, load its place, and add the elements around it: those of a gang share
// the point, are of a few points, or of one each.
// for channels: 1 3 16 32 64 96
// for group: 64 256
// run: -b 0=arange:float32:24576 -b 1=arange:uint32:96 -b 2:out:float32:3000 --bytes 3=uint32:{channels},5,2900 --grid 3000 --threadgroup {group}
// let element = lambda channels, y, x, c: (y * 16 + x) * channels + c if 0 <= y < 16 and 0 <= x < 16 else 0
// let around = lambda channels, y, x, c: element(channels, y, x, c) + element(channels, y, x + 1, c) + element(channels, y + 1, x, c) + element(channels, y + 1, x + 1, c)
// let place = lambda i, channels: i // channels % 5 * 7 + i // (5 * channels) % 12
// expect buffer 2: f(i) for i in 3000: around(channels, place(i, channels) % 19 - 2, place(i, channels) // 2 - 1, i % channels) if i < 2900 else 0
#include <metal_stdlib>
using namespace metal;

struct sizes { uint channels, rows, n; };

kernel void samples(device const float *image [[buffer(0)]], device const uint *places [[buffer(1)]], device float *out [[buffer(2)]],
                    constant sizes &s [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    if (i >= s.n) return;
    const uint c = i % s.channels, row = i / s.channels % s.rows, column = i / (s.rows * s.channels);
    const uint place = places[row * 7 + column % 12];
    const int y = int(place % 19) - 2, x = int(place / 2) - 1;
    float sum = 0;
    if (y >= 0 && y < 16 && x >= 0 && x < 16) sum += image[(y * 16 + x) * s.channels + c];
    if (y >= 0 && y < 16 && x + 1 >= 0 && x + 1 < 16) sum += image[(y * 16 + x + 1) * s.channels + c];
    if (y + 1 >= 0 && y + 1 < 16 && x >= 0 && x < 16) sum += image[((y + 1) * 16 + x) * s.channels + c];
    if (y + 1 >= 0 && y + 1 < 16 && x + 1 >= 0 && x + 1 < 16) sum += image[((y + 1) * 16 + x + 1) * s.channels + c];
    out[i] = sum;
}
