// Atomic operations with unused results, on addresses that neighbouring lanes share: in runs of many lengths, with some lanes off.
// for run: 1 2 3 5 16 40 300
// let n = 500
// let by = lambda k: [j for j in range(n) if j % 7 != 3 and j // int(run) == k]
// run: -b 0:out:float32:500 -b 1:out:int32:500 -b 2:out:uint32:500 -b 3:out:int32:500 -b 4:out:uint32:500 --bytes 5=uint32:{run} --grid 500 --threadgroup 100
// expect buffer 0: f(i) for i in 500: sum(j % 16 for j in by(i))
// expect buffer 1: f(i) for i in 500: -sum(j * 3 - 700 for j in by(i))
// expect buffer 2: f(i) for i in 500: sum(1 << b for b in range(5) if any(j >> b & 1 for j in by(i)))
// expect buffer 3: f(i) for i in 500: max([0] + [j * 37 % 101 - 50 for j in by(i)])
// expect buffer 4: f(i) for i in 500: sum(1 << b for b in range(9) if sum(j >> b & 1 for j in by(i)) % 2)
#include <metal_stdlib>
using namespace metal;

kernel void runs(device atomic_float *sum [[buffer(0)]], device atomic_int *less [[buffer(1)]], device atomic_uint *bits [[buffer(2)]],
                 device atomic_int *most [[buffer(3)]], device atomic_uint *odd [[buffer(4)]], constant uint &run [[buffer(5)]],
                 uint i [[thread_position_in_grid]]) {
    if (i % 7 == 3) return;
    uint k = i / run;
    atomic_fetch_add_explicit(&sum[k], float(i % 16), memory_order_relaxed);
    atomic_fetch_sub_explicit(&less[k], int(i) * 3 - 700, memory_order_relaxed);
    atomic_fetch_or_explicit(&bits[k], i & 31, memory_order_relaxed);
    atomic_fetch_max_explicit(&most[k], int(i * 37 % 101) - 50, memory_order_relaxed);
    atomic_fetch_xor_explicit(&odd[k], i, memory_order_relaxed);
}
