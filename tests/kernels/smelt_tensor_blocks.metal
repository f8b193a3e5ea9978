// <smelt/tensor>: a tensor with a blocked layout: its elements, its sizes, its blocks as tiles, and edges.
// run: -b 0=arange:float32:120 -b 1:out:float32:248 -b 2:out:int32:4 --grid 32 --threadgroup 32
// let at = lambda r, c: (r // 2 + 4 * (c // 3)) * 6 + r % 2 * 3 + c % 3
// let doubled = lambda i: 2 * at(i // 15, i % 15)
// expect buffer 1: f(i) for i in 248: doubled(i) if i < 120 else i - 120 if i < 240 else [18, 19, 20, 21, 22, 23, 0, 0][i - 240]
// expect buffer 2: f(i) for i in 4: [8, 15, 2, 3][i]
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

kernel void blocks(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], device int *sizes [[buffer(2)]],
                   uint i [[thread_position_in_grid]]) {
    // 4 × 5 blocks, by columns, of 2 × 3 elements.
    const auto layout = blocked(column_major<4, 5>(), row_major<2, 3>());
    const auto from = layout_tensor(x, layout);
    const auto to = layout_tensor(y, row_major<8, 15>());
    if (i < 8)
        for (int c = 0; c < from.dim(1); c++) to(int(i), c) = 2 * from(int(i), c);
    // The blocks, one by one, in another layout of blocks of that size.
    const auto copied = layout_tensor(y + 120, blocked(column_major(4, 5), row_major<2, 3>()));
    if (i < 20) copied.tile<2, 3>(int(i) % 4, int(i) / 4).copy_from(from.tile<2, 3>(int(i) % 4, int(i) / 4));
    if (i != 31) return;
    const auto block = from.tile<2, 3>(3, 0);
    for (int e = 0; e < 6; e++) y[240 + e] = block(e / 3, e % 3);
    // Outside.
    const auto edge = from.masked();
    y[246] = edge.load(8, 0);
    y[247] = edge.tile<2, 3>(4, 0).load(1, 1);
    sizes[0] = from.shape().x, sizes[1] = from.shape().y, sizes[2] = block.dim(0), sizes[3] = block.dim(1);
}
