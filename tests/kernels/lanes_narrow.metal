// Threads that compute with bytes only: as many lanes as bytes fill a register, in whole groups, groups at the edge, and lanes that are
// off. Pairs of bytes are stored together, from an address that is not aligned, up to the last element.
// for group: 64 250 256
// run: -b 0=arange:uint8:1000 -b 1=arange:int8:1000 -b 2:out:uint8:1000 -b 3:out:int8:1000 -b 4:out:uint8:2001 -b 5:out:uint8:1000 --bytes 6=uint32:900 --bytes 7=uint8:200 --grid 1000 --threadgroup {group}
// let signed = lambda x: (x + 128) % 256 - 128
// expect buffer 2: f(i) for i in 1000: (((i % 256 - 32) % 256 if 97 <= i % 256 <= 122 else i % 256) ^ 5 if i < 900 else 0)
// expect buffer 3: f(i) for i in 1000: (max(signed(i), -100) >> 2 if i < 900 else 0)
// expect buffer 4: f(i) for i in 2001: (0 if i == 0 or i > 1800 else ((i - 1) // 2 % 256 >> 4 if i % 2 else (i - 1) // 2 % 16))
// expect buffer 5: f(i) for i in 1000: (min(i % 256, 200) if i < 900 else 0)
#include <metal_stdlib>
using namespace metal;

kernel void narrow(device const uchar *x [[buffer(0)]], device const char *y [[buffer(1)]], device uchar *upper [[buffer(2)]],
                   device char *shifted [[buffer(3)]], device uchar *digits [[buffer(4)]], device uchar *least [[buffer(5)]],
                   constant uint &n [[buffer(6)]], constant uchar &most [[buffer(7)]], uint i [[thread_position_in_grid]]) {
    if (i >= n) return;
    uchar a = x[i];
    char b = y[i];
    upper[i] = uchar(a >= 'a' && a <= 'z' ? a - 32 : a) ^ 5;
    shifted[i] = max(b, char(-100)) >> 2;
    digits[1 + 2 * i] = a >> 4;
    digits[2 + 2 * i] = a & 15;
    least[i] = min(a, most);
}
