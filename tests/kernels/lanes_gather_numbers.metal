// Indexes known only at run time, from a base that all lanes share: signed and unsigned, on both sides of the base and of
// 2^31, of neighbours and of others, of 8 bits, for elements of 1 to 8 bytes, with some lanes off.
// for step: 1 3 0
// for n: 77 256
// run: -b 0=arange:uint32:256 -b 1=arange:float32:4096 -b 2=arange:uint8:4096 -b 3=arange:int64:4096 -b 4=arange:int16:4096 -b 5:out:float32:1536 -b 6:out:float32:1024 -b 7:out:float32:256 --bytes 8=int32:{step},{n},1000 --grid 256 --threadgroup 64
// expect buffer 5: f(i) for i in 1536: 0 if i % 256 >= n else [1000 + step * (i % 256) - 500, (999 + step * (i % 256)) % 256, 1000 - step * (i % 256), 2 * (1000 + step * (i % 256)) + 1, step * (i % 256) % 256, 1000 + (step * (i % 256) + 128) % 256 - 128][i // 256]
// expect buffer 6: f(i) for i in 1024: (i - 100) // step + 0.5 if step and 100 <= i < 100 + step * n and (i - 100) % step == 0 else 0
// expect buffer 7: f(i) for i in 256: 1000 + step * i if i < n and i % 3 else 0
#include <metal_stdlib>
using namespace metal;

struct pair {
    short first, second;
};

kernel void numbers(device const uint *index [[buffer(0)]], device const float *x [[buffer(1)]], device const uchar *bytes [[buffer(2)]],
                    device const long *words [[buffer(3)]], device const pair *pairs [[buffer(4)]], device float *out [[buffer(5)]],
                    device float *spread [[buffer(6)]], device float *some [[buffer(7)]], constant int *sizes [[buffer(8)]],
                    uint i [[thread_position_in_grid]]) {
    int step = sizes[0], at = sizes[2];
    uint k = index[i] * uint(step);
    if (i >= uint(sizes[1])) return;
    device const float *middle = x + at;
    out[i] = middle[int(k) - 500];
    device const uchar *low = bytes + at - 2147483649u; // indexes on both sides of 2^31
    out[256 + i] = low[k + 2147483648u];
    out[512 + i] = float((words + at)[-int(k)]);
    out[768 + i] = (pairs + at)[k].second;
    out[1024 + i] = x[uchar(k)];
    out[1280 + i] = middle[char(k)];
    if (step) (spread + 100)[int(k)] = float(i) + 0.5f;
    if (i % 3) some[i] = middle[k];
}
