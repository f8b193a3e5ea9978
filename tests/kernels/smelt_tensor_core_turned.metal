// <smelt/tensor>: TensorCore takes operands by columns, and stores sums as half and bfloat, by rows and by columns.
// run: -b 0=arange:float32:64 -b 1:out:float32:1024 --grid 32 --threadgroup 32
// let a = lambda r, c: (r * 5 + c * 3) % 7 - 3
// let b = lambda r, c: (r * 2 + c * 5) % 9 - 4
// let total = lambda r, c: sum(a(r, k) * b(k, c) for k in range(16))
// expect buffer 1: f(i) for i in 1024: total(i % 256 // 16, i % 16)
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

// The sums are small integers, which half and bfloat hold.
template <typename T, typename D, typename Left, typename Right, typename Sums>
void multiply(threadgroup char *memory, Left left, Right right, Sums sums, device float *out, uint lane) {
    typedef TensorCore<T> core;
    const auto A = layout_tensor((threadgroup T *)memory, left);
    const auto B = layout_tensor((threadgroup T *)memory + 256, right);
    const auto C = layout_tensor((threadgroup D *)(memory + 2048), sums);
    for (int e = int(lane); e < 256; e += 32) {
        A(e / 16, e % 16) = T(float((e / 16 * 5 + e % 16 * 3) % 7 - 3));
        B(e / 16, e % 16) = T(float((e / 16 * 2 + e % 16 * 5) % 9 - 4));
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = 0; i < 4; i++) {
        auto total = core::zero();
        for (int k = 0; k < 2; k++)
            total = core::mma_op(core::load_a(A.template tile<8, 8>(i / 2, k)), core::load_b(B.template tile<8, 8>(k, i % 2)), total);
        core::store_d(C.template tile<8, 8>(i / 2, i % 2), total);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (int e = int(lane); e < 256; e += 32) out[e] = float(C(e / 16, e % 16));
    simdgroup_barrier(mem_flags::mem_threadgroup);
}

kernel void cores(device const float *unused [[buffer(0)]], device float *out [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup char memory[3072];
    multiply<float, float>(memory, column_major<16, 16>(), row_major<16, 16>(), column_major<16, 16>(), out, lane);
    multiply<half, half>(memory, column_major<16, 16>(), column_major(16, 16), row_major<16, 16>(), out + 256, lane);
    multiply<bfloat, bfloat>(memory, row_major(16, 16), column_major<16, 16>(), column_major(16, 16), out + 512, lane);
    multiply<half, bfloat>(memory, strided<16, 16, 1, 16>(), strided<16, 16, 16, 1>(), row_major<16, 16>(), out + 768, lane);
}
