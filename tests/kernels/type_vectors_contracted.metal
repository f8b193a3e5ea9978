// Within a statement, a product of vectors that is added or subtracted is rounded once, with the sum, as a scalar's is. A product in a
// variable or from a function is rounded first.
// run: contracted -b 0=rand:float32:64:3 -b 1:out:uint32:64 -b 2:out:uint32:64 --grid 64 --threadgroup 64
// expect buffer 1: f(i) for i in 64: 0
#include <metal_stdlib>
using namespace metal;

template <typename V> V times(V a, V b) { return a * b; }

template <typename V, typename T> bool is_wrong(T x, T y, T z) {
    V a = V(x), b = V(y), c = V(z), sum = c, less = c, of_scalar = c;
    sum += a * b;
    less -= a * b;
    of_scalar += a * y;
    V named = a * b, apart = c;
    apart += named;
    T rounded = x * y, twice = rounded + z;
    bool wrong = any(sum != V(fma(x, y, z))) || any(less != V(fma(-x, y, z))) || any(of_scalar != V(fma(x, y, z)));
    wrong |= any((a * b + c) != V(fma(x, y, z))) || any((a * b - c) != V(fma(x, y, -z))) || any((c - x * b) != V(fma(-x, y, z)));
    wrong |= any((a * b + c * b) != V(fma(x, y, z * y))) || any((a * b + z) != V(fma(x, y, z)));
    return wrong || any(apart != V(twice)) || any((times(a, b) + c) != V(twice));
}

kernel void contracted(device const float *x [[buffer(0)]], device uint *wrong [[buffer(1)]], device uint *unused [[buffer(2)]],
                       uint i [[thread_position_in_grid]]) {
    float a = x[i], b = x[63 - i] - 0.5f, c = x[i / 2] - 0.25f;
    wrong[i] = is_wrong<float2>(a, b, c) || is_wrong<float3>(a, b, c) || is_wrong<float4>(a, b, c) ||
               is_wrong<half2>(half(a), half(b), half(c)) || is_wrong<half3>(half(a), half(b), half(c)) ||
               is_wrong<half4>(half(a), half(b), half(c));
    unused[i] = 0;
}
