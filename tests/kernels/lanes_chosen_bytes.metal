// Bytes of threads that take different paths, all known when the kernel is compiled.
// run: -b 0:out:uint8:64 -b 1:out:uint16:64 --grid 64 --threadgroup 64
// expect buffer 0: f(i) for i in 64: i + 100 + 5 if i < 7 else i - 1 + 5
// expect buffer 1: f(i) for i in 64: (7 if i % 32 == 0 else 3 * i + (3 if i < 8 else 0)) + (7 if i < 8 else 0)
#include <metal_stdlib>
using namespace metal;

kernel void chosen(device uchar *out [[buffer(0)]], device ushort *shorts [[buffer(1)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup float part[64];
    threadgroup uchar b[64];
    threadgroup ushort u[64];
    threadgroup long w[64];
    part[t] = 0;
    w[t] = 0;
    b[t] = t;
    u[t] = t * 3;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (t < 7) b[t] += 100; else b[t] -= 1;
    if (t < 8) u[t] += 3;
    if (t != 0) part[t] += 0.25f;
    if ((t & 31) < 5) w[t] += 3000;
    if ((t & 31) == 0) u[t] = 7;
    if (t / 8 == 0) u[t] += 7;
    b[t] += 5;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (part[t] + w[t] < 5000) out[t] = b[t];
    shorts[t] = u[t];
}
