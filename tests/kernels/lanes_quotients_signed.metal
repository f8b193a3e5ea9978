// Signed positions divided by sizes: neighbours mostly share the quotient, also where numbers or sizes are negative.
// for size: 3 17 64 100 256 -3 -64 -100
// for group: 64 96 256
// for before: 0 1000
// let P = lambda i: i - before
// let Q = lambda i: abs(P(i)) // abs(size) * (1 if P(i) * size >= 0 else -1)
// let R = lambda i: P(i) - Q(i) * size
// run: -b 0=arange:int32:3001 -b 1:out:int32:3000 --bytes 2=int32:{size},{before} --grid 3000 --threadgroup {group}
// expect buffer 1: f(i) for i in 3000: (1500 + Q(i)) * 1000 + R(i)
#include <metal_stdlib>
using namespace metal;

struct sizes { int size, before; };

kernel void quotients(device const int *in [[buffer(0)]], device int *split [[buffer(1)]], constant sizes &s [[buffer(2)]],
                      uint i [[thread_position_in_grid]]) {
    const int at = int(i) - s.before;
    split[i] = in[1500 + at / s.size] * 1000 + at % s.size;
}
