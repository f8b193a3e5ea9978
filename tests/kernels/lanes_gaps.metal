// Narrow loads with gaps between them, from rows whose length only the run can tell.
// for group: 32 50
// run: -b 0=arange:uint8:100x23 -b 1=arange:uint16:100x23 -b 2:out:int32:100x4 -b 3:out:int32:100x4 -b 4:out:int32:100x3 -b 5:out:uint8:100x23 --bytes 6=uint32:23 --grid 100 --threadgroup {group}
// let byte = lambda r, k: (r * 23 + k) % 256
// let word = lambda r, k: (r * 23 + k)
// expect buffer 2: f(i) for i in 400: byte(i // 4, 1) + 256 * byte(i // 4, 3 + 2 * (i % 4)) + (byte(i // 4, 22) << 16)
// expect buffer 3: f(i) for i in 400: word(i // 4, 2) + (word(i // 4, 4 + 3 * (i % 4)) << 13)
// expect buffer 4: f(i) for i in 300: -1 if i // 3 % 3 == 0 else byte(i // 3, 5) + 256 * byte(i // 3, 6 + i % 3) + (word(i // 3, 22) << 16)
// expect buffer 5: f(i) for i in 2300: [byte(i // 23, 9), 0, byte(i // 23, 9) ^ 255, 0, byte(i // 23, 10)][i % 23] if i % 23 < 5 else 0
#include <metal_stdlib>
using namespace metal;

kernel void gaps(device const uchar *bytes [[buffer(0)]], device const ushort *words [[buffer(1)]], device int *a [[buffer(2)]],
                 device int *b [[buffer(3)]], device int *c [[buffer(4)]], device uchar *own [[buffer(5)]], constant uint &length [[buffer(6)]],
                 uint i [[thread_position_in_grid]]) {
  device const uchar *row = bytes + i * length;
  device const ushort *wide = words + i * length;
  // Two windows of which the second begins in a gap, and a byte far away.
  a[4 * i] = row[1] + 256 * row[3] + (row[22] << 16);
  a[4 * i + 1] = row[1] + 256 * row[5] + (row[22] << 16);
  a[4 * i + 2] = row[1] + 256 * row[7] + (row[22] << 16);
  a[4 * i + 3] = row[1] + 256 * row[9] + (row[22] << 16);
  for (uint k = 0; k < 4; k++) b[4 * i + k] = wide[2] + (wide[4 + 3 * k] << 13);
  // Three neighbours and one before them, for some lanes; one word of which no neighbour is loaded.
  for (uint k = 0; k < 3; k++) c[3 * i + k] = -1;
  if (i % 3) {
    c[3 * i] = row[5] + 256 * row[6] + (wide[22] << 16);
    c[3 * i + 1] = row[5] + 256 * row[7] + (wide[22] << 16);
    c[3 * i + 2] = row[5] + 256 * row[8] + (wide[22] << 16);
  }
  // A store into the gap between two loads, and one to the first load's element before the second is done.
  device uchar *mine = own + i * length;
  mine[0] = row[9];
  mine[4] = row[10];
  const uchar first = mine[0];
  mine[2] = first ^ 255;
}
