// out = a · wᵀ, with weights in a format of our own that tensor operations do not support: signed 4-bit codes, two to a byte,
// the first in the low bits, in groups of 32 along k with one half as their scale. Two ways to the same product.
//
// a: rows × terms, half. codes: columns × terms / 2 bytes; scales: columns × terms / 32. out: rows × columns, float.
// terms is a multiple of 32.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

struct int4_size {
    int rows, columns, terms;
};

constant constexpr int group_terms = 32;

static half weight(device const uchar *codes, device const half *scales, int column, int term, int terms) {
    const uchar both = codes[((long)column * terms + term) / 2];
    const int code = (term % 2 ? both >> 4 : both & 15) - 8;
    return (half)code * scales[((long)column * terms + term) / group_terms];
}

// By way of threadgroup memory: all threads convert a block of weights, then multiply it.
template <int m, int n, ushort simdgroups>
kernel void int4_staged(device const half *a [[buffer(0)]], device const uchar *codes [[buffer(1)]],
                        device const half *scales [[buffer(2)]], device float *out [[buffer(3)]],
                        constant int4_size &size [[buffer(4)]], uint2 group [[threadgroup_position_in_grid]],
                        uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup half staged[n * group_terms];
    auto left = tensor(const_cast<device half *>(a), dextents<int, 2>(size.terms, size.rows));
    auto block = tensor(staged, extents<int, group_terms, n>{});
    auto result = tensor(out, dextents<int, 2>(size.columns, size.rows));
    const int row = group.y * m, column = group.x * n;

    constexpr auto add = matmul2d_descriptor::mode::multiply_accumulate;
    matmul2d<matmul2d_descriptor(m, n, group_terms, false, true, false, add), execution_simdgroups<simdgroups>> op;
    auto first = left.slice(0, row);
    auto sums = op.template get_destination_cooperative_tensor<decltype(first), decltype(block), float>();
    for (int k = 0; k < size.terms; k += group_terms) {
        for (int i = thread_index; i < n * group_terms; i += simdgroups * 32) {
            const int c = column + i / group_terms;
            staged[i] = c < size.columns ? weight(codes, scales, c, k + i % group_terms, size.terms) : 0.0h;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        auto own = left.slice(k, row);
        op.run(own, block, sums);
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    sums.store(result.slice(column, row));
}

// Without: each thread converts the weights that it holds as the operation's input.
template <int m, int n>
kernel void int4_registers(device const half *a [[buffer(0)]], device const uchar *codes [[buffer(1)]],
                           device const half *scales [[buffer(2)]], device float *out [[buffer(3)]],
                           constant int4_size &size [[buffer(4)]], uint2 group [[threadgroup_position_in_grid]]) {
    auto left = tensor(const_cast<device half *>(a), dextents<int, 2>(size.terms, size.rows));
    auto result = tensor(out, dextents<int, 2>(size.columns, size.rows));
    const int row = group.y * m, column = group.x * n;

    constexpr auto add = matmul2d_descriptor::mode::multiply_accumulate;
    matmul2d<matmul2d_descriptor(m, n, group_terms, false, true, false, add), execution_simdgroup> op;
    auto weights = op.template get_right_input_cooperative_tensor<half, half, float>();
    auto first = left.slice(0, row);
    auto sums = op.template get_destination_cooperative_tensor<decltype(first), decltype(weights), float>();
    for (int k = 0; k < size.terms; k += group_terms) {
        for (ushort i = 0; i < weights.get_capacity(); i++) {
            if (!weights.is_valid_element(i)) continue;
            auto at = weights.get_multidimensional_index(i);
            const int c = column + at[1];
            weights[i] = c < size.columns ? weight(codes, scales, c, k + at[0], size.terms) : 0.0h;
        }
        auto own = left.slice(k, row);
        op.run(own, weights, sums);
    }
    sums.store(result.slice(column, row));
}

template [[host_name("matmul_int4_staged")]] kernel void int4_staged<64, 64, 4>(
    device const half *, device const uchar *, device const half *, device float *, constant int4_size &, uint2, uint);
template [[host_name("matmul_int4_registers")]] kernel void int4_registers<16, 32>(
    device const half *, device const uchar *, device const half *, device float *, constant int4_size &, uint2);
