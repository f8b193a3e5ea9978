// Divisors, limits of loops and strides that lie in a structure, in a vector and in device memory. tests/CMakeLists.txt also runs it
// with code for these values. A float in the structure stays a load; a division by 0 gives 0, and a remainder the number.
// for pair: 6,9 0,0
// run: sums -b 0=arange:float32:97 -b 1:out:float32:200 --bytes 2=uint8:9,0,0,0,2,0,5,1,0,0,0,63,0,0,0,0,13,0,0,0,0,0,0,0 --bytes 3=uint32:{pair} --bytes 4=int64:-7,3 --grid 200 --threadgroup 64
// let total = lambda i: sum((i // 5 + 13 * k) % 97 for k in (0, 2, 4, 6, 8)) * 0.5
// let quotient = lambda i: -((i - 40) // 7) if i >= 40 else (40 - i) // 7
// let rest = lambda i: (i % pair[0] if pair[0] else i) + (i // pair[1] if pair[1] else 0)
// expect buffer 1: f(i) for i in 200: total(i) + quotient(i) * 1000 + rest(i) + 0.5
#include <metal_stdlib>
using namespace metal;

struct Sizes {
  int rows;
  short step;
  uchar divisor;
  bool flip;
  float scale;
  ulong stride;
};

kernel void sums(device const float *x [[buffer(0)]], device float *out [[buffer(1)]], constant Sizes &s [[buffer(2)]],
                 constant uint2 &pair [[buffer(3)]], device const long *far [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  float sum = 0;
  for (int k = 0; k < s.rows; k += s.step) sum += x[(i / s.divisor + k * s.stride) % 97] * s.scale;
  int quotient = (int(i) - 40) / int(far[0]);
  uint rest = i % pair.x + i / pair.y;
  out[i] = sum + quotient * 1000 + rest + (s.flip ? 0.5f : 0.0f);
}
