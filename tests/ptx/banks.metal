// Stores to threadgroup memory whose lanes share banks (test_banks.py).
#include <metal_stdlib>
using namespace metal;

// Halfs as public kernels stage a tile: pairs of lanes exchange them, and four lanes then use each bank.
kernel void staged(device const half *a [[buffer(0)]], device half *o [[buffer(1)]], ushort me [[thread_index_in_threadgroup]]) {
    threadgroup half tile[64 * 32];
    const ushort row = me / 2, piece = me % 2;
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 16; i++) tile[64 * (row / 8 + 8 * (piece * 2 + i / 8)) + 8 * (i % 8) + row % 8] = a[me * 16 + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 16; i++) o[me * 16 + i] = tile[me * 16 + i];
}

// Words: lanes that differ in one of two bits share banks.
kernel void words(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]], uint me [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[64 * 8];
    const uint place = me % 8 + me / 8 * 64;
#pragma clang loop unroll(full)
    for (uint i = 0; i < 8; i++) tile[place + 8 * i] = a[me * 8 + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (uint i = 0; i < 8; i++) o[me * 8 + i] = tile[me * 8 + i];
}

// Numbers of two words, in a loop: the two halves of a simdgroup take a pass each.
kernel void longs(device const ulong *a [[buffer(0)]], device ulong *o [[buffer(1)]], uint me [[thread_index_in_threadgroup]]) {
    threadgroup ulong tile[64 * 4];
    const uint place = me % 8 + me / 8 * 32;
    for (uint round = 0; round < 3; round++) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
        for (uint i = 0; i < 4; i++) tile[place + 8 * i] = a[me * 4 + i] + round;
        threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
        for (uint i = 0; i < 4; i++) o[(round * 64 + me) * 4 + i] = tile[me * 4 + i];
    }
}

// Places that depend on an argument: if two are the same, the later store wins.
kernel void again(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &by [[buffer(2)]],
                  uint me [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[64 * 64];
    const uint place = me * 64;
#pragma clang loop unroll(full)
    for (uint i = 0; i < 4; i++) {
        tile[place + 8 * i] = a[me * 8 + 2 * i];
        tile[place + 8 * i + 8 * by] = a[me * 8 + 2 * i + 1];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (uint i = 0; i < 8; i++) o[me * 8 + i] = tile[place + 8 * i];
}

// A load between two stores reads what the first of them wrote.
kernel void between(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &by [[buffer(2)]],
                    uint me [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[64 * 32];
    const uint place = me * 32;
    tile[place] = a[me];
    const uint before = tile[place + 8 * by];
    tile[place + 8] = before + 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    o[me * 2] = tile[place];
    o[me * 2 + 1] = tile[place + 8];
}

// Neighbours of one thread, which it stores at once: nothing to gain by another order.
kernel void neighbours(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]], uint me [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[64 * 4];
#pragma clang loop unroll(full)
    for (uint i = 0; i < 4; i++) tile[me * 4 + i] = a[me * 4 + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (uint i = 0; i < 4; i++) o[me * 4 + i] = tile[(63 - me) * 4 + i];
}

// Exchanges link ten stores in a row: each is stored once.
kernel void linked(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]], uint me [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[8 * 64];
    const uint place = me / 4 * 64 + me % 4;
#pragma clang loop unroll(full)
    for (uint i = 0; i < 10; i++) tile[place + 4 * i] = a[me * 10 + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (uint i = 0; i < 10; i++) o[me * 10 + i] = tile[place + 4 * i];
}

// The first two stores are neighbours, which stay as they are; the others exchange.
kernel void beside(device const uint *a [[buffer(0)]], device uint *o [[buffer(1)]], uint me [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[32 * 32];
    const uint place = me * 32;
    tile[place] = a[me * 4];
    tile[place + 1] = a[me * 4 + 1];
    tile[place + 8] = a[me * 4 + 2];
    tile[place + 16] = a[me * 4 + 3];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    o[me * 4] = tile[place];
    o[me * 4 + 1] = tile[place + 1];
    o[me * 4 + 2] = tile[place + 8];
    o[me * 4 + 3] = tile[place + 16];
}

// Neighbours, which would be one store of 16 bytes: of eight lanes at a time, four share each bank.
kernel void rows(device const half *a [[buffer(0)]], device half *o [[buffer(1)]], ushort me [[thread_index_in_threadgroup]]) {
    threadgroup half tile[32 * 32];
    const ushort token = me / 4, part = me % 4;
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 8; i++) tile[64 * (token / 8 + 4 * part) + 8 * (token % 8) + i] = a[me * 8 + i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (ushort i = 0; i < 8; i++) o[me * 8 + i] = tile[me * 8 + i];
}

// The same of a vector, and behind it an element that another store changes.
kernel void vectors(device const uint4 *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &by [[buffer(2)]],
                    uint me [[thread_index_in_threadgroup]]) {
    threadgroup uint tile[64 * 16 + 8];
    const uint place = me / 32 * 512 + me % 4 * 128 + me / 4 % 8 * 4;
    *(threadgroup uint4 *)(tile + place) = a[me];
    tile[place + by] = me;
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (uint i = 0; i < 4; i++) o[me * 4 + i] = tile[place + i];
}

// Stores of 16 bytes in a row of lanes share no bank, and stay as they are.
kernel void straight(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], uint me [[thread_index_in_threadgroup]]) {
    threadgroup float tile[64 * 4];
#pragma clang loop unroll(full)
    for (uint i = 0; i < 4; i++) tile[me * 4 + i] = a[me * 4 + i] + 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (uint i = 0; i < 4; i++) o[me * 4 + i] = tile[255 - (me * 4 + i)];
}
