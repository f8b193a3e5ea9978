// c = a · b, square of n: 128 threads a group with 64 x 64 outputs, each simdgroup 32 x 32 of them as 4 x 4 simdgroup matrices; both
// tiles in threadgroup memory.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant constexpr uint block = 64, depth = 16, left_row = depth + 4, right_row = block + 4;

kernel void matmul_simdgroup(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]],
                             device float *c [[buffer(2)]], constant uint &n [[buffer(3)]],
                             uint2 group [[threadgroup_position_in_grid]], uint me [[thread_index_in_threadgroup]],
                             uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float left[block * left_row];
    threadgroup float right[depth * right_row];
    simdgroup_float8x8 sums[4][4];
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    a += group.y * block * n;
    b += group.x * block;
    const uint row = simdgroup / 2 * 32, column = simdgroup % 2 * 32;
    for (uint base = 0; base < n; base += depth) {
        for (uint i = me; i < block * depth / 4; i += 128)
            *(threadgroup float4 *)(left + i / 4 * left_row + i % 4 * 4) =
                *(device const float4 *)(a + i / 4 * n + base + i % 4 * 4);
        for (uint i = me; i < depth * block / 4; i += 128)
            *(threadgroup float4 *)(right + i / 16 * right_row + i % 16 * 4) =
                *(device const float4 *)(b + (base + i / 16) * n + i % 16 * 4);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 0; k < depth; k += 8) {
            simdgroup_float8x8 l[4], r[4];
            for (uint i = 0; i < 4; i++) simdgroup_load(l[i], left + (row + i * 8) * left_row + k, left_row);
            for (uint j = 0; j < 4; j++) simdgroup_load(r[j], right + k * right_row + column + j * 8, right_row);
            for (uint i = 0; i < 4; i++)
                for (uint j = 0; j < 4; j++) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    c += (group.y * block + row) * n + group.x * block + column;
    for (uint i = 0; i < 4; i++)
        for (uint j = 0; j < 4; j++) simdgroup_store(sums[i][j], c + i * 8 * n + j * 8, n);
}
