// Sums over ranges that each thread loads: empty ones, some that end before they begin, and those of a 32-bit and an unsigned counter.
// for group: 32 50
// run: -b 0=arange:float32:4000 -b 1=arange:int32:101 -b 2:out:float32:100 -b 3:out:float32:100 -b 4:out:int32:100 --grid 100 --threadgroup {group}
// let begin = lambda i: i * i % 97 * 30
// let end = lambda i: i * 7 % 50 * 60
// expect buffer 2: f(i) for i in 100: sum(k % 16 for k in range(begin(i), end(i)))
// expect buffer 3: f(i) for i in 100: sum(k % 16 for k in range(begin(i), begin(i) + i % 5))
// expect buffer 4: f(i) for i in 100: max(end(i), begin(i)) if i % 2 else begin(i)
#include <metal_stdlib>
using namespace metal;

kernel void ranges(device const float *x [[buffer(0)]], device const int *numbers [[buffer(1)]], device float *a [[buffer(2)]],
                   device float *b [[buffer(3)]], device int *c [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  const int n = numbers[i], begin = n * n % 97 * 30, end = n * 7 % 50 * 60;
  float sum = 0;
  for (int k = begin; k < end; k++) sum += float(int(x[k]) % 16);
  a[i] = sum;
  sum = 0;
  for (uint k = uint(begin); k < uint(begin + n % 5); k++) sum += float(int(x[k]) % 16);
  b[i] = sum;
  int last = begin;
  if (n % 2)
    for (int k = begin; k < end; k++) last = int(x[k]) + 1;
  c[i] = last;
}
