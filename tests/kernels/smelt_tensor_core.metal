// <smelt/tensor>: TensorCore multiplies 8 × 8 parts of tiles in device and threadgroup memory; elements of float, half and bfloat.
// A and B are 16 × 16; C = A B by four products of each quarter.
// run: -b 0=arange:float32:256 -b 1:out:float32:768 --grid 32 --threadgroup 32
// let a = lambda r, c: (r * 5 + c * 3) % 7 - 3
// let b = lambda r, c: (r * 2 + c * 5) % 9 - 4
// expect buffer 1: f(i) for i in 768: sum(a(i % 256 // 16, k) * b(k, i % 16) for k in range(16))
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

template <typename T> void multiply(threadgroup T *left, threadgroup T *right, device float *out, uint lane) {
    typedef TensorCore<T> core;
    const auto A = layout_tensor(left, row_major<16, 16>());
    const auto B = layout_tensor(right, row_major<16, 16>());
    const auto C = layout_tensor(out, row_major(16, 16));
    for (int e = int(lane); e < 256; e += 32) {
        A(e / 16, e % 16) = T(float((e / 16 * 5 + e % 16 * 3) % 7 - 3));
        B(e / 16, e % 16) = T(float((e / 16 * 2 + e % 16 * 5) % 9 - 4));
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            typename core::result sums = core::zero();
            for (int k = 0; k < 2; k++)
                sums = core::mma_op(core::load_a(A.template tile<8, 8>(i, k)), core::load_b(B.template tile<8, 8>(k, j)), sums);
            core::store_d(C.template tile<8, 8>(i, j), sums);
        }
    simdgroup_barrier(mem_flags::mem_threadgroup);
}

kernel void cores(device const float *unused [[buffer(0)]], device float *out [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup float memory[512];
    multiply<float>((threadgroup float *)memory, (threadgroup float *)memory + 256, out, lane);
    multiply<half>((threadgroup half *)memory, (threadgroup half *)memory + 256, out + 256, lane);
    multiply<bfloat>((threadgroup bfloat *)memory, (threadgroup bfloat *)memory + 256, out + 512, lane);
}
