// <smelt/tensor>: TensorCore multiplies bytes, signed and not. A is 32 × 48, B 48 × 24; C = A B by tiles of 16 × 8.
// run: -b 0=arange:float32:256 -b 1:out:int32:1536 --grid 32 --threadgroup 32
// let a = lambda r, c: (r * 37 + c * 11) % 256
// let b = lambda r, c: (r * 23 + c * 101) % 256
// let s = lambda v: v - 256 * (v > 127)
// expect buffer 1: f(i) for i in 1536: sum(s(a(i // 24, k)) * s(b(k, i % 24)) if i < 768 else a(i % 768 // 24, k) * b(k, i % 24) for k in range(48))
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

template <typename T> void multiply(threadgroup T *left, threadgroup T *right, device int *out, uint lane) {
    typedef TensorCore<T> core;
    const auto A = layout_tensor(left, row_major<32, 48>());
    const auto B = layout_tensor(right, row_major<48, 24>());
    const auto C = layout_tensor(out, row_major(32, 24));
    for (int e = int(lane); e < 32 * 48; e += 32) A(e / 48, e % 48) = T(e / 48 * 37 + e % 48 * 11);
    for (int e = int(lane); e < 48 * 24; e += 32) B(e / 24, e % 24) = T(e / 24 * 23 + e % 24 * 101);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = 0; i < 32 / core::rows; i++)
        for (int j = 0; j < 24 / core::columns; j++) {
            typename core::result sums = core::zero();
            for (int k = 0; k < 48 / core::depth; k++)
                sums = core::mma_op(core::load_a(A.template tile<core::rows, core::depth>(i, k)),
                                    core::load_b(B.template tile<core::depth, core::columns>(k, j)), sums);
            core::store_d(C.template tile<core::rows, core::columns>(i, j), sums);
        }
    simdgroup_barrier(mem_flags::mem_threadgroup);
}

kernel void cores(device const float *unused [[buffer(0)]], device int *out [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uchar memory[32 * 48 + 48 * 24];
    multiply<char>((threadgroup char *)memory, (threadgroup char *)memory + 32 * 48, out, lane);
    multiply<uchar>(memory, memory + 32 * 48, out + 768, lane);
}
