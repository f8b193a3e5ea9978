// Guards of three dimensions in groups of two, with bounds that are loaded one after another: gangs inside, across, and outside.
// for group: 32,8 64,2 8,8 16,4,2
// run: -b 0=arange:uint32:3000 -b 1:out:uint32:7680 --bytes 2=uint32:25,19,5 --grid 64,20,6 --threadgroup {group}
// expect buffer 1: f(i) for i in 7680: (i % 64 // 2 + i // 64 % 20 * 25 + i // 1280 * 475) * 2 + i % 64 % 2 if i % 64 < 50 and i // 64 % 20 < 19 and i // 1280 < 5 else 0
#include <metal_stdlib>
using namespace metal;

struct sizes { uint w, h, d; };

kernel void dimensions(device const uint *in [[buffer(0)]], device uint *out [[buffer(1)]], constant sizes &s [[buffer(2)]],
                       uint3 p [[thread_position_in_grid]]) {
    const uint width = s.w * 2;
    if (p.x >= width || p.y >= s.h || p.z >= s.d) return;
    out[(p.z * 20 + p.y) * 64 + p.x] = in[p.x / 2 + (p.z * s.h + p.y) * s.w] * 2 + p.x % 2;
}
