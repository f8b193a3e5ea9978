// Lanes that follow one another store several elements each, of all narrow types and words, without gaps, to an address that no vector is
// aligned to, up to the last element of the arrays; groups at the edge, lanes that are off, numbers that are no powers of two, indexes
// that are multiples of powers of two, which wrap around in no gang, and loads of four words.
// run: -b 0=arange:float32:4001 -b 1:out:float32:3997 -b 2:out:int32:4995 -b 3:out:float16:3997 -b 4:out:uint16:1999 -b 5:out:uint8:2997 -b 6:out:float32:6993 -b 7:out:uint32:7992 -b 8:out:float32:15984 -b 9:out:uint8:3996 --bytes 10=uint32:700 --grid 999 --threadgroup 128
// let first = lambda i, k: 4 * i + k + 1
// expect buffer 1: f(i) for i in 3997: 0 if i == 0 else first((i - 1) // 4, (i - 1) % 4) * ((i - 1) % 4 - 1)
// expect buffer 2: f(i) for i in 4995: i // 5 * 7 - i % 5
// expect buffer 3: f(i) for i in 3997: 0 if i == 0 else (i - 1) // 4 + (i - 1) % 4
// expect buffer 4: f(i) for i in 1999: 0 if i == 0 else ((i - 1) // 2 * 99 + (i - 1) % 2) % 65536
// expect buffer 5: f(i) for i in 2997: (i // 3 * (i % 3 + 1)) % 256
// expect buffer 6: f(i) for i in 6993: (i // 7) * (i % 7) if i // 7 % 3 and i // 7 < 700 else 0
// expect buffer 7: f(i) for i in 7992: i // 8 * 3 + i % 8
// expect buffer 8: f(i) for i in 15984: i // 16 - i % 16
// expect buffer 9: f(i) for i in 3996: (i // 4 * 5 + i % 4) % 256
#include <metal_stdlib>
using namespace metal;

struct floats4 { float x[4]; };

kernel void dense(device const float *in [[buffer(0)]], device float *f4 [[buffer(1)]], device int *i5 [[buffer(2)]],
                  device half *h4 [[buffer(3)]], device ushort *s2 [[buffer(4)]], device uchar *b3 [[buffer(5)]],
                  device float *some [[buffer(6)]], device uint *u8 [[buffer(7)]], device float *f16 [[buffer(8)]],
                  device uchar *b4 [[buffer(9)]], constant uint &n [[buffer(10)]], uint i [[thread_position_in_grid]]) {
    const floats4 a = ((device const floats4 *)(in + 1))[i];
    for (uint k = 0; k < 4; k++) f4[4 * i + k + 1] = a.x[k] * (float(k) - 1);
    for (uint k = 0; k < 5; k++) i5[5 * i + k] = int(i * 7 - k);
    for (uint k = 0; k < 4; k++) h4[4 * i + k + 1] = half(i + k);
    for (uint k = 0; k < 2; k++) s2[2 * i + k + 1] = ushort(i * 99 + k);
    for (uint k = 0; k < 3; k++) b3[3 * i + k] = uchar(i * (k + 1));
    for (uint k = 0; k < 8; k++) u8[8 * i + k] = i * 3 + k;
    for (uint k = 0; k < 16; k++) f16[16 * i + k] = float(i) - float(k);
    for (uint k = 0; k < 4; k++) b4[4 * i + k] = uchar(i * 5 + k);
    if (i < n && i % 3)
        for (uint k = 0; k < 7; k++) some[7 * i + k] = float(i * k);
}
