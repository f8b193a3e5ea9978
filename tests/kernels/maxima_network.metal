// Minima and maxima of neighbours that may be NaN or zeros of either sign: a sorting network of three, and a chain.
// for group: 32 50 256
// let X = lambda k: [1.0, nan, -0.0, 0.0, -2.5, inf, nan, nan, -inf, 3.0, 0.0, -0.0][k % 12]
// let lo = lambda a, b: b if a != a or b < a else a
// let hi = lambda a, b: b if a != a or a < b else a
// run: -b 0=arange:int32:1002 -b 1:out:float32:1000 -b 2:out:float32:1000 --grid 1000 --threadgroup {group}
// expect buffer 1: f(i) for i in 1000: lo(hi(X(i), X(i + 1)), hi(lo(X(i), X(i + 1)), X(i + 2)))
// expect buffer 2: f(i) for i in 1000: hi(lo(X(i), 2.0), -1.0)
#include <metal_stdlib>
using namespace metal;

constant float values[12] = {1.0f, NAN, -0.0f, 0.0f, -2.5f, INFINITY, NAN, NAN, -INFINITY, 3.0f, 0.0f, -0.0f};

kernel void network(device const int *in [[buffer(0)]], device float *middle [[buffer(1)]], device float *chain [[buffer(2)]],
                    uint i [[thread_position_in_grid]]) {
    const float a = values[in[i] % 12], b = values[in[i + 1] % 12], c = values[in[i + 2] % 12];
    const float low = min(a, b), high = max(a, b);
    middle[i] = min(high, max(low, c));
    chain[i] = max(min(a, 2.0f), -1.0f);
}
