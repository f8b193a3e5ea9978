// Positions behind a guard, divided by sizes: neighbours mostly share the quotient, or none do, or gangs lie across an edge. Guards of
// several dimensions, whose bounds are loaded after the first one has been passed.
// for size: 1 3 17 64 100 256
// for group: 64 96 256
// run: -b 0=arange:uint32:3000 -b 1:out:uint32:3000 -b 2:out:uint32:3000 -b 3:out:uint32:3000 --bytes 4=uint32:{size},5,2900 --grid 3000 --threadgroup {group}
// expect buffer 1: f(i) for i in 3000: i // size * 10000 + i % size if i < 2900 else 0
// expect buffer 2: f(i) for i in 3000: i // size % 5 + 7 * (i // (5 * size)) if i < 2900 else 0
// expect buffer 3: f(i) for i in 3000: 3000 + i if i < 2900 and i % 5 * size + i // 5 < 2900 else 0
#include <metal_stdlib>
using namespace metal;

struct sizes { uint size, rows, n; };

kernel void quotients(device const uint *in [[buffer(0)]], device uint *split [[buffer(1)]], device uint *parts [[buffer(2)]],
                      device uint *turned [[buffer(3)]], constant sizes &s [[buffer(4)]], uint i [[thread_position_in_grid]]) {
    if (i >= s.n) return;
    const uint x = i % s.size, y = i / s.size;
    split[i] = in[y] * 10000 + in[x];
    parts[i] = y % s.rows + 7 * in[i / (s.size * s.rows)];
    const uint from = i % 5 * s.size + i / 5;
    if (from < s.n) turned[i] = 3000 + in[i];
}
