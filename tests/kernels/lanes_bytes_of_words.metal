// Components of vectors of four bytes, and bytes at a stride of four from an odd address, the last of which ends the array.
// for group: 32 50 64 256
// let B = lambda k: k % 256
// let S = lambda v: v - 256 if v > 127 else v
// run: -b 0=arange:uint8:2000 -b 1:out:int32:500 -b 2:out:int32:500 -b 3:out:float32:500 --grid 500 --threadgroup {group}
// expect buffer 1: f(i) for i in 500: 3 * B(4 * i) + 5 * B(4 * i + 1) - B(4 * i + 2)
// expect buffer 2: f(i) for i in 500: S(B(4 * i + 3)) * 2 + S(B(4 * i + 1))
// expect buffer 3: f(i) for i in 500: B(4 * i + 1) / 4
#include <metal_stdlib>
using namespace metal;

kernel void bytes_of_words(device const uchar4 *in [[buffer(0)]], device int *sum [[buffer(1)]], device int *other [[buffer(2)]],
                           device float *odd [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    const uchar4 v = in[i];
    sum[i] = 3 * v.x + 5 * v.y - v.z;
    device const char *bytes = (device const char *)in;
    other[i] = bytes[4 * i + 3] * 2 + bytes[4 * i + 1];
    odd[i] = ((device const uchar *)in + 1)[4 * i] * 0.25f;
}
