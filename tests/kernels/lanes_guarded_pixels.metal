// A short kernel with few accesses after a guard in two dimensions: rows that end within a gang, and groups beyond them.
// for width: 1 15 16 33 60
// run: -b 0=arange:uint8:240x16 -b 1:out:uint8:64x16 --bytes 2=uint32:{width},13 --grid 64,16 --threadgroup 16,16
// expect buffer 1: f(i) for i in 1024: (3 * i + 1) % 256 if i % 64 < width and i // 64 < 13 else 0
#include <metal_stdlib>
using namespace metal;

kernel void middle(device const uchar *rgb [[buffer(0)]], device uchar *out [[buffer(1)]], constant uint2 &size [[buffer(2)]],
                   uint2 at [[thread_position_in_grid]]) {
    if (at.x >= size.x || at.y >= size.y) return;
    uint i = at.y * 64 + at.x;
    out[i] = rgb[3 * i + 1];
}
