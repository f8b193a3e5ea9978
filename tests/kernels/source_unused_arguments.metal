// Buffers and threadgroup memory that the code makes no use of need not be bound.
// run: -b 0=arange:int32:8 -b 3:out:int32:8 --grid 8 --threadgroup 8
// expect buffer 3: f(i) for i in 8: 2 * i
#include <metal_stdlib>
using namespace metal;

template <typename T, bool scaled>
kernel void copy(device const T *x [[buffer(0)]], device const float *scale [[buffer(1)]], constant uint &count [[buffer(2)]],
                 device T *y [[buffer(3)]], threadgroup float *unused [[threadgroup(0)]], uint i [[thread_position_in_grid]]) {
  T factor = 2;
  if (scaled) factor = T(scale[i % count]);
  y[i] = x[i] * factor;
}
template [[host_name("copy_int")]] kernel decltype(copy<int, false>) copy<int, false>;
