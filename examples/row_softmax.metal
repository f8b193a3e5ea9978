#include <metal_stdlib>
using namespace metal;

// What a reduction combines two values to.
struct add {
    static float of(float a, float b) { return a + b; }
};
struct larger {
    static float of(float a, float b) { return max(a, b); }
};

// Combines one value of each thread into one for all: a tree in threadgroup memory. `count` is any number of threads.
template <typename Operation>
float reduce(threadgroup float *scratch, float value, uint me, uint count) {
    scratch[me] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    while (count > 1) {
        uint half_count = (count + 1) / 2;
        if (me + half_count < count) scratch[me] = Operation::of(scratch[me], scratch[me + half_count]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        count = half_count;
    }
    float result = scratch[0];
    // The next reduction writes scratch again: not before every thread has read this result.
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return result;
}

struct row_size {
    uint columns;
    float scale;
};

// Each threadgroup turns one row into its softmax: exp(scale · (x - max)) divided by the sum of these.
kernel void row_softmax(const device float *x [[buffer(0)]],
                        device float *y [[buffer(1)]],
                        constant row_size &size [[buffer(2)]],
                        threadgroup float *scratch [[threadgroup(0)]],
                        uint row [[threadgroup_position_in_grid]],
                        uint me [[thread_position_in_threadgroup]],
                        uint threads [[threads_per_threadgroup]]) {
    const device float *from = x + row * size.columns;
    device float *to = y + row * size.columns;

    float largest = -INFINITY;
    for (uint i = me; i < size.columns; i += threads) largest = max(largest, from[i]);
    largest = reduce<larger>(scratch, largest, me, threads);

    float sum = 0.0f;
    for (uint i = me; i < size.columns; i += threads) {
        to[i] = exp(size.scale * (from[i] - largest));
        sum += to[i];
    }
    sum = reduce<add>(scratch, sum, me, threads);

    for (uint i = me; i < size.columns; i += threads) to[i] /= sum;
}
