// Groups of many threads share few rows, so that whole vectors of lanes are off where rows are gathered and scattered: each row is
// added to those below it.
// for rows: 1 5 16 33 64 100
// for group: 64 256
// run: -b 0:out:uint32:700 -b 1=ones:uint16:1024 --bytes 2=uint32:{rows},7 --groups 1 --threadgroup {group}
// expect buffer 0: f(i) for i in 700: 2 ** (i // 7) * (i % 7 + 1) % 2 ** 32 if i // 7 < rows else 0
#include <metal_stdlib>
using namespace metal;

struct sizes { uint rows, columns; };

kernel void few_rows(device uint *a [[buffer(0)]], device const ushort *ones [[buffer(1)]], constant sizes &s [[buffer(2)]],
                     uint me [[thread_position_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
    const uint columns = s.columns;
    for (uint i = me; i < s.rows; i += threads)
        for (uint j = 0; j < columns; j++) a[i * columns + j] = j + ones[i];
    for (uint k = 0; k < s.rows; k++) {
        threadgroup_barrier(mem_flags::mem_device);
        for (uint i = k + ones[k] + me; i < s.rows; i += threads)
            for (uint j = 0; j < columns; j++) a[i * columns + j] += a[k * columns + j];
    }
}
