// A real literal is a float in templates too: computed in double, these would come out otherwise.
// run: literals -b 0=arange:float32:8 -b 1:out:float32:8 -b 2:out:uint32:8 --grid 8
// let F = lambda x: __import__('struct').unpack('f', __import__('struct').pack('f', x))[0]
// expect buffer 1: f(i) for i in 8: F(F(0.1) * F(i + 1)) - F(F(F(0.1) * F(i + 1)) + 0)
// expect buffer 2: f(i) for i in 8: 4
#include <metal_stdlib>
using namespace metal;

template <typename T>
inline T scaled(T x) {
  T y = x * 0.1;
  return y - T(x * 0.1 + 0.);
}

template <typename T>
inline uint width(T x) { return sizeof(x * 1e-3) + sizeof(x + 0x1p3) - sizeof(.5) ; }

kernel void literals(device const float *in [[buffer(0)]], device float *out [[buffer(1)]], device uint *sizes [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
  out[i] = scaled(in[i] + 1.0) + (fmin(1, in[i] / 6 + 0.5) - fmin(1.0f, in[i] / 6 + 0.5f));
  sizes[i] = width(in[i]);
}
