// A thread computes an element of a product after several guards. Gangs of one or more rows run without masks if all of
// their lanes pass the guards. Gangs that a guard cuts, by rows, columns or planes, run with masks.
// for group: 16,4 32,4,1 64,2 96,1 4,4,4
// run: -b 0=arange:uint8:2x24x5 -b 1=arange:uint8:2x5x192 -b 2:out:float32:2x24x192 --bytes 3=uint32:2,21,186,5 --grid 192,24,4 --threadgroup {group}
// expect buffer 2: f(i) for i in 9216: sum((i // 192 * 5 + k) % 256 * ((i // 4608 * 960 + k * 192 + i % 192) % 256) for k in range(5)) if i // 192 % 24 < 21 and i % 192 < 186 else 0
#include <metal_stdlib>
using namespace metal;

struct sizes { uint planes, rows, columns, inner; };

kernel void product(device const uchar *a [[buffer(0)]], device const uchar *b [[buffer(1)]], device float *out [[buffer(2)]],
                    constant sizes &p [[buffer(3)]], uint3 at [[thread_position_in_grid]]) {
    if (at.z >= p.planes || at.y >= p.rows || at.x >= p.columns) return;
    device const uchar *row = a + (at.z * 24 + at.y) * p.inner;
    float sum = 0;
    for (uint k = 0; k < p.inner; k++) sum += float(row[k]) * float(b[(at.z * p.inner + k) * 192 + at.x]);
    out[(at.z * 24 + at.y) * 192 + at.x] = sum;
}
