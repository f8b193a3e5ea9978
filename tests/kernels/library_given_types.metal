// Calls of library functions that state the type, as templates of C++ would have it. A program's own template of the name
// comes first, also in such a call.
// run: numbers -b 0=arange:int32:32 -b 1=arange:float32:32 -b 2:out:int32:32 -b 3:out:float32:32 -b 4:out:int32:6 --grid 32
// let limited = lambda i: min(max(i, 5), 20)
// let of = lambda i: min(i, 7) + 100 * max(i, 9) + 10000 * limited(i) + 1000000 * abs(i - 10)
// expect buffer 2: f(i) for i in 32: of(i) + (-(-9 if i < 9 else -i))
// expect buffer 3: f(i) for i in 32: 4 * max(i, 9) + limited(i) + 3
// expect buffer 4: 255 65526 -2 4 1 7
#include <metal_stdlib>
using namespace metal;

namespace own {
template <typename T> T median3(T, T, T) { return T(7); }
} // namespace own

kernel void numbers(device const int *a [[buffer(0)]], device const float *x [[buffer(1)]], device int *out [[buffer(2)]],
                    device float *real [[buffer(3)]], device int *few [[buffer(4)]], uint i [[thread_position_in_grid]]) {
  constexpr int seven = metal::min<int>(7, 9u);
  out[i] = min<int>(a[i], seven) + 100 * max<int>(a[i], 9u) + 10000 * clamp<int>(a[i], 5u, short(20)) +
           1000000 * abs<int>(a[i] - 10) - metal::min<int>(-a[i], -9);
  real[i] = 4 * max<float>(x[i], 9) + clamp<float>(x[i], 5, 20) + isfinite<float>(x[i]) + isnan<half>(NAN) +
            isinf<float>(INFINITY) + isinf<float>(a[i]) + isordered<float>(x[i], NAN) + signbit<float>(x[i]);
  if (i) return;
  few[0] = max<uchar>(300 + 255 - 300, 3);
  few[1] = max3<ushort>(1, -10, 2);
  few[2] = min3<long>(1u, -2, ushort(3));
  few[3] = metal::median3<uint>(4, 2, 9);
  few[4] = isunordered<half>(NAN, 1) && isnormal<float>(1) && !isnormal<float>(0);
  using own::median3;
  few[5] = median3<int>(1, 2u, short(3));
}
