// As lanes_edges_border, with the border's condition before all else, as in kernels that are launched for the exact size.
// for width: 1 2 33 70 130
// for height: 1 3 17
// for group: 32,8 16,4 64,1 10,3
// let E = lambda k: k % width == 0 or k % width == width - 1 or k < width or k >= width * (height - 1)
// run: -b 0=arange:int32:2210 -b 1:out:int32:2210 -b 2:out:uint8:2210 --bytes 3=int32:{height},{width} --grid {width},{height} --threadgroup {group}
// expect buffer 1: f(i) for i in 2210: 0 if i >= width * height else -1 - i if E(i) else 3 * i - width
// expect buffer 2: f(i) for i in 2210: 0 if i >= width * height else 9 if E(i) else i % 200
#include <metal_stdlib>
using namespace metal;

kernel void border(device const int *in [[buffer(0)]], device int *sum [[buffer(1)]], device uchar *bytes [[buffer(2)]],
                   constant int *size [[buffer(3)]], uint2 at [[thread_position_in_grid]]) {
    const int H = size[0], W = size[1], r = at.y, c = at.x;
    if (r == 0 || c == 0 || r >= H - 1 || c >= W - 1) {
        sum[r * W + c] = -1 - in[r * W + c];
        bytes[r * W + c] = 9;
        return;
    }
    device const int *p = in + (r - 1) * W + c;
    sum[r * W + c] = p[-1] + p[1] + p[W - 1] + p[W + 1] - 2 * p[0] + p[W] * 2 - p[0] - p[2 * W] + p[0];
    bytes[r * W + c] = p[W] % 200;
}
