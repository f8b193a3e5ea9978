// A thread computes a tile of a product behind a guard: gangs inside run without masks, those at an edge with them.
// for rows: 64 40 36
// run: -b 0=arange:uint8:64x8 -b 1=arange:uint8:8x80 -b 2:out:float32:64x80 --bytes 3=uint32:{rows} --bytes 4=uint32:72 --grid 20,16 --threadgroup 4,8
// expect buffer 2: f(i) for i in 5120: sum((i // 80 * 8 + k) % 256 * ((k * 80 + i % 80) % 256) for k in range(8)) if i // 80 < rows and i % 80 < 72 else 0
#include <metal_stdlib>
using namespace metal;

kernel void tile(device const uchar *a [[buffer(0)]], device const uchar *b [[buffer(1)]], device float *out [[buffer(2)]],
                 constant uint &rows [[buffer(3)]], constant uint &columns [[buffer(4)]], uint2 at [[thread_position_in_grid]]) {
    uint x = at.x * 4, y = at.y * 4;
    if (x >= columns || y >= rows) return;
    float sums[4][4] = {};
    for (uint k = 0; k < 8; k++)
        for (uint r = 0; r < 4; r++)
            for (uint c = 0; c < 4; c++) sums[r][c] += float(a[(y + r) * 8 + k]) * float(b[k * 80 + x + c]);
    for (uint r = 0; r < 4; r++)
        for (uint c = 0; c < 4; c++) out[(y + r) * 80 + x + c] = sums[r][c];
}
