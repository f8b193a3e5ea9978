// Remainders that addresses are computed from, without a quotient: gangs whose lanes share the quotient load neighbours.
// for size: 1 3 17 64 100 1500 -3 -64 -100
// for group: 64 96 256
// for before: 0 1000
// let P = lambda i: i - before
// let R = lambda i: P(i) - abs(P(i)) // abs(size) * (1 if P(i) * size >= 0 else -1) * size
// run: -b 0=arange:int32:3001 -b 1:out:int32:3000 -b 2:out:int32:3000 --bytes 3=int32:{size},{before} --grid 3000 --threadgroup {group}
// expect buffer 1: f(i) for i in 3000: 1500 + R(i)
// expect buffer 2: f(i) for i in 3000: i % abs(size)
#include <metal_stdlib>
using namespace metal;

struct sizes { int size, before; };

kernel void remainders(device const int *in [[buffer(0)]], device int *out [[buffer(1)]], device int *plain [[buffer(2)]],
                       constant sizes &s [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    const int before = in[1500 + (int(i) - s.before) % s.size], at = in[i % uint(abs(s.size))];
    out[i] = before;
    plain[i] = at;
}
