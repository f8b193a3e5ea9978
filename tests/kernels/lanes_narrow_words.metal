// Threads that copy and compute with bytes and 16-bit numbers only, in gangs of several simdgroups.
// for group: 64 96 256
// run: -b 0=arange:uint16:768 -b 1=arange:float16:768 -b 2=arange:uint8:768 -b 3:out:uint16:768 -b 4:out:float16:768 -b 5:out:int16:768 --grid 768 --threadgroup {group}
// expect buffer 3: f(i) for i in 768: (i * 257 % 65536 ^ i % 256)
// expect buffer 4: f(i) for i in 768: i
// expect buffer 5: f(i) for i in 768: (-(i % 256) if i % 256 > 100 else i)
#include <metal_stdlib>
using namespace metal;

kernel void words(device const ushort *x [[buffer(0)]], device const half *h [[buffer(1)]], device const uchar *b [[buffer(2)]],
                  device ushort *mixed [[buffer(3)]], device half *copy [[buffer(4)]], device short *chosen [[buffer(5)]],
                  uint i [[thread_position_in_grid]]) {
    ushort w = x[i];
    uchar byte = b[i];
    mixed[i] = ushort(w + (w << 8)) ^ byte;
    copy[i] = h[i];
    chosen[i] = byte > 100 ? short(-short(byte)) : short(w);
}
