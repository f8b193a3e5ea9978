// Additions to neighbouring floats, four after another and others between, at addresses that are multiples of 16 and at
// ones that are not; with a load of what was added to in between.
// run: k -b 0=zeros:float32:80 -b 1:out:float32:8 -b 2:out:float32:80 --grid 8 --threadgroup 8
// expect buffer 1: f(i) for i in 8: 10 * i + 1
// expect buffer 2: f(i) for i in 80: 0 if i % 10 == 9 else (i % 10 + 1) * (2 if 4 <= i % 10 < 8 else 1)
#include <metal_stdlib>
using namespace metal;

kernel void k(device const float *zeros [[buffer(0)]], device float *out [[buffer(1)]],
              device float *sums [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    device atomic<float> *to = (device atomic<float> *)(sums + 10 * i);
    for (int j = 0; j < 10; j++) sums[10 * i + j] = zeros[10 * i + j];
    atomic_fetch_add_explicit(to, 1.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 1, 2.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 2, 3.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 3, 4.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 4, 5.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 5, 6.0f, memory_order_relaxed);
    const float seen = atomic_load_explicit(to, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 6, 7.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 7, 8.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 4, 5.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 5, 6.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 6, 7.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 7, 8.0f, memory_order_relaxed);
    atomic_fetch_add_explicit(to + 8, 9.0f, memory_order_relaxed);
    out[i] = seen + 10 * i;
}
