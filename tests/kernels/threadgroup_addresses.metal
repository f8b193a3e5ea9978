// Addresses in threadgroup memory that are themselves kept in memory: in arrays that no unrolling takes apart, in
// structures beside other members.
// run: k -b 0=arange:int32:64 -b 1:out:float32:64 --grid 64 --threadgroup 64
// let row = lambda i: (lambda r: (r if r % 2 else 100 + 2 * r) + (1 if r % 2 else 2))(i % 24)
// let held = lambda i: (lambda n: (lambda r: (r + n if r % 2 else 100 + 2 * (r + n)))((n + i) % 24) + n)((i + 1) % 20)
// expect buffer 1: f(i) for i in 64: row(i) + held(i) + (1000 if i % 3 == 0 else 0)
#include <metal_stdlib>
using namespace metal;

struct holder {
    threadgroup float *p;
    int n;
    threadgroup float *q;
};

kernel void k(device const int *a [[buffer(0)]], device float *out [[buffer(1)]],
              uint i [[thread_position_in_threadgroup]]) {
    threadgroup float x[128], y[128];
    threadgroup float *rows[24];
    holder held[20];
    for (uint j = i; j < 128; j += 64) {
        x[j] = j;
        y[j] = 100 + 2 * j;
    }
    for (int r = 0; r < 24; r++) rows[r] = (a[r] & 1) ? x + r : y + r;
    for (int n = 0; n < 20; n++) {
        held[n].p = rows[(n + a[i]) % 24];
        held[n].n = n;
        held[n].q = x + 64 + a[n];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    holder h = held[a[(i + 1) % 64 == 0 ? 63 : i] == int(i) ? (i + 1) % 20 : 0];
    const float steps = *h.q - 64;
    out[i] = rows[a[i] % 24][1] + h.p[h.n] + steps + (a[i] % 3 == 0 ? 1000.0f : 0.0f);
}
