// C = A · B, step 2: neighbouring threads take neighbouring columns. What a simdgroup loads of B and stores of C is then one
// piece of memory, and all its threads share what it loads of A. Only the two coordinates have changed places.
//
// size: M, N, K. A: M × K, B: K × N, C: M × N. Grid: N × M threads.
#include <metal_stdlib>
#include <smelt/tensor>
using namespace metal;
using namespace smelt;

template <typename T>
kernel void coalescing(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
                       constant int3 &size [[buffer(3)]], uint2 thread_position [[thread_position_in_grid]]) {
    const auto A = layout_tensor(a, row_major(size.x, size.z));
    const auto B = layout_tensor(b, row_major(size.z, size.y));
    const auto C = layout_tensor(c, row_major(size.x, size.y));
    const int row = int(thread_position.y), column = int(thread_position.x);
    float sum = 0;
    for (int k = 0; k < size.z; k++) sum = fma(float(A(row, k)), float(B(k, column)), sum);
    C(row, column) = T(sum);
}

#define INSTANTIATE(name, T)                                                                                             \
    template [[host_name(name)]] kernel void coalescing<T>(device const T *, device const T *, device T *, constant int3 &, uint2);
INSTANTIATE("coalescing_float", float)
INSTANTIATE("coalescing_half", half)
INSTANTIATE("coalescing_bfloat", bfloat)
