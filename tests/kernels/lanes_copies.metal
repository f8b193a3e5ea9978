// Structures copied whole, arrays filled with one byte, the same bits seen as other vectors.
// for group: 32 50
// run: -b 0=arange:int32:203x20 -b 1=arange:uint8:203x4 -b 2:out:int32:203x20 -b 3:out:uint32:203 -b 4:out:int32:203 -b 5:out:uint32:203x4 --grid 203 --threadgroup {group}
// expect buffer 2: f(i) for i in 4060: i
// let byte = lambda j: (j % 256) * (j % 256 + 3) % 256
// let word = lambda i: sum(byte(4 * i + k) << 8 * k for k in range(4))
// expect buffer 3: f(i) for i in 203: word(i)
// expect buffer 4: f(i) for i in 203: (99 * 17 + i * 7 % 100) * 1000 + 15 * (0x05050505 % 1000) % 1000
// expect buffer 5: f(i) for i in 812: (word(i // 4) * 7 >> 8 * (i % 4)) % 256 + 1 & 255
#include <metal_stdlib>
using namespace metal;

struct item {
  int values[20];
};

kernel void copies(device const item *in [[buffer(0)]], device const uchar4 *bytes [[buffer(1)]], device item *out [[buffer(2)]],
                   device uint *words [[buffer(3)]], device int *filled [[buffer(4)]], device uint4 *split [[buffer(5)]],
                   uint i [[thread_position_in_grid]]) {
  out[i] = in[i];
  uchar4 v = bytes[i];
  uint word = as_type<uint>(v * (v + uchar4(3)));
  words[i] = word;
  split[i] = uint4(as_type<uchar4>(word * 7) + uchar4(1));
  uchar small[100];
  for (int k = 0; k < 100; k++) small[k] = 17;
  small[i * 3 % 100] = i * 7 % 100;
  int sum = 0, wide[16] = {0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505, 0x05050505};
  for (int k = 0; k < 100; k++) sum += small[(k + i) % 100];
  wide[i % 16] = 0;
  uint total = 0;
  for (int k = 0; k < 16; k++) total += uint(wide[(k + i) % 16]) % 1000;
  filled[i] = sum * 1000 + int(total % 1000);
}
