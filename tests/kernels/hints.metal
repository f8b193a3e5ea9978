// Advice to the compiler and the processor changes no result, and keeps no kernel from vector code.
// run: -b 0=arange:float32:96 -b 1:out:float32:96 -b 2:out:float32:96 --grid 96 --threadgroup 32
// expect buffer 1: f(i) for i in 96: sum((i + j) % 96 for j in range(8)) * (1 if i % 3 else -1)
// expect buffer 2: f(i) for i in 96: 2 * i + i % 5
#include <metal_stdlib>
using namespace metal;

kernel void k(const device float *in [[buffer(0)]], device float *sums [[buffer(1)]],
              device float *out [[buffer(2)]], uint i [[thread_position_in_grid]],
              uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float tile[32];
    __attribute__((annotate("note"))) float sum = 0;
    for (uint j = 0; j < 8; j++) {
        __builtin_prefetch(in + (i + j + 8) % 96, 0, 3);
        __builtin_prefetch(&tile[lane], 1);
        if (lane % 2) __builtin_prefetch((const device void *)(sums + i));
        sum += in[(i + j) % 96];
    }
    if (__builtin_expect_with_probability(i % 3 != 0, 1, 0.75))
        sums[i] = sum;
    else
        sums[i] = -sum;
    __builtin_assume(i < 96);
    tile[lane] = __builtin_nontemporal_load(in + i);
    float rest = __builtin_annotation(i % 5, "note");
    if (__builtin_expect(i % 5 == 0, 0)) rest = 0;
    __builtin_nontemporal_store(__builtin_canonicalizef(tile[lane] * 2) + rest, out + i);
}
