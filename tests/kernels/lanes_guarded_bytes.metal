// Bytes, 16-bit words and pixels of three bytes after a guard: gangs inside run without masks, those at an edge with
// masks, and lanes beyond it access nothing.
// for n: 1 255 256 257 1000 1024
// for group: 32 96 256
// run: -b 0=arange:uint8:3072 -b 1:out:uint8:1030 -b 2=arange:int16:2048 -b 3:out:int16:2060 -b 4:out:uint16:3090 --bytes 5=uint32:{n} --grid 1027 --threadgroup {group}
// expect buffer 1: f(i) for i in 1030: (3 * i % 256 * 77 + (3 * i + 1) % 256 * 150 + (3 * i + 2) % 256 * 29) // 256 if i < n else 0
// expect buffer 3: f(i) for i in 2060: 2 * (i ^ 1) - i % 2 if i < 2 * n else 0
// expect buffer 4: f(i) for i in 3090: i // 3 + i % 3 * 1000 if i < 3 * n else 0
#include <metal_stdlib>
using namespace metal;

kernel void pixels(device const uchar *rgb [[buffer(0)]], device uchar *grey [[buffer(1)]], device const short2 *sound [[buffer(2)]],
                   device short2 *turned [[buffer(3)]], device packed_ushort3 *words [[buffer(4)]], constant uint &n [[buffer(5)]],
                   uint i [[thread_position_in_grid]]) {
    if (i >= n) return;
    grey[i] = (rgb[3 * i] * 77 + rgb[3 * i + 1] * 150 + rgb[3 * i + 2] * 29) >> 8;
    turned[i] = short2(sound[i].y * 2, sound[i].x * 2 - 1);
    words[i] = ushort3(i, i + 1000, i + 2000);
}
