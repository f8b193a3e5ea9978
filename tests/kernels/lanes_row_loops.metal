// Each thread steps through a row of its own, of any length, from any place, upwards: a few rounds at once, and the rest.
// for length: 1 4 7 29
// run: -b 0=arange:float32:70x29 -b 1=arange:uint8:70x29 -b 2=arange:int16:70x29 -b 3:out:int64:70x8 --bytes 4=int32:{length} --grid 70 --threadgroup 32
// expect buffer 3: f(i) for i in 560: (lambda t, k, n: [sum(t * 29 + j for j in range(n)), sum((t * 29 + j) % 256 * (j + 1) for j in range(n)), sum((t * 29 + j) * (j % 3) for j in range(1, n)), sum(t * 29 + j for j in range(n - 1)), t * 29 + n - 1, max((t * 29 + j) * 7 % 31 for j in range(n)), sum(t * 29 + j for j in range(n) if (t + j) % 3), n + 5][k])(i // 8, i % 8, length)
#include <metal_stdlib>
using namespace metal;

kernel void rows(device const float *x [[buffer(0)]], device const uchar *bytes [[buffer(1)]], device const short *shorts [[buffer(2)]],
                 device long *out [[buffer(3)]], constant int &length [[buffer(4)]], uint i [[thread_position_in_grid]]) {
    device const float *row = x + i * 29;
    long sum = 0, weighed = 0, later = 0, before = 0, most = 0, chosen = 0;
    for (int k = 0; k < length; k++) {
        before = sum;
        sum += long(row[k]);
    }
    for (uint k = 0; k != uint(length); k++) weighed += bytes[i * 29 + k] * long(k + 1);
    for (ulong k = 1; k < ulong(length); k++) later += shorts[i * 29 + k] * long(k % 3);
    float last = 0;
    for (int k = -5; k < length - 5; k++) {
        last = x[i * 29 + k + 5];
        most = max(most, long(shorts[int(i * 29) + k + 5]) * 7 % 31);
    }
    int rounds = 5;
    for (uint k = 0; k < uint(length); k++, rounds++) chosen += (i + k) % 3 ? long(x[i * 29 + k]) : 0;
    long all[8] = {sum, weighed, later, before, long(last), most, chosen, rounds};
    for (uint k = 0; k < 8; k++) out[i * 8 + k] = all[k];
}
