// c = a · b, n × n half with sums in float, by simdgroup matrices that are loaded straight from device memory. A group of four
// simdgroups has 64 × 64 elements; n is a multiple of 64.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void straight(device const half *a [[buffer(0)]], device const half *b [[buffer(1)]], device float *c [[buffer(2)]],
                     constant uint &n [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                     uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    const uint row = group.y * 64 + simdgroup / 2 * 32, column = group.x * 64 + simdgroup % 2 * 32;
    simdgroup_float8x8 sums[4][4];
    for (uint i = 0; i < 16; i++) sums[i / 4][i % 4] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    for (uint k = 0; k < n; k += 8) {
        simdgroup_half8x8 left[4], right[4];
        for (uint i = 0; i < 4; i++) {
            simdgroup_load(left[i], a + (row + 8 * i) * n + k, n);
            simdgroup_load(right[i], b + k * n + column + 8 * i, n);
        }
        for (uint i = 0; i < 16; i++)
            simdgroup_multiply_accumulate(sums[i / 4][i % 4], left[i / 4], right[i % 4], sums[i / 4][i % 4]);
    }
    for (uint i = 0; i < 16; i++)
        simdgroup_store(sums[i / 4][i % 4], c + (row + 8 * (i / 4)) * n + column + 8 * (i % 4), n);
}
