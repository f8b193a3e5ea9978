// c = a · b, square of n, a multiple of 128; halfs with sums in float. 256 threads a group with 128 x 128 outputs, each
// simdgroup 32 x 64 of them as 4 x 8 simdgroup matrices; both tiles in threadgroup memory, rows a little longer so that
// they begin in different banks. The next tiles are fetched while these are multiplied.
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant constexpr uint threads = 256, block = 128, depth = 32, left_row = depth + 8, right_row = block + 8;
constant constexpr uint pieces = block * depth / 8 / threads; // of 8 halfs, a thread and tile

kernel void matmul_half(device const uint4 *a [[buffer(0)]], device const uint4 *b [[buffer(1)]],
                        device half *c [[buffer(2)]], constant uint &n [[buffer(3)]],
                        uint2 group [[threadgroup_position_in_grid]], uint me [[thread_index_in_threadgroup]],
                        uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint4 left_pieces[block * left_row / 8];
    threadgroup uint4 right_pieces[depth * right_row / 8];
    threadgroup half *left = (threadgroup half *)left_pieces;
    threadgroup half *right = (threadgroup half *)right_pieces;
    const uint left_at = me / 4, left_part = me % 4, right_at = me / 16, right_part = me % 16;
    device const uint4 *from_left = a + ((group.y * block + left_at) * n) / 8 + left_part;
    device const uint4 *from_right = b + (right_at * n + group.x * block) / 8 + right_part;
    uint4 next_left[pieces], next_right[pieces];
    simdgroup_float8x8 sums[4][8];
#pragma unroll
    for (uint i = 0; i < 4; i++)
#pragma unroll
        for (uint j = 0; j < 8; j++) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    const uint row = simdgroup / 2 * 32, column = simdgroup % 2 * 64;
#pragma unroll
    for (uint p = 0; p < pieces; p++) {
        next_left[p] = from_left[p * (threads / 4) * (n / 8)];
        next_right[p] = from_right[p * (threads / 16) * (n / 8)];
    }
    for (uint base = 0; base < n; base += depth) {
#pragma unroll
        for (uint p = 0; p < pieces; p++) {
            left_pieces[(left_at + p * (threads / 4)) * (left_row / 8) + left_part] = next_left[p];
            right_pieces[(right_at + p * (threads / 16)) * (right_row / 8) + right_part] = next_right[p];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (base + depth < n) {
            from_left += depth / 8;
            from_right += depth * (n / 8);
#pragma unroll
            for (uint p = 0; p < pieces; p++) {
                next_left[p] = from_left[p * (threads / 4) * (n / 8)];
                next_right[p] = from_right[p * (threads / 16) * (n / 8)];
            }
        }
#pragma unroll
        for (uint k = 0; k < depth; k += 8) {
            simdgroup_half8x8 l[4], r[8];
#pragma unroll
            for (uint i = 0; i < 4; i++) simdgroup_load(l[i], left + (row + i * 8) * left_row + k, left_row);
#pragma unroll
            for (uint j = 0; j < 8; j++) simdgroup_load(r[j], right + k * right_row + column + j * 8, right_row);
#pragma unroll
            for (uint i = 0; i < 4; i++)
#pragma unroll
                for (uint j = 0; j < 8; j++) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    device half *tile = c + (group.y * block + row) * n + group.x * block + column;
#pragma unroll
    for (uint i = 0; i < 4; i++)
#pragma unroll
        for (uint j = 0; j < 8; j++) {
            simdgroup_half8x8 rounded;
            rounded.thread_elements()[0] = half(sums[i][j].thread_elements()[0]);
            rounded.thread_elements()[1] = half(sums[i][j].thread_elements()[1]);
            simdgroup_store(rounded, tile + i * 8 * n + j * 8, n);
        }
}
