// Products of half matrices in a loop of as many rounds as an argument says. On CPUs the loop is written twice, with tests of its
// loads and without, and each copy converts its matrices to float.
// run: -b 0=arange:float16:8x64 -b 1=arange:float16:64x8 -b 2:out:float32:64 --bytes 3=uint32:64 --grid 32 --threadgroup 32
// expect buffer 2: f(i) for i in 64: sum((i // 8 * 64 + k) * (k * 8 + i % 8) for k in range(64))
#include <metal_stdlib>
using namespace metal;

kernel void halves_loop(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]], device float *c [[buffer(2)]],
                        constant uint &n [[buffer(3)]]) {
    simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0);
#pragma unroll(1)
    for (uint k = 0; k < n; k += 8) {
        simdgroup_half8x8 x, y;
        simdgroup_load(x, a + k, 64);
        simdgroup_load(y, b + k * 8, 8);
        simdgroup_multiply_accumulate(sum, x, y, sum);
    }
    simdgroup_store(sum, c, 8);
}
