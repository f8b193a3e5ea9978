// Groups of short rows, stored to an image whose width is an argument: a vector for each row, under masks and without,
// with gaps, in reverse; 32-, 16- and 8-bit elements.
// for group: 8,8 4,16 12,8 5,7 2,32
// for w: 40 37
// run: -b 0:out:int32:3000 -b 1:out:uint16:1500 -b 2:out:uint8:1500 -b 3:out:int32:1500 --bytes 4=uint32:{w},30 --grid 40,32 --threadgroup {group}
// let here = lambda i: i < w * 30
// expect buffer 0: f(i) for i in 3000: 1 + i // 2 if i % 2 == 0 and here(i // 2) else 0
// expect buffer 1: f(i) for i in 1500: 2 + i if here(i) else 0
// expect buffer 2: f(i) for i in 1500: i // w + i % w if here(i) and i % w % 3 != 1 else 0
// expect buffer 3: f(i) for i in 1500: i // w * w + (w - 1 - i % w) if here(i) else 0
#include <metal_stdlib>
using namespace metal;

kernel void rows(device int *apart, device ushort *shorts, device uchar *bytes, device int *back, constant uint2 &size, uint2 at [[thread_position_in_grid]]) {
  if (at.x >= size.x || at.y >= size.y) return;
  uint i = at.y * size.x + at.x;
  apart[2 * i] = 1 + i;
  shorts[i] = 2 + i;
  if (at.x % 3 != 1) bytes[i] = at.x + at.y;
  back[at.y * size.x + (size.x - 1 - at.x)] = i;
}
