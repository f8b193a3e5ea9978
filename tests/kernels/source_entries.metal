// Function constants, constants computed from them, entries in every form, beside functions that are not compute.
// run: scale_all_h -b 0=arange:float16:4 -b 1:out:float16:4 --grid 4 --constant 0=true --constant 2=true
// expect buffer 1: f(i) for i in 4: 6 * i + 100 + 3.5
#include <metal_stdlib>
#include "source_entries.h"
using namespace metal;

constant bool flag [[function_constant(0)]];
constant int amount [[function_constant(1)]];
constant bool other [[function_constant(kOtherIndex)]], last [[function_constant(9)]];
constant bool both = flag && other;
constant int steps = is_function_constant_defined(amount) ? amount : 7;
constant float scale = float(steps) * 0.5f;
constant bool use_extra = is_function_constant_defined(last) && last;

#if __METAL_VERSION__ >= 310
#define HAVE_BFLOAT 1
#endif

namespace kernels { namespace {
template <typename T> T twice(T x) { return x + x; }
} 
template <typename T, int N = 2, typename U = vec<T, (N > 1 ? 4 : 2)>>
[[kernel]] void scale_all(device const T *in [[buffer(0)]], device T *out [[buffer(1)]],
                          device const T *extra [[buffer(2), function_constant(use_extra)]],
                          uint i [[thread_position_in_grid]]) {
  T v = twice(in[i]) * T(N);
  if (both) v += T(100);
  v += T(scale);
  if (use_extra) v += extra[i];
  out[i] = v;
}
template [[host_name("scale_all_" "f" "32")]] [[kernel]] decltype(scale_all<float>) scale_all<float>;
}
typedef decltype(kernels::scale_all<half, 3>) scale_t;
template [[host_name("scale_all_h")]] kernel scale_t kernels::scale_all<half, 3>;

template <typename T> kernel void copy(device const T *in, device T *out, uint i [[thread_position_in_grid]]) { out[i] = in[i]; }
template <typename T, int N> kernel void copy(device const T *in, device T *more, device T *out, uint i [[thread_position_in_grid]]) {
  out[i] = in[i] + N;
}
#define JOIN(a, b) a##_##b
#define INSTANTIATE(name, type, ...) \
  template [[host_name(#name "_" #type)]] [[kernel]] void copy<type __VA_OPT__(,) __VA_ARGS__>(device const type *, device type *, \
     uint);
#define INSTANTIATE_ALL(name) INSTANTIATE(name, float) INSTANTIATE(name, int)
INSTANTIATE_ALL(copy)
template [[host_name("copy_4")]] kernel void copy<float, 4>(device const float *in [[buffer(0)]], device float *more, device float *out, uint i [[thread_position_in_grid]]);
instantiate_kernel("copy_i64", copy, int64_t)

#define BINARY(op, name) kernel void name(device const float *a [[buffer(A)]], device float *b [[buffer(A + 1)]], device float *c, \
  uint i [[thread_position_in_grid]]) { c[i] = a[i] op b[i]; }
BINARY(+, add) BINARY(*, mul)
kernel void declared_first(device float *x);
kernel void declared_first(device float *x) { x[0] = 1; }
vertex float4 corner(uint i [[vertex_id]]) { return float4(i); }
struct Out { float4 position [[position]]; };
fragment half4 shade(Out in [[stage_in]]) { return half4(1); }
kernel void blur(texture2d<float, access::read> t [[texture(0)]], device float *o) { o[0] = t.read(uint2(0)).x; }
