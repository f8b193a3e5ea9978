// Threadgroups of several rows whose length is no multiple of 32, in full and at the edges of the grid: gangs lie in
// rows. Threads see their own positions and numbers, and whether neighbours are there is asked of each.
// for group: 24,3 48,2 16,3 33,2 17,5,2 13,4 32,8 20,2
// for grid: 57,7,2 40,5,3 96,9,1 31,1,4 16,3,1
// let W = grid[0]
// let H = grid[1]
// let D = grid[2]
// let G = (*group, 1)
// let X = lambda i: i % W
// let Y = lambda i: i // W % H
// let Z = lambda i: i // W // H
// let cut = lambda at, n, g: min(g, n - at // g * g)
// let index = lambda i: X(i) % G[0] + cut(X(i), W, G[0]) * (Y(i) % G[1] + cut(Y(i), H, G[1]) * (Z(i) % G[2]))
// let there = lambda i, d: 0 <= X(i) * 2 + d < 2 * W - 3 and Y(i) > 0
// run: -b 0=arange:int32:2000 -b 1:out:int32:1000 -b 2:out:int32:1000 -b 3:out:uint8:1000 --grid {grid} --threadgroup {group}
// expect buffer 1: f(i) for i in 1000: index(i) * 1000 + X(i) % G[0] * 10 + cut(X(i), W, G[0]) if i < W * H * D else 0
// expect buffer 2: f(i) for i in 1000: sum(X(i) * 2 + d + Y(i) for d in range(-2, 3) if there(i, d)) if i < W * H * D else 0
// expect buffer 3: f(i) for i in 1000: (X(i) * 3 + Y(i)) % 256 if i < W * H * D else 0
#include <metal_stdlib>
using namespace metal;

kernel void rows(const device int *x [[buffer(0)]], device int *place [[buffer(1)]], device int *around [[buffer(2)]],
                 device uchar *bytes [[buffer(3)]], uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]],
                 uint3 in [[thread_position_in_threadgroup]], uint index [[thread_index_in_threadgroup]],
                 uint3 group [[threads_per_threadgroup]]) {
    uint i = (at.z * size.y + at.y) * size.x + at.x;
    int sum = 0;
    for (int d = -2; d <= 2; d++) {
        int column = int(at.x) * 2 + d;
        if (column >= 0 && column < 2 * int(size.x) - 3 && at.y > 0) sum += x[column + at.y];
    }
    place[i] = index * 1000 + in.x * 10 + group.x;
    around[i] = sum;
    bytes[i] = uchar(at.x * 3 + at.y);
}
