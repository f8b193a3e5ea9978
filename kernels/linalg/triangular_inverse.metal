#include <metal_stdlib>
using namespace metal;

// The inverse of I + S for each chunk of a sequence, where S is the strictly lower triangle of that chunk's square.
//
//   a, inverse  (batch, length, heads, width): row t of head h holds row t % width of the square of chunk t / width
//   size        (batch, length, heads, width)
//   scratch     2 · width · width floats
//
// One threadgroup a chunk, at (chunk, head, batch); any number of threads. The last chunk may be shorter than width:
// its square is then the leading one, and the columns past it are written 0.
// A thread owns whole columns of the inverse, so the substitution needs no barrier: row i of column j is
// (i == j) - sum over k < i of S[i][k] · X[k][j], and X[k][j] is this thread's own (0 for k < j).
kernel void triangular_inverse(const device float *a [[buffer(0)]],
                               device float *inverse [[buffer(1)]],
                               constant uint4 &size [[buffer(2)]],
                               threadgroup float *scratch [[threadgroup(0)]],
                               uint3 group [[threadgroup_position_in_grid]],
                               uint3 threads [[threads_per_threadgroup]],
                               uint me [[thread_index_in_threadgroup]]) {
    const uint length = size.y, heads = size.z, width = size.w;
    const uint first = group.x * width;
    const uint rows = min(width, length - first);
    const size_t step = size_t(heads) * width;
    const size_t start = (size_t(group.z) * length + first) * step + size_t(group.y) * width;
    threadgroup float *lower = scratch;
    threadgroup float *columns = scratch + width * width;

    for (uint place = me; place < rows * width; place += threads.x)
        lower[place] = a[start + place / width * step + place % width];
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint j = me; j < width; j += threads.x)
        for (uint i = 0; i < rows; i++) {
            float value = i == j ? 1.0f : 0.0f;
            for (uint k = j; k < i; k++) value -= lower[i * width + k] * columns[k * width + j];
            columns[i * width + j] = value;
        }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    for (uint place = me; place < rows * width; place += threads.x)
        inverse[start + place / width * step + place % width] = columns[place];
}
