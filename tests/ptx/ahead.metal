// Products that load the next tile before they multiply the current one (test_ahead.py). For 32 threads: C is 8 × 8, A 8 × depth, B depth × 8.
#include <metal_stdlib>
using namespace metal;

// Each thread loads a `V` of A and a `V` of B per tile. Tiles are 8 deep.
template <typename V>
static void multiply(device const float *a, device const float *b, device float *c, uint depth, uint t, threadgroup float *memory) {
    const uint at = t * (sizeof(V) / sizeof(float)), row = at / 8, column = at % 8;
    threadgroup float *tile = memory;
    V a_next = *(device const V *)(a + row * depth + column), b_next = *(device const V *)(b + at);
    *(threadgroup V *)(tile + at) = a_next;
    *(threadgroup V *)(tile + 64 + at) = b_next;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float sums[2] = {0, 0};
    for (uint k = 0; k < depth; k += 8) {
        const bool more = k + 8 < depth;
        if (more) {
            a += 8;
            b += 64;
            a_next = *(device const V *)(a + row * depth + column);
            b_next = *(device const V *)(b + at);
        }
#pragma clang loop unroll(full)
        for (uint i = 0; i < 8; i++)
            for (uint j = 0; j < 2; j++) sums[j] += tile[t / 4 * 8 + i] * tile[64 + i * 8 + t % 4 * 2 + j];
        tile = tile == memory ? memory + 128 : memory;
        if (more) {
            *(threadgroup V *)(tile + at) = a_next;
            *(threadgroup V *)(tile + 64 + at) = b_next;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    for (uint j = 0; j < 2; j++) c[t * 2 + j] = sums[j];
}

kernel void aligned(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *c [[buffer(2)]],
                    constant uint &depth [[buffer(3)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float2 memory[128];
    multiply<float2>(a, b, c, depth & ~1u, t, (threadgroup float *)memory);
}

// Rows may begin at any float.
kernel void tested(device const float *a [[buffer(0)]], device const float *b [[buffer(1)]], device float *c [[buffer(2)]],
                   constant uint &depth [[buffer(3)]], constant uint &from [[buffer(4)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float2 memory[128];
    multiply<float2>(a + from, b + from, c, depth, t, (threadgroup float *)memory);
}

// The loaded value is also used where the condition does not hold.
kernel void kept(device const float *a [[buffer(0)]], device float *o [[buffer(1)]], constant uint &n [[buffer(2)]], uint t [[thread_index_in_threadgroup]]) {
    float next = a[t], sum = 0;
    for (uint k = 0; k < n; k++) {
        const bool more = k % 3 == 0;
        if (more) next = a[32 * k + t];
        sum = sum * 0.5f + float(k);
        if (more) sum += next;
        sum -= next * 0.25f;
    }
    o[t] = sum;
}
