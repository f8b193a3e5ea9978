// Weights (rows of half, or blocks of 4 bits) times the vectors of several tokens: tiles of both in threadgroup memory, products
// by simdgroup matrices or by each thread. out[token][row].
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

struct sizes {
    uint rows, columns, tokens;
};

struct f16 {
    static constant constexpr uint weights = 16;
    half w[16];
    void sixteen(ushort, thread half *to) const device {
        for (ushort i = 0; i < 16; i++) to[i] = w[i];
    }
};

struct q4_0 {
    static constant constexpr uint weights = 32;
    half scale;
    uchar pairs[16];
    // The first or second half of the block's weights.
    void sixteen(ushort second, thread half *to) const device {
        for (ushort i = 0; i < 16; i++) to[i] = scale * half(int(second ? pairs[i] >> 4 : pairs[i] & 15) - 8);
    }
};

// 128 threads: 64 rows and 32 tokens, 32 columns at a time. A tile lies in threadgroup memory as matrices of 8 x 8 one after
// another. Rows are a multiple of 64, tokens of 32, columns of 32.
template <typename block>
kernel void staged(device const block *w [[buffer(0)]], device const float *x [[buffer(1)]], device float *out [[buffer(2)]],
                   constant sizes &size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                   ushort me [[thread_index_in_threadgroup]], ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup half left[64 * 32], right[32 * 32];
    const uint first_row = group.x * 64, first_token = group.y * 32, blocks = size.columns / block::weights;
    const ushort row = me / 2, piece = me % 2, token = me / 4, part = me % 4;
    simdgroup_half8x8 a[4], b[2];
    simdgroup_float8x8 sums[8];
    for (ushort i = 0; i < 8; i++) sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    device const block *mine = w + (first_row + row) * blocks;
    device const float *vector = x + (first_token + token) * size.columns + part * 8;
    for (uint column = 0; column < size.columns; column += 32) {
        half unpacked[16];
        const uint at = column + piece * 16;
        mine[at / block::weights].sixteen(at % block::weights / 16, unpacked);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort i = 0; i < 16; i++)
            left[64 * (row / 8 + 8 * (piece * 2 + i / 8)) + 8 * (i % 8) + row % 8] = unpacked[i];
        for (ushort i = 0; i < 8; i++) right[64 * (token / 8 + 4 * part) + 8 * (token % 8) + i] = half(vector[column + i]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup const half *from_left = left + 64 * 4 * (simdgroup % 2), *from_right = right + 64 * 2 * (simdgroup / 2);
        for (ushort k = 0; k < 4; k++) {
            for (ushort i = 0; i < 4; i++) simdgroup_load(a[i], from_left + 64 * i, 8);
            for (ushort i = 0; i < 2; i++) simdgroup_load(b[i], from_right + 64 * i, 8);
            for (ushort i = 0; i < 8; i++) simdgroup_multiply_accumulate(sums[i], b[i / 4], a[i % 4], sums[i]);
            from_left += 64 * 8;
            from_right += 64 * 4;
        }
    }
    device float *to = out + (first_token + 16 * (simdgroup / 2)) * size.rows + first_row + 32 * (simdgroup % 2);
    for (ushort i = 0; i < 8; i++) simdgroup_store(sums[i], to + 8 * (i / 4) * size.rows + 8 * (i % 4), size.rows);
}

// 16 x 16 threads, each with one output; 16 columns at a time.
kernel void tiled_f16(device const half *w [[buffer(0)]], device const float *x [[buffer(1)]], device float *out [[buffer(2)]],
                      constant sizes &size [[buffer(3)]], uint2 at [[thread_position_in_grid]],
                      ushort2 me [[thread_position_in_threadgroup]], uint2 group [[threadgroup_position_in_grid]]) {
    threadgroup half left[16][17];
    threadgroup float right[16][16];
    float sum = 0;
    for (uint column = 0; column < size.columns; column += 16) {
        left[me.y][me.x] = w[(group.x * 16 + me.y) * size.columns + column + me.x];
        right[me.y][me.x] = x[at.y * size.columns + column + me.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (ushort k = 0; k < 16; k++) sum += float(left[me.x][k]) * right[me.y][k];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    out[at.y * size.rows + at.x] = sum;
}

template [[host_name("staged_f16")]] kernel decltype(staged<f16>) staged<f16>;
template [[host_name("staged_q4_0")]] kernel decltype(staged<q4_0>) staged<q4_0>;
