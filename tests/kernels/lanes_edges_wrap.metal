// Minima and maxima of positions that wrap around; and of positions after other paths have stored, where a gang must not
// start again.
// for group: 32,3 64,2 16,16 96
// for width: 100 96
// let X = lambda i: i % width
// let Y = lambda i: i // width
// run: -b 0=arange:int32:900 -b 1:out:int32:900 -b 2:out:int32:900 -b 3:out:int32:900 --bytes 4=int32:{width},9 --grid {width},9 --threadgroup {group}
// expect buffer 1: f(i) for i in 900: Y(i) * width + (X(i) - 1 if X(i) else width - 1) if i < 9 * width else 0
// expect buffer 2: f(i) for i in 900: Y(i) * width + ((X(i) + 2147483600) % 64 if X(i) < 48 else 7) if i < 9 * width else 0
// expect buffer 3: f(i) for i in 900: (1 if X(i) % 3 == 0 else Y(i) * width + min(X(i) + 2, width - 1)) if i < 9 * width else 0
#include <metal_stdlib>
using namespace metal;

struct sizes { int width, height; };

kernel void wrap(device const int *image [[buffer(0)]], device int *before [[buffer(1)]], device int *high [[buffer(2)]],
                 device int *mixed [[buffer(3)]], constant sizes &p [[buffer(4)]], uint2 at [[thread_position_in_grid]]) {
    int x = at.x, row = at.y * p.width;
    int low = image[row + int(min(at.x - 1, uint(p.width - 1)))];
    int end = image[row + (max(int(at.x + 2147483600u), 7) & 63)];
    int last;
    if (x % 3 == 0) {
        mixed[row + x] += 1;
        before[row + x] = low;
        high[row + x] = end;
        return;
    }
    last = image[row + min(x + 2, p.width - 1)];
    mixed[row + x] = last;
    before[row + x] = low;
    high[row + x] = end;
}
