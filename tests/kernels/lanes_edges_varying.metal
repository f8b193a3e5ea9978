// A condition on a position that later rounds of a loop take from memory.
// for group: 64 256
// run: -b 0=arange:int32:640 -b 1=arange:int32:64 -b 2:out:int32:640 --bytes 3=int32:600,3 --grid 640 --threadgroup {group}
// let then = lambda x: x % 64 * 11
// let taken = lambda x: x if x < 600 else 0
// let ahead = lambda i: sum(min(i + k, 599) for k in range(1, 9))
// expect buffer 2: f(i) for i in 640: ahead(i) + taken(i) + taken(then(i)) + taken(then(then(i)))
#include <metal_stdlib>
using namespace metal;

struct sizes { int n, rounds; };

kernel void varying(device const int *image [[buffer(0)]], device const int *next [[buffer(1)]], device int *out [[buffer(2)]],
                    constant sizes &p [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    int x = i, sum = 0;
    for (int ahead = 1; ahead < 9; ahead++) sum += image[min(x + ahead, p.n - 1)];
    for (int round = 0; round < p.rounds; round++) {
        if (x < p.n) sum += image[x];
        x = next[x & 63] * 11;
    }
    out[i] = sum;
}
