// Halfs that pairs of lanes store into the same words of threadgroup memory (test_pairs.py).
#include <metal_stdlib>
using namespace metal;

// As public kernels stage a tile: a lane's 16 elements of a row go down two columns of matrices of 8 × 8.
kernel void staged(device const half *a [[buffer(0)]], device half *o [[buffer(1)]], ushort me [[thread_index_in_threadgroup]]) {
    threadgroup half tile[64 * 32];
    const ushort row = me / 2, piece = me % 2;
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 16; i++) tile[64 * (row / 8 + 8 * (piece * 2 + i / 8)) + 8 * (i % 8) + row % 8] = a[me * 16 + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 16; i++) o[me * 16 + i] = tile[me * 16 + i];
}

// The same in memory that the launch gives, which begins at any multiple of 16 bytes.
kernel void given(device const half *a [[buffer(0)]], device half *o [[buffer(1)]], threadgroup half *tile [[threadgroup(0)]],
                  ushort me [[thread_index_in_threadgroup]]) {
    const ushort row = me / 2, piece = me % 2;
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 16; i++) *(tile + 64 * (row / 8 + 8 * (piece * 2 + i / 8)) + 8 * (i % 8) + row % 8) = a[me * 16 + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 16; i++) o[me * 16 + i] = tile[me * 16 + i];
}

// Columns of threads' rows, in groups of two dimensions: partners are those in x.
kernel void columns(device const ushort *a [[buffer(0)]], device ushort *o [[buffer(1)]], ushort2 at [[thread_position_in_threadgroup]],
                    ushort me [[thread_index_in_threadgroup]]) {
    threadgroup ushort tile[128 * 16];
#pragma clang loop unroll(full)
    for (ushort j = 0; j < 8; j++) tile[(at.y * 8 + j) * 16 + at.x] = a[me * 8 + j] * 3;
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (ushort j = 0; j < 8; j++) o[me * 8 + j] = tile[me * 8 + j];
}

// Stores to different banks, which are not joined because their places depend on an argument: if two places are the same, the later
// store wins.
kernel void again(device const half *a [[buffer(0)]], device half *o [[buffer(1)]], constant uint &by [[buffer(2)]],
                  ushort me [[thread_index_in_threadgroup]]) {
    threadgroup half tile[64 * 32];
    const uint place = me / 2 * 64 + me % 2;
#pragma clang loop unroll(full)
    for (uint i = 0; i < 4; i++) {
        tile[place + 8 * i] = a[me * 8 + 2 * i];
        tile[place + 8 * i + 8 * by] = a[me * 8 + 2 * i + 1];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (uint i = 0; i < 8; i++) o[me * 8 + i] = tile[place + 8 * i];
}

// The same with a load between two stores, which may read what the first one wrote.
kernel void between(device const half *a [[buffer(0)]], device half *o [[buffer(1)]], constant uint &by [[buffer(2)]],
                    ushort me [[thread_index_in_threadgroup]]) {
    threadgroup half tile[64 * 32];
    const uint place = me / 2 * 64 + me % 2;
    tile[place] = a[me];
    const half before = tile[place + 8 * by];
    tile[place + 8] = before + half(1);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    o[me * 2] = tile[place];
    o[me * 2 + 1] = tile[place + 8];
}

// Only some lanes store.
kernel void some(device const half *a [[buffer(0)]], device half *o [[buffer(1)]], ushort me [[thread_index_in_threadgroup]]) {
    threadgroup half tile[64 * 32];
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 16; i++) tile[me * 16 + i] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (me % 3) {
#pragma clang loop unroll(full)
        for (ushort i = 0; i < 8; i++) tile[64 * (me / 16) + 8 * i + me / 2 % 8 + 1024 * (me % 2)] = a[me * 8 + i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 16; i++) o[me * 16 + i] = tile[me * 16 + i];
}
