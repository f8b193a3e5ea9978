// (I + S)⁻¹ for each chunk of a sequence, S the part below the diagonal of the chunk's square.
// a, inverse (batch, length, heads, width); size is that; one group a chunk, at (chunk, head, batch), of `width` threads:
// a thread has a column, which it finds from the top, so that rows need no barrier between them.
#include <metal_stdlib>
using namespace metal;

kernel void chunk_inverse(device const float *a [[buffer(0)]], device float *inverse [[buffer(1)]],
                          constant uint4 &size [[buffer(2)]], threadgroup float *memory [[threadgroup(0)]],
                          uint3 group [[threadgroup_position_in_grid]],
                          uint3 thread_position [[thread_position_in_threadgroup]]) {
    const uint length = size.y, heads = size.z, width = size.w;
    if (group.x >= length / width || group.y >= heads || group.z >= size.x) return;
    const uint j = thread_position.x;
    if (j >= width) return;
    threadgroup float *lower = memory, *x = memory + width * width;
    const uint first = group.z * length + group.x * width;

    for (uint i = 0; i < width; i++) lower[i * width + j] = a[((first + i) * heads + group.y) * width + j];
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint i = 0; i < width; i++) {
        float value = i == j ? 1.0f : 0.0f;
        for (uint k = 0; k < i; k++) value -= lower[i * width + k] * x[k * width + j];
        x[i * width + j] = value;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint i = 0; i < width; i++) inverse[((first + i) * heads + group.y) * width + j] = x[i * width + j];
}
