// Loads near the edges of an image: positions clamped to it, or compared with its sizes. Gangs away from edges run code
// of their own; others must load the same elements.
// for group: 32,3 64,2 16,16 8,4 96 20,2
// for width: 100 96 5
// let at = lambda x, y: min(max(y, 0), 8) * width + min(max(x, 0), width - 1)
// let X = lambda i: i % width
// let Y = lambda i: i // width
// run: -b 0=arange:int32:900 -b 1:out:int32:900 -b 2:out:int32:900 -b 3:out:int32:900 --bytes 4=int32:{width},9,2 --grid {width},9 --threadgroup {group}
// expect buffer 1: f(i) for i in 900: sum(at(X(i) + d, Y(i)) for d in range(-2, 3)) if i < 9 * width else 0
// expect buffer 2: f(i) for i in 900: sum(at(X(i) + d % 5 - 2, Y(i) + d // 5 - 2) * (d + 1) for d in range(25)) if i < 9 * width else 0
// expect buffer 3: f(i) for i in 900: sum(i + d + 1 for d in (-1, 1) if 0 <= X(i) + d < width) + sum(i + d * width for d in (-1, 1) if 0 <= Y(i) + d < 9) if i < 9 * width else 0
#include <metal_stdlib>
using namespace metal;

struct sizes { int width, height, radius; };

kernel void edges(device const int *image [[buffer(0)]], device int *clamped [[buffer(1)]], device int *around [[buffer(2)]],
                  device int *inside [[buffer(3)]], constant sizes &p [[buffer(4)]],
                  uint2 at [[thread_position_in_grid]]) {
    int x = at.x, y = at.y, here = y * p.width + x;
    int sum = 0;
    for (int d = -2; d <= 2; d++) sum += image[y * p.width + clamp(x + d, 0, p.width - 1)];
    int all = 0, weight = 0;
    for (int v = -p.radius; v <= p.radius; v++)
        for (int h = -p.radius; h <= p.radius; h++)
            all += image[clamp(y + v, 0, p.height - 1) * p.width + clamp(x + h, 0, p.width - 1)] * ++weight;
    int some = 0;
    if (x >= 1) some += image[here - 1] + 1;
    if (x + 1 < p.width) some += image[here + 1] + 1;
    if (y - 1 >= 0 && y - 1 < p.height) some += image[here - p.width];
    if (y + 1 < p.height) some += image[here + p.width];
    clamped[here] = sum;
    around[here] = all;
    inside[here] = some;
}
