// Attributes between a kernel's name and its arguments, of functions, templates and their instantiations.
// for kernel: first second third inner::fourth
// let of = lambda i, name: {"first": i + 1, "second": i * 3, "third": i * 3, "inner::fourth": 4}[name]
// run: {kernel} -b 0:out:uint32:20 --grid 20 --threadgroup 4 --metal-version 4.1
// expect buffer 0: f(i) for i in 20: of(i, kernel)
#include <metal_stdlib>
using namespace metal;

kernel void a [[host_name("first")]] (device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = i + 1;
}

template <typename T, int times>
kernel void b [[max_total_threads_per_threadgroup(64)]]
    [[maybe_unused]] (device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = T(i) * times;
}
template [[host_name("second")]] kernel void b<uint, 3>(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]);
template [[host_name("third")]] kernel void b<int, 3> [[maybe_unused]] (device int *out [[buffer(0)]],
                                                                        uint i [[thread_position_in_grid]]);

namespace inner {
void fourth [[kernel]] [[required_threads_per_threadgroup(4, 1, 1)]] (device uint *out [[buffer(0)]],
                                                                    uint i [[thread_position_in_grid]],
                                                                    uint threads [[threads_per_threadgroup]]) {
  out[i] = threads;
}
} // namespace inner
