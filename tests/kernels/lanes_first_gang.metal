// Blocks that only the first threads of a group enter, in groups of one gang and of many: a tree, one thread, and an else.
// for threads: 32 96 256 352 512 1024
// run: -b 0:out:float32:3072 -b 1:out:int16:3072 --groups 3 --threadgroup {threads}
// expect buffer 0: f(i) for i in 3072: (lambda t, n: 0 if n * 3 <= i else (lambda v: v + 7 if t < 11 else v - 1)(1000 if t == 5 else sum(3 * (t + k) + 1 for k in range(0, 32, 16 if t > 7 else 8 if t > 3 else 4 if t > 1 else 2 if t else 1)) if t < 16 else 3 * t + 1))(i % threads, threads)
// expect buffer 1: f(i) for i in 3072: (lambda t, n: 0 if n * 3 <= i else 9 if t < 4 else 5 if t < 40 else 1)(i % threads, threads)
#include <metal_stdlib>
using namespace metal;

kernel void first(device float *out [[buffer(0)]], device short *narrow [[buffer(1)]], uint t [[thread_index_in_threadgroup]],
                  uint group [[threadgroup_position_in_grid]], uint threads [[threads_per_threadgroup]]) {
    threadgroup float part[1024];
    threadgroup short marks[1024];
    part[t] = 3 * t + 1;
    marks[t] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint half_way = 16; half_way > 0; half_way /= 2) {
        if (t < half_way) part[t] += part[t + half_way];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    if (t == 5) part[t] = 1000;
    if (t < 11) {
        part[t] += 7;
    } else {
        part[t] -= 1;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < 40) {
        marks[t] = 5;
        if (t < 4) marks[t] = 9;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[group * threads + t] = part[t];
    narrow[group * threads + t] = marks[t];
}
