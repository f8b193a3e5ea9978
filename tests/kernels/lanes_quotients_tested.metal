// A norm of groups of channels: quotients of a position, and quotients and remainders of these, behind tested loads.
// for pixels: 1 30 64 100 784
// for group: 32 100 256
// let C = lambda i: i // pixels % 6
// let N = lambda i: i // (pixels * 6)
// run: -b 0=arange:int32:9408 -b 1=arange:int32:30000 -b 2=arange:int32:12 -b 3:out:int32:9408 --bytes 4=int32:6,{pixels},2 --grid 9408 --threadgroup {group}
// expect buffer 3: f(i) for i in 9408: (i - (N(i) * 2 + C(i) // 3)) * C(i) + C(i) + 6
#include <metal_stdlib>
using namespace metal;

kernel void norm(device const int *x [[buffer(0)]], device const int *mean [[buffer(1)]], device const int *weight [[buffer(2)]],
                 device int *y [[buffer(3)]], constant int *size [[buffer(4)]], uint i [[thread_position_in_grid]]) {
    const int channels = size[0], pixels = size[1], groups = size[2], v = x[i];
    const int c = int(i) / pixels % channels, n = int(i) / (pixels * channels), g = c / (channels / groups);
    y[i] = (v - mean[n * groups + g]) * weight[c] + weight[channels + c];
}
