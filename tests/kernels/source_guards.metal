// Arguments that function constants guard: what is absent need not be bound, two may share an index, an index may be a
// constant of the kernel's namespace.
// for more: 0 1
// run: guarded -b 0:out:float32:6 -b 3=arange:float32:6 --constant 0=true --constant 2={more} --bytes {more}1=float32:5 --grid 6 --threadgroup 6
// expect buffer 0: f(i) for i in 6: i + (7 if more else 0)
#include <metal_stdlib>
using namespace metal;

namespace settings {
constant bool plain [[function_constant(0)]];
constant bool wanted [[function_constant(1)]];
constant int amount [[function_constant(2)]];
constant bool shared_too = is_function_constant_defined(wanted) ? wanted : false;
constant bool other = !plain;
constant bool more = plain && amount > 0;
enum { kOut, kIn = 3 };
template <typename T>
kernel void guarded(device float *out [[buffer(kOut)]], device T *x [[buffer(kIn), function_constant(plain)]],
                    device int *y [[buffer(kIn), function_constant(other)]],
                    constant float &scale [[buffer(kIn + 8), function_constant(more)]],
                    threadgroup float *t [[threadgroup(0), function_constant(shared_too)]],
                    uint i [[thread_position_in_grid]]) {
  float v = plain ? x[i] : y[i] * 2;
  if (more) v += scale + 2;
  if (shared_too) t[i] = v;
  out[i] = v;
}
}
template [[host_name("guarded")]] kernel void settings::guarded<float>(device float *, device float *, device int *, constant float &, threadgroup float *, uint);
