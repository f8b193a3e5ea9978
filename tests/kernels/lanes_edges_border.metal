// A border that the kernel writes apart, and a stencil inside: gangs inside the border run without masks.
// for width: 1 2 3 33 70 130
// for height: 1 3 17
// for group: 32,8 16,4 64,1 10,3
// let V = lambda k: k % width + 3 * (k // width)
// let E = lambda k: k % width == 0 or k % width == width - 1 or k < width or k >= width * (height - 1)
// let S = lambda k: sum(in_(k + a + b * width) for a in (-1, 0, 1) for b in (-1, 0, 1))
// let in_ = lambda k: (k * k) % 101
// run: -b 0=arange:int32:2210 -b 1:out:int32:2210 -b 2:out:int32:2210 --bytes 3=int32:{height},{width} --grid 136,24 --threadgroup {group}
// expect buffer 1: f(i) for i in 2210: 0 if i >= width * height else -1 - i if E(i) else S(i)
// expect buffer 2: f(i) for i in 2210: 0 if i >= width * height else 7 if E(i) else in_(i - 1) + in_(i) * 10 + in_(i + 1)
#include <metal_stdlib>
using namespace metal;

kernel void border(device const int *in [[buffer(0)]], device int *sum [[buffer(1)]], device int *row [[buffer(2)]],
                   constant int *size [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
    const int H = size[0], W = size[1], r = at.y, c = at.x, i = r * W + c;
    if (r >= H || c >= W) return;
    row[i] = 7;
    if (r == 0 || c == 0 || r >= H - 1 || c >= W - 1) {
        sum[i] = -1 - in[i];
        return;
    }
    int all = 0, middle = 0;
    for (int y = -1; y <= 1; y++)
        for (int x = -1; x <= 1; x++) {
            const int k = in[i + y * W + x], v = k * k % 101;
            all += v;
            if (y == 0) middle += x == 0 ? 10 * v : v;
        }
    sum[i] = all;
    row[i] = middle;
}
