// Threads of two elements, of which the last has one: gangs that are not at the edge run code without masks. Threads beyond the last
// element do nothing.
// for group: 32 96 256
// run: -b 0=arange:float32:1202 -b 1=arange:uint8:1202 -b 2:out:float32:1202 -b 3:out:uint8:1202 --bytes 4=uint32:1201 --grid 700 --threadgroup {group}
// expect buffer 2: f(i) for i in 1202: 2 * i + 1 if i < 1201 else 0
// expect buffer 3: f(i) for i in 1202: (i + 3) % 256 if i < 1201 else 0
#include <metal_stdlib>
using namespace metal;

kernel void pairs(device const float *x [[buffer(0)]], device const uchar *b [[buffer(1)]], device float *out [[buffer(2)]],
                  device uchar *bytes [[buffer(3)]], constant uint &n [[buffer(4)]],
                  uint index [[thread_position_in_grid]]) {
    index *= 2;
    if (index + 2 > n) {
        for (uint i = 0; index + i < n; i++) {
            out[index + i] = 2 * x[index + i] + 1;
            bytes[index + i] = b[index + i] + 3;
        }
    } else {
        for (uint i = 0; i < 2; i++) {
            out[index + i] = 2 * x[index + i] + 1;
            bytes[index + i] = b[index + i] + 3;
        }
    }
}
