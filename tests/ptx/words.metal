// Neighbouring loads of bytes and halfs that begin anywhere (test_words.py).
#include <metal_stdlib>
using namespace metal;

kernel void bytes(device const uchar *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &step [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    device const uchar *p = a + i * step;
    uint s = 0, t = 0;
    for (uint k = 0; k < 9; k++) { s = s * 31 + p[k]; t ^= uint(p[k]) << k; }
    o[2 * i] = s; o[2 * i + 1] = t;
}
kernel void halfs(device const ushort *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &step [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    device const ushort *p = a + i * (step / 2);
    uint s = 0, t = 0;
    for (uint k = 0; k < 5; k++) { s = s * 31 + p[k]; t ^= uint(p[k]) << k; }
    if (step >= 18) for (uint k = 5; k < 9; k++) s = s * 31 + p[k];
    o[2 * i] = s; o[2 * i + 1] = t;
}
struct block { half d; uchar q[6]; };
kernel void mixed(device const uchar *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &step [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    device const block *p = (device const block *)(a + i * step);
    uint s = as_type<ushort>(p->d), t = 0;
    for (uint k = 0; k < 6; k++) { s = s * 31 + p->q[k]; t += p->q[k] * (k + 1); }
    o[2 * i] = s; o[2 * i + 1] = t;
}

// A block of 4-bit weights as public projects have it: 18 bytes.
struct weights { half scale; uchar pairs[16]; };
kernel void unpacked(device const weights *a [[buffer(0)]], device float *o [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    float sum = 0;
    for (uint k = 0; k < 16; k++) sum += float(a[i].pairs[k] & 15) - 2 * float(a[i].pairs[k] >> 4);
    o[i] = sum * float(a[i].scale);
}

// Loads after a store may read what it wrote, so they stay after it.
kernel void stored(device uchar *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &step [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    device uchar *p = a + i * step;
    uint s = 0;
    for (uint k = 0; k < 3; k++) s = s * 31 + p[k];
    p[4] = uchar(s);
    for (uint k = 3; k < 12; k++) s = s * 31 + p[k];
    o[i] = s;
}

// One load brings an aligned vector, although its elements are used one by one.
kernel void vectors(device const ushort4 *a [[buffer(0)]], device uint *o [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    const ushort4 v = a[i];
    o[i] = ((v.x * 31u + v.y) * 31u + v.z) * 31u + v.w;
}

// Rows that a lane takes side by side, in blocks of one byte and two parts: their addresses differ by what does not change in the loop.
struct parts { uchar first, rest[18]; };
kernel void rows(device const parts *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &blocks [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    uint sums[4] = {0};
    for (uint b = i / 2; b < blocks; b += 16)
        for (uint r = 0; r < 4; r++) {
            device const parts *p = a + r * blocks + b;
            uint s = p->first;
            for (uint k = 0; k < 9; k++) s = s * 31 + p->rest[i % 2 * 9 + k];
            sums[r] += s;
        }
    for (uint r = 0; r < 4; r++) o[4 * i + r] = sums[r];
}
