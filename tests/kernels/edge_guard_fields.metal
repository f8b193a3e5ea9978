// A guard compares positions with fields of a structure that the thread has loaded before: row and column in one condition. Gangs
// within both run code without masks.
// for threads: 8,8 16,8 32,4
// run: fields -b 0:out:float32:703 --bytes 1=uint32:37,19,5 --grid 40,24 --threadgroup {threads}
// expect buffer 0: f(i) for i in 703: sum((i // 37 + k) * (k + 1) - i % 37 for k in range(5))
#include <metal_stdlib>
using namespace metal;

struct sizes {
    uint width, height, depth;
};

kernel void fields(device float *out [[buffer(0)]], constant sizes &s [[buffer(1)]], uint2 at [[thread_position_in_grid]]) {
    const uint width = s.width;
    const uint height = s.height;
    const uint depth = s.depth;
    float sum = 0;
    if ((at.x < width) && (at.y < height)) {
        for (uint k = 0; k < depth; k++) sum += float(at.y + k) * float(k + 1) - float(at.x);
        out[at.y * width + at.x] = sum;
    }
}
