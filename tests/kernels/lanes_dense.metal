// Lanes that follow one another load two or four narrow elements each, of all types, from an address that no vector is aligned to, up to
// the last element of the arrays; groups at the edge, lanes that are off, and rows of which each simdgroup has its own.
// run: -b 0=arange:float16:2049 -b 1=arange:float16:4097 -b 2=arange:uint16:2049 -b 3=arange:int16:4097 -b 4=arange:uint8:4097 -b 5=arange:int8:4097 -b 6:out:float32:999x6 -b 7:out:float32:999 -b 8:out:float32:999 --bytes 9=uint32:700 --grid 999 --threadgroup 128
// let half = lambda x: x if x <= 2048 else 2 * round(x / 2)
// let signed = lambda x: (x + 128) % 256 - 128
// expect buffer 6: f(i) for i in 5994: [half(2 * (i // 6) + 1) - half(2 * (i // 6) + 2) * 3, sum(half(4 * (i // 6) + k + 1) * (k + 1) for k in range(4)), (2 * (i // 6) + 1) % 65536 + 3 * (2 * (i // 6) + 2), sum((4 * (i // 6) + k + 1) * (k + 1) for k in range(4)), sum((4 * (i // 6) + k + 1) % 256 * (k + 1) for k in range(4)), sum(signed(4 * (i // 6) + k + 1) * (k + 1) for k in range(4))][i % 6]
// expect buffer 7: f(i) for i in 999: sum((4 * i + k + 1) % 256 * (k + 1) for k in range(4)) if i % 3 and i < 700 else 0
// expect buffer 8: f(i) for i in 999: sum(half(4 * ((r + i // 32) * 32 % 992 + i % 32) + k + 1) * (k - 1) for r in range(5) for k in range(4))
#include <metal_stdlib>
using namespace metal;

struct halves2 { half x, y; };
struct halves4 { half x, y, z, w; };
struct shorts2 { ushort x, y; };
struct shorts4 { short x, y, z, w; };
struct bytes4 { uchar x, y, z, w; };
struct chars4 { char x, y, z, w; };

kernel void dense(device const half *h2 [[buffer(0)]], device const half *h4 [[buffer(1)]], device const ushort *s2 [[buffer(2)]],
                  device const short *s4 [[buffer(3)]], device const uchar *b4 [[buffer(4)]], device const char *c4 [[buffer(5)]],
                  device float *out [[buffer(6)]], device float *some [[buffer(7)]], device float *rows [[buffer(8)]],
                  constant uint &n [[buffer(9)]], uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    float sum = 0;
    for (uint r = 0; r < 5; r++) {
        halves4 d = ((device const halves4 *)(h4 + 1))[(r + i / 32) * 32 % 992 + lane];
        sum += float(d.z) + 2 * float(d.w) - float(d.x) + 0 * float(d.y);
    }
    rows[i] = sum;
    halves2 a = ((device const halves2 *)(h2 + 1))[i];
    halves4 b = ((device const halves4 *)(h4 + 1))[i];
    shorts2 c = ((device const shorts2 *)(s2 + 1))[i];
    shorts4 d = ((device const shorts4 *)(s4 + 1))[i];
    bytes4 e = ((device const bytes4 *)(b4 + 1))[i];
    chars4 f = ((device const chars4 *)(c4 + 1))[i];
    out[6 * i] = float(a.x) - float(a.y) * 3;
    out[6 * i + 1] = float(b.x) + 2 * float(b.y) + 3 * float(b.z) + 4 * float(b.w);
    out[6 * i + 2] = c.x + 3 * c.y;
    out[6 * i + 3] = d.x + 2 * d.y + 3 * d.z + 4 * d.w;
    out[6 * i + 4] = e.x + 2 * e.y + 3 * e.z + 4 * e.w;
    out[6 * i + 5] = f.x + 2 * f.y + 3 * f.z + 4 * f.w;
    if (i < n && i % 3) {
        bytes4 g = ((device const bytes4 *)(b4 + 1))[i];
        some[i] = g.x + 2 * g.y + 3 * g.z + 4 * g.w;
    }
}
