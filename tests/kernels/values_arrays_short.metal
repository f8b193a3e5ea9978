// Arrays of sizes that have fewer elements than code for given values looks at: nothing behind their end is read.
// tests/CMakeLists.txt also runs it with code for these values.
// for sizes: 7,20 20,0 0,6
// run: digits -b 0:out:uint32:300 --bytes 1=uint64:{sizes} --bytes 2=int16:{sizes} --bytes 3=uint32:2 --grid 300 --threadgroup 64
// let last = lambda i: i // sizes[1] if sizes[1] else 0
// let rest = lambda i, n: i % n if n else i
// expect buffer 0: f(i) for i in 300: rest(i, sizes[1]) + rest(last(i), sizes[0]) * 1000 + (i // sizes[0] if sizes[0] else 0)
#include <metal_stdlib>
using namespace metal;

kernel void digits(device uint *out [[buffer(0)]], constant ulong *sizes [[buffer(1)]], constant short *narrow [[buffer(2)]],
                   constant uint &rank [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  uint left = i, sum = 0, scale = 1, halves = i;
  for (int d = int(rank) - 1; d >= 0; d--) {
    sum += left % sizes[d] * scale;
    left /= sizes[d];
    scale *= 1000;
  }
  for (uint d = 0; d < rank / 2; d++) halves /= uint(narrow[d]);
  out[i] = sum + halves;
}
