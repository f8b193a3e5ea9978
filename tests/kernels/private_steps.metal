// Private arrays whose indexes are counters of loops: of many rounds, of a number of rounds that another loop's counter
// is, downwards, in steps, and one whose index comes from memory.
// run: k -b 0=arange:int32:64 -b 1:out:float32:64 --bytes 2=uint32:3 --grid 64 --threadgroup 64
// let passes = lambda x: [sum(x[:j + 1]) for j in range(len(x))]
// let summed = lambda i: (lambda x: sum(v * (j % 3) for j, v in enumerate(passes(passes(passes(x))))))([(j + i) % 5 for j in range(48)])
// let triangle = lambda i: (lambda t: [t.append(sum(t) + j + i % 4) for j in range(20)] and t[19])([])
// let down = lambda i: sum(j for j in range(39, 0, -2)) + 20 * (i % 3)
// let other = lambda i: 2 * (i % 32) + (i % 7)
// expect buffer 1: f(i) for i in 64: (summed(i) + triangle(i) + down(i) + other(i)) % 4096
#include <metal_stdlib>
using namespace metal;

kernel void k(device const int *a [[buffer(0)]], device float *out [[buffer(1)]], constant uint &passes [[buffer(2)]],
              uint i [[thread_position_in_grid]]) {
    uint x[48];
    for (uint j = 0; j < 48; j++) x[j] = (a[j] + a[i]) % 5;
    for (uint pass = 0; pass < passes; pass++)
        for (uint j = 1; j < 48; j++) x[j] += x[j - 1];
    uint sum = 0;
    for (uint j = 0; j < 48; j++) sum += x[j] * (j % 3);

    uint t[20];
    for (int j = 0; j < 20; j++) {
        uint all = j + a[i] % 4;
        for (int k = 0; k < j; k++) all += t[k];
        t[j] = all;
    }
    sum += t[19];

    uint d[40];
    for (int j = 39; j > 0; j -= 2) d[j] = a[j] + a[i] % 3;
    for (int j = 39; j > 0; j -= 2) sum += d[j];

    uint o[32];
    for (int j = 0; j < 32; j++) o[j] = 2 * a[j];
    o[a[i] % 32] += a[i] % 7;
    sum += o[a[i] % 32];
    out[i] = float(sum % 4096);
}
