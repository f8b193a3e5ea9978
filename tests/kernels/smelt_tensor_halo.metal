// <smelt/tensor>: masked slices that begin before the first row and column, or end after the last: what lies outside loads as 0
// and is not stored. Parts of them: tiles, a thread's elements, copies into threadgroup memory. A is 5 × 7 with a[r][c] = 1 + 7 r + c.
// run: -b 0=arange:float32:36 -b 1:out:float32:160 --bytes 2=int32:5,7 --grid 32 --threadgroup 32
// let a = lambda r, c: 1 + 7 * r + c if 0 <= r < 5 and 0 <= c < 7 else 0
// let r = lambda i: i % 32 // 8
// let c = lambda i: i % 8
// let back = lambda i: 100 + i if 1 <= i // 8 and 2 <= i % 8 else -1
// expect buffer 1: f(i) for i in 160: (a(r(i) - 2, c(i) - 3), a(r(i) + 3, c(i) + 4), a(r(i) - 1, c(i) - 5), a(r(i) - 6 + 4, c(i) - 10 + 8), back(i % 32))[i // 32]
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

kernel void halo(device const float *x [[buffer(0)]], device float *out [[buffer(1)]], constant int2 &size [[buffer(2)]],
                 uint index [[thread_position_in_grid]]) {
    const int i = int(index), row = i / 8, column = i % 8;
    const auto A = layout_tensor(x + 1, row_major(size.x, size.y)).masked();
    // Before both edges, and after both.
    out[i] = A.slice<4, 8>(-2, -3).load(row, column);
    out[32 + i] = A.slice<4, 8>(3, 4).load(row, column);
    // Each thread copies what is its own: every second row and every fourth column.
    threadgroup float memory[32];
    const auto tile = layout_tensor((threadgroup float *)memory, row_major<4, 8>());
    if (i < 8) copy_async<2, 4>(tile, A.slice<4, 8>(-1, -5), i);
    copy_async_wait_all();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[64 + i] = tile(row, column);
    // A tile of a slice, and a slice of that.
    out[96 + i] = A.slice<12, 24>(-6, -10).tile<4, 8>(1, 1).slice<4, 8>(0, 0).load(row, column);
    // Stores: the first row and the first two columns do not exist.
    out[128 + i] = -1;
    threadgroup_barrier(mem_flags::mem_device);
    if (i == 0) {
        LocalTensor<float, 4, 8> numbers;
        for (int e = 0; e < 32; e++) numbers(e / 8, e % 8) = float(100 + e);
        layout_tensor(out + 138, strided(3, 6, 8, 1)).masked().slice<4, 8>(-1, -2).copy_from(numbers);
    }
}
