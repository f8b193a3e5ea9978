// Neighbours in a row that wraps around: gangs away from its ends load neighbours. Sizes of 0 and less, and a size that
// the kernel itself replaces by 1 in some lanes, give the same values as in each thread.
// for size: 1 3 33 64 100 700 0 -1 -64
// for group: 32 64 256
// let R = lambda a, n: a if n == 0 else abs(a) % abs(n) * (1 if a >= 0 else -1)
// run: -b 0=arange:int32:3000 -b 1:out:int32:1000 -b 2:out:int32:1000 --bytes 3=int32:{size} --grid 1000 --threadgroup {group}
// expect buffer 1: f(i) for i in 1000: (800 + R(i + size - 1, size)) * 7 + 800 + R(i + 1, size)
// expect buffer 2: f(i) for i in 1000: 800 + R(i + 70, 1 if i > 500 else size)
#include <metal_stdlib>
using namespace metal;

kernel void wrapped(device const int *in [[buffer(0)]], device int *around [[buffer(1)]], device int *some [[buffer(2)]],
                    constant int &size [[buffer(3)]], uint i [[thread_position_in_grid]]) {
    const int c = i;
    around[i] = in[800 + (c + size - 1) % size] * 7 + in[800 + (c + 1) % size];
    some[i] = in[800 + (c + 70) % (c > 500 ? 1 : size)];
}
