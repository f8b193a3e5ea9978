// Loops over neighbours that go on while several comparisons hold, or one of them, or whose bound has 64 bits: all lanes stay, some, or none.
// for group: 32 256 100
// for n: 0 1 31 32 64 255 256 257 1000
// for m: 0 40 256 900
// run: -b 0:out:int32:300 -b 1:out:int32:300 -b 2:out:int32:300 -b 3:out:int32:1400 -b 4:out:int32:300 --bytes 5=uint64:{n} --bytes 6=uint32:{m} --grid 300 --threadgroup {group}
// expect buffer 0: f(i) for i in 300: sum(k % 7 + 1 for k in range(i, 5000, 64) if k < n and k < m)
// expect buffer 1: f(i) for i in 300: sum(k % 5 + 1 for k in range(i, 5000, 64) if k < n or k < m)
// expect buffer 2: f(i) for i in 300: sum(k % 3 + 1 for k in range(i, n, 32))
// expect buffer 3: f(i) for i in 1400: i % 97 if i < n else 0
// expect buffer 4: f(i) for i in 300: len(range(i + n, -1, -40)) if m else len(range(i, n, 40))
#include <metal_stdlib>
using namespace metal;

kernel void joined(device int *both [[buffer(0)]], device int *either [[buffer(1)]], device int *wide [[buffer(2)]],
                   device int *spread [[buffer(3)]], device int *down [[buffer(4)]], constant ulong &bound [[buffer(5)]],
                   constant uint &m [[buffer(6)]], uint i [[thread_position_in_grid]]) {
    uint n = uint(bound);
    int sum = 0;
    for (uint k = i; bool(int(k < n) & int(m > k)); k += 64) sum += int(k % 7) + 1;
    both[i] = sum;
    sum = 0;
    for (uint k = i; bool(int(k < n) | int(m > k)); k += 64) sum += int(k % 5) + 1;
    either[i] = sum;
    sum = 0;
    for (uint k = i; k < bound; k += 32) sum += int(k % 3) + 1;
    wide[i] = sum;
    for (uint k = i; k < bound; k += 300) spread[k] = int(k % 97);
    sum = 0;
    if (m) {
        for (int k = int(i + n); !(k < 0); k -= 40) sum++;
    } else {
        for (uint k = i; !(k >= n); k += 40) sum++;
    }
    down[i] = sum;
}
