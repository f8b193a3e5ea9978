// c = a · b, square of n, halfs with sums in float: 128 threads a group with 64 x 64 outputs, each simdgroup 32 x 32 of
// them as 4 x 4 simdgroup matrices; both tiles in threadgroup memory, rows a little longer so that they begin in
// different banks.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant constexpr uint block = 64, depth = 32, left_row = depth + 8, right_row = block + 8;

kernel void matmul_half(device const uint4 *a [[buffer(0)]], device const uint4 *b [[buffer(1)]],
                        device half *c [[buffer(2)]], constant uint &n [[buffer(3)]],
                        uint2 group [[threadgroup_position_in_grid]], uint me [[thread_index_in_threadgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint4 left_pieces[block * left_row / 8];
    threadgroup uint4 right_pieces[depth * right_row / 8];
    threadgroup half *left = (threadgroup half *)left_pieces;
    threadgroup half *right = (threadgroup half *)right_pieces;
    simdgroup_float8x8 sums[4][4];
#pragma unroll
    for (uint i = 0; i < 4; i++)
#pragma unroll
        for (uint j = 0; j < 4; j++) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    const uint row = simdgroup / 2 * 32, column = simdgroup % 2 * 32;
    for (uint base = 0; base < n; base += depth) {
#pragma unroll
        for (uint i = me; i < block * depth / 8; i += 128)
            left_pieces[i / 4 * (left_row / 8) + i % 4] = a[((group.y * block + i / 4) * n + base) / 8 + i % 4];
#pragma unroll
        for (uint i = me; i < depth * block / 8; i += 128)
            right_pieces[i / 8 * (right_row / 8) + i % 8] = b[((base + i / 8) * n + group.x * block) / 8 + i % 8];
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
        for (uint k = 0; k < depth; k += 8) {
            simdgroup_half8x8 l[4], r[4];
#pragma unroll
            for (uint i = 0; i < 4; i++) simdgroup_load(l[i], left + (row + i * 8) * left_row + k, left_row);
#pragma unroll
            for (uint j = 0; j < 4; j++) simdgroup_load(r[j], right + k * right_row + column + j * 8, right_row);
#pragma unroll
            for (uint i = 0; i < 4; i++)
#pragma unroll
                for (uint j = 0; j < 4; j++) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    device half *tile = c + (group.y * block + row) * n + group.x * block + column;
#pragma unroll
    for (uint i = 0; i < 4; i++)
#pragma unroll
        for (uint j = 0; j < 4; j++) {
            simdgroup_half8x8 rounded;
            rounded.thread_elements()[0] = half(sums[i][j].thread_elements()[0]);
            rounded.thread_elements()[1] = half(sums[i][j].thread_elements()[1]);
            simdgroup_store(rounded, tile + i * 8 * n + j * 8, n);
        }
}
