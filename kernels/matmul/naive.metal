// C = A · B, step 1: a thread for each element of C, and nothing else. Neighbouring threads take neighbouring rows, so what a
// simdgroup loads of A and stores of C lies K and N elements apart: every element costs a memory transaction of its own.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. Grid: M × N threads.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

template <typename T>
kernel void naive(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
                  constant int3 &size [[buffer(3)]], uint2 thread_position [[thread_position_in_grid]]) {
    const auto A = layout_tensor(a, row_major(size.x, size.z));
    const auto B = layout_tensor(b, row_major(size.z, size.y));
    const auto C = layout_tensor(c, row_major(size.x, size.y));
    const int row = int(thread_position.x), column = int(thread_position.y);
    float sum = 0;
    for (int k = 0; k < size.z; k++) sum = fma(float(A(row, k)), float(B(k, column)), sum);
    C(row, column) = T(sum);
}

#define INSTANTIATE(name, T)                                                                                             \
    template [[host_name(name)]] kernel void naive<T>(device const T *, device const T *, device T *, constant int3 &, uint2);
INSTANTIATE("naive_float", float)
INSTANTIATE("naive_half", half)
INSTANTIATE("naive_bfloat", bfloat)
