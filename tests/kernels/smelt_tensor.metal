// <smelt/tensor>: tiles, slices, vectors, masked edges, the elements of a thread, copies into threadgroup memory and out of it,
// sums in a thread's own matrix. A is 10 × 12 with a[r][c] = 12 r + c.
// run: -b 0=arange:float32:120 -b 1:out:float32:256 -b 2:out:float32:120 --bytes 3=int32:10,12,0,0 --grid 32 --threadgroup 32
// let a = lambda r, c: 12 * r + c if r < 10 and c < 12 else 0
// let part = lambda i: i // 32
// let r = lambda i: i % 32 // 8
// let c = lambda i: i % 8
// let outer = lambda i, j: sum((k + i + 1) * (k + 2 * j) for k in range(3))
// expect buffer 1: f(i) for i in 256: (a(4 + r(i), c(i)), a(8 + r(i), 8 + c(i)), a(3 + r(i), 2 + c(i)), a(i % 32 // 3, 4 * (i % 32 % 3) + 1) if i % 32 < 30 else 7, a(2 + i % 32 // 8, 3 + i % 8), outer(i % 32 // 4 % 4, i % 4) if i % 32 < 16 else 9, (10, 12, 4, 8)[i % 4], 5)[part(i)]
// expect buffer 2: f(i) for i in 120: i + 1000 if i // 12 >= 8 and i % 12 >= 8 else 0
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

kernel void tensors(device const float *a [[buffer(0)]], device float *out [[buffer(1)]], device float *back [[buffer(2)]],
                    constant int2 &size [[buffer(3)]], uint index [[thread_position_in_grid]]) {
    const int i = int(index), row = i / 8, column = i % 8;
    const auto A = layout_tensor(a, row_major(size.x, size.y));
    for (int e = i; e < 120; e += 32) back[e] = 0;
    threadgroup_barrier(mem_flags::mem_device);
    // Tiles and slices.
    out[i] = A.tile<4, 8>(1, 0)(row, column);
    out[32 + i] = A.masked().tile<4, 8>(2, 1).load(row, column);
    out[64 + i] = A.slice<4, 8>(3, 2)(row, column);
    // Vectors of a row.
    out[96 + i] = i < 30 ? A.vectorize<4>()(i / 3, i % 3).y : 7.0f;
    // Every thread copies its share, then reads another's.
    threadgroup float memory[32];
    const auto tile = layout_tensor((threadgroup float *)memory, row_major<4, 8>());
    copy_async<2, 4>(tile, A.slice<4, 8>(2, 3), i < 8 ? i : i % 8);
    copy_async_wait_all();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[128 + (31 - i)] = tile(3 - row, 7 - column);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    // Outer products, summed in registers.
    LocalTensor<float, 4, 4> sums;
    LocalTensor<float, 4, 1> left;
    LocalTensor<float, 1, 4> right;
    sums.fill(0);
    for (int k = 0; k < 3; k++) {
        for (int e = 0; e < 4; e++) left(e, 0) = float(k + e + 1), right(0, e) = float(k + 2 * e);
        outer_product_acc(sums, left, right);
    }
    out[160 + i] = i < 16 ? sums(i / 4, i % 4) : 9.0f;
    const int dims[4] = {A.dim(0), A.dim(1), tile.shape().x, tile.shape().y};
    out[192 + i] = float(dims[i % 4]);
    // Filled by one thread, then copied past an edge: what does not exist is not written.
    if (i == 0) tile.fill(5);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[224 + i] = tile(row, column);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    tile(row, column) = float((8 + row) * 12 + 8 + column + 1000);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const auto edge = layout_tensor(back, row_major(size.x, size.y)).masked().tile<4, 8>(2, 1);
    edge.distribute<4, 8>(i).copy_from(tile.distribute<4, 8>(i));
}
