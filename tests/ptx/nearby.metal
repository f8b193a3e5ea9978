// Windows at the edges of images: the accesses of a window share addresses (test_nearby.py).
#include <metal_stdlib>
using namespace metal;

// Indexes with a sign.
kernel void window(device const int *a [[buffer(0)]], device int *o [[buffer(1)]], constant int &w [[buffer(2)]], constant int &h [[buffer(3)]],
                   uint2 g [[thread_position_in_grid]]) {
    const int x = g.x, y = g.y;
    if (x >= w || y >= h) return;
    int sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -2; dx <= 2; dx++)
            if (x + dx >= 0 && x + dx < w && y + dy >= 0 && y + dy < h) sum += a[(y + dy) * w + x + dx] * (dy * 5 + dx + 9);
    o[y * w + x] = sum;
}

// Indexes without one: before the first element, x - 1 wraps. Stores keep their own addresses.
kernel void spread(device const uchar *a [[buffer(0)]], device uint *o [[buffer(1)]], constant uint &w [[buffer(2)]], uint x [[thread_position_in_grid]]) {
    uint sum = 0;
    for (uint k = 0; k < 4; k++)
        if (x + k - 2 < w) sum += a[x + k - 2] << k;
    if (x - 1 < w) o[3 * (x - 1) + 1] = sum;
    if (x < w) o[3 * x] = sum + 1;
    if (x + 1 < w) o[3 * x + 5] = sum + 2;
}

// The number of rounds is known only at run time.
kernel void radius(device const int *a [[buffer(0)]], device int *o [[buffer(1)]], constant int &n [[buffer(2)]], constant int &rounds [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
    int sum = 0;
    for (int t = 0; t < rounds; t++) {
        const int x = int(i) + t - rounds / 2;
        if (x < 0 || x >= n) continue;
        sum = sum * 3 + a[x];
    }
    o[i] = sum;
}

// All loads are in one block, but their indexes, of 32 bits, may wrap before they are extended.
kernel void match(device const uchar *a [[buffer(0)]], device const uchar *b [[buffer(1)]], device uint *o [[buffer(2)]], constant uint &w [[buffer(3)]],
                  constant uint &h [[buffer(4)]], uint2 g [[thread_position_in_grid]]) {
    if (g.x < 5 || g.x + 3 >= w || g.y < 1 || g.y + 1 >= h) return;
    uint least = -1;
    for (uint shift = 0; shift < 3; shift++) {
        uint sum = 0;
        for (int dy = -1; dy <= 1; dy++)
            for (int dx = -3; dx <= 3; dx++) {
                const int left = a[(g.y + dy) * w + g.x + dx], right = b[(g.y + dy) * w + g.x + dx - shift];
                sum += (left - right) * (left - right);
            }
        least = min(least, sum);
    }
    o[g.y * w + g.x] = least;
}
