// <smelt/tensor>: two stages of threadgroup memory. While one tile is multiplied, the next is copied, as vectors and as elements.
// A is 8 × 24 with (3 r + k) % 5 - 2, B is 24 × 8 with (k + 2 c) % 7 - 3, C = A · B by steps of 8.
// run: -b 0:out:float32:64 --grid 32 --threadgroup 32 -b 1:out:float32:192 -b 2:out:float32:192
// let a = lambda r, k: (3 * r + k) % 5 - 2
// let b = lambda k, c: (k + 2 * c) % 7 - 3
// expect buffer 0: f(i) for i in 64: sum(a(i // 8, k) * b(k, i % 8) for k in range(24))
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

kernel void stages(device float *out [[buffer(0)]], device float *a [[buffer(1)]], device float *b [[buffer(2)]],
                   uint index [[thread_index_in_threadgroup]]) {
    const int t = int(index);
    for (int i = t; i < 192; i += 32) {
        a[i] = (3 * (i / 24) + i % 24) % 5 - 2;
        b[i] = (i / 8 + 2 * (i % 8)) % 7 - 3;
    }
    threadgroup_barrier(mem_flags::mem_device);
    threadgroup float4 a_memory[2][16];
    threadgroup float b_memory[2][64];
    const auto A = layout_tensor((device const float *)a, row_major<8, 24>());
    const auto B = layout_tensor((device const float *)b, row_major<24, 8>());
    auto bring = [&](int step) {
        const auto to = layout_tensor((threadgroup float *)a_memory[step % 2], row_major<8, 8>());
        if (t < 16) copy_async<8, 2>(to.vectorize<4>(), A.tile<8, 8>(0, step).vectorize<4>(), t);
        copy_async<4, 8>(layout_tensor((threadgroup float *)b_memory[step % 2], row_major<8, 8>()), B.tile<8, 8>(step, 0), t);
    };
    LocalTensor<float, 2, 1> sums, left;
    LocalTensor<float, 1, 1> right;
    sums.fill(0);
    bring(0);
    for (int step = 0; step < 3; step++) {
        copy_async_wait_all();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (step + 1 < 3) bring(step + 1);
        const auto a_tile = layout_tensor((threadgroup float *)a_memory[step % 2], row_major<8, 8>());
        const auto b_tile = layout_tensor((threadgroup float *)b_memory[step % 2], row_major<8, 8>());
        for (int k = 0; k < 8; k++) {
            left.copy_from(a_tile.tile<2, 1>(t / 8, k));
            right.copy_from(b_tile.tile<1, 1>(k, t % 8));
            outer_product_acc(sums, left, right);
        }
    }
    layout_tensor(out, row_major<8, 8>()).tile<2, 1>(t / 8, t % 8).copy_from(sums);
}
