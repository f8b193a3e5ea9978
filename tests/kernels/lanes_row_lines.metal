// Loops in which each thread steps through a row of its own, in rounds of a cache line: loads and stores of words and halves, in place
// and to other buffers, rows of any length and alignment, bounds that are signed or unsigned, lanes that are off, groups at the edge.
// for n: 1 3 4 15 16 17 31 32 36 49 64
// run: -b 0=arange:float32:6700 -b 1=arange:float16:6700 -b 2:out:float32:6700 -b 3:out:float16:6700 -b 4:out:int32:6700 -b 5:out:float32:100 -b 6:out:int32:100 --bytes 7=uint32:{n} --grid 100 --threadgroup 64
// let half = lambda x: x if x <= 2048 else 2 * round(x / 2) if x <= 4096 else 4 * round(x / 4)
// expect buffer 2: f(i) for i in 6700: (i - 1) * 2 + (i - 1) % n if 0 < i <= 100 * n and (i - 1) // n % 3 != 1 else 0
// expect buffer 3: f(i) for i in 6700: half(half(i) + 1) if i < 100 * n else 0
// expect buffer 4: f(i) for i in 6700: i * 3 + 1 if i < 100 * n else 0
// expect buffer 5: f(i) for i in 100: sum(half(i * n + k) - (k & 3) for k in range(n))
// expect buffer 6: f(i) for i in 100: max(i * n + k ^ 5 for k in range(n))
#include <metal_stdlib>
using namespace metal;

kernel void lines(device const float *words [[buffer(0)]], device const half *halves [[buffer(1)]], device float *out [[buffer(2)]],
                  device half *copies [[buffer(3)]], device int *own [[buffer(4)]], device float *sums [[buffer(5)]],
                  device int *tops [[buffer(6)]], constant uint &n [[buffer(7)]], uint row [[thread_position_in_grid]]) {
    float sum = 0;
    for (uint k = 0; k < n; k++) sum += float(halves[row * n + k]) - float(k & 3);
    sums[row] = sum;
    for (uint k = 0; k < n; k++) own[row * n + k] = int(row * n + k);
    int top = 0;
    for (int k = 0; k < int(n); k++) top = max(top, own[int(row * n) + k] ^ 5);
    tops[row] = top;
    for (uint k = 0; k < n; k++) copies[row * n + k] = halves[row * n + k] + 1.0h;
    for (uint k = 0; k < n; k++) own[row * n + k] = own[row * n + k] * 3 + 1;
    if (row % 3 != 1)
        for (uint k = 0; k < n; k++) out[row * n + k + 1] = words[row * n + k] * 2 + float(k);
}
