// Parameters that are arrays in an address space and have no name, as of specialisations that ignore them.
// run: -b 0=arange:float32:16 -b 1:out:float32:16 -b 2:out:int32:3 --grid 16
// expect buffer 1: f(i) for i in 16: 24 + 4 * (i % 4) + 15 + 100
// expect buffer 2: 16 8 64
#include <metal_stdlib>
using namespace metal;

constant float weights[2] = {3, 5};

template <int N>
inline void add(threadgroup float rows[][4], const device float values[16], constant float factors[2],
                thread float &sum, uint x) {
    sum += rows[N - 1][x];
    add<N - 1>(rows, values, factors, sum, x);
}

template <>
inline void add<0>(threadgroup float[][4], const device float[16], constant float factors[2],
                   thread float &sum, uint) {
    sum += factors[0] * factors[1];
}

struct ignores {
    static float result(threadgroup metal::float4[2], device vec<float, 2> const[4], const constant float[2]);
};
float ignores::result(threadgroup metal::float4[2], device vec<float, 2> const[4], const constant float[2]) {
    return 100;
}

kernel void unnamed(const device float *in [[buffer(0)]], device float *out [[buffer(1)]],
                    device int *sizes [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    threadgroup float rows[4][4];
    threadgroup float4 pair[2];
    rows[i / 4][i % 4] = in[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float sum = 0;
    add<4>(rows, in, weights, sum, i % 4);
    if (i == 0) pair[0] = sum;
    out[i] = sum + ignores::result(pair, (device vec<float, 2> *)out, weights);
    if (i > 0) return;
    sizes[0] = sizeof(threadgroup float[4]);
    sizes[1] = sizeof(vec<float, 2>);
    sizes[2] = sizeof(constant unsigned int[2][8]);
}
