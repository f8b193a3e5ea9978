// Bytes and 16-bit numbers at constant strides, in lanes that are on or off: with 256 and 128 bits, no vector of them has a
// mask. What lanes that are off would write stays as it is.
// let byte = lambda j: (j // 2 >> 8 * (j % 2)) & 255
// let on = lambda i: i < 90 and i % skip != 3
// for group: 45 64
// for skip: 7 1000
// run: -b 0=arange:uint16:600 -b 1=arange:uint16:600 -b 2:out:uint8:300 -b 3:out:uint16:300 --bytes 4=uint32:90 --bytes 5=uint32:{skip} --grid 100 --threadgroup {group}
// expect buffer 2: f(i) for i in 300: (byte(i + 1) if i % 3 == 0 else byte(2 * i - 2) if i % 3 == 1 else byte(600 - 2 * (i // 3))) if on(i // 3) else 0
// expect buffer 3: f(i) for i in 300: i // 3 * 5 if i % 3 == 2 and on(i // 3) else i + 2 if i % 3 == 0 and on(i // 3) else 0
#include <metal_stdlib>
using namespace metal;

kernel void pixels(device const uchar *bytes, device const ushort *shorts, device uchar *out, device ushort *wide, constant uint &n,
                   constant uint &skip, uint i [[thread_position_in_grid]]) {
  if (i >= n || i % skip == 3) return;
  out[3 * i] = bytes[3 * i + 1];
  out[3 * i + 1] = bytes[6 * i];
  out[3 * i + 2] = bytes[600 - 2 * i];
  wide[3 * i] = shorts[3 * i + 2];
  wide[3 * i + 2] = shorts[5 * i];
}
