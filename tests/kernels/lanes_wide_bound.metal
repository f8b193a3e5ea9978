// Indexes of 32 bits in loops with bounds of 64 bits: one that is small, and one beyond 2^32, where the loop ends for another reason.
// for group: 32 96
// run: -b 0=arange:float32:1000 -b 1:out:float32:1000 -b 2:out:uint32:200 --bytes 3=uint64:999 --bytes 4=uint64:4294967300 --grid 200 --threadgroup {group}
// expect buffer 1: f(i) for i in 1000: 2 * i + 1 if i < 999 else 0
// expect buffer 2: f(i) for i in 200: 10 - i % 7
#include <metal_stdlib>
using namespace metal;

kernel void bounds(device const float *x [[buffer(0)]], device float *out [[buffer(1)]], device uint *rounds [[buffer(2)]],
                   constant ulong &count [[buffer(3)]], constant ulong &far [[buffer(4)]], uint thread_index [[thread_position_in_grid]],
                   uint threads [[threads_per_grid]]) {
    for (uint i = thread_index; i < count; i += threads) out[i] = 2 * x[i] + 1;
    uint taken = 0;
    for (uint i = thread_index % 7; i < far; i += 1) {
        if (x[i] == 10) break;
        taken++;
    }
    rounds[thread_index] = taken;
}
