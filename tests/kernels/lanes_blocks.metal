// Sums over neighbouring elements of each thread, whose rows or blocks are a constant number of elements apart: of bytes, halves and
// floats, near enough for shuffles of a few vectors and farther away; four threads to a block; the last threads may have none.
// for type: char half float
// for layout: 8 18 34 64
// for count: 2 4 8 16
// run: {type}_{layout}_{count} -b 0:out:float32:128 --bytes 1=uint32:70 --grid 64 --threadgroup 64
// let value = lambda at: (at * 7 + at // 3) % 23 - 11
// let first = lambda t: t // 4 * layout + t % 4 * 4 if layout in (18, 34) else t * layout
// let total = lambda t, n: sum((i + 1) * value(first(t) + i) for i in range(n))
// expect buffer 0: f(i) for i in 128: total(i, count) if i < 70 else 0
#include <metal_stdlib>
using namespace metal;

template <typename T, uint layout, uint count>
kernel void blocks(device float *out [[buffer(0)]], constant uint &n [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup T data[128 * 64 + 16];
    for (uint i = t; i < 128 * 64 + 16; i += 64) data[i] = T(int((i * 7 + i / 3) % 23) - 11);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint row = t; row < n; row += 64) {
        threadgroup const T *mine = data + (layout == 18 || layout == 34 ? row / 4 * layout + row % 4 * 4 : row * layout);
        float sum = 0;
        for (uint i = 0; i < count; i++) sum += (i + 1) * float(mine[i]);
        out[row] = sum;
    }
}

#define OF(type, layout, n) \
    template [[host_name(#type "_" #layout "_" #n)]] kernel decltype(blocks<type, layout, n>) blocks<type, layout, n>;
#define COUNTS(type, layout) OF(type, layout, 2) OF(type, layout, 4) OF(type, layout, 8) OF(type, layout, 16)
#define ALL(type) COUNTS(type, 8) COUNTS(type, 18) COUNTS(type, 34) COUNTS(type, 64)
ALL(char) ALL(half)
COUNTS(float, 8) COUNTS(float, 18) COUNTS(float, 34)
OF(float, 64, 2) OF(float, 64, 4) OF(float, 64, 8) OF(float, 64, 16)
