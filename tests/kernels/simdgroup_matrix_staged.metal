// Loops over products whose operands are float, half or bfloat in threadgroup memory: two left matrices by one to five right ones, so
// that rows of two sums may share a register, and one is left over. Sums begin with different numbers.
// for type: float half bfloat
// for columns: 1 2 3 4 5
// run: {type}_{columns} -b 0:out:float32:1280 --bytes 1=uint32:3 --grid 64 --threadgroup 64
// let a = lambda r, k: (r * 7 + k * 3) % 11 - 5
// let b = lambda k, c: (k * 5 + c * 2) % 13 - 6
// let sum_of = lambda n, r, c: 10 * n + sum(a(n // int(columns) * 8 + r, k) * b(k, n % int(columns) * 8 + c) for k in range(24))
// let at = lambda n, i: sum_of(n, i // 8, i % 8) if n < 2 * int(columns) else 0
// expect buffer 0: f(i) for i in 1280: at(i // 64 % 10, i % 64)
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant constexpr uint left_row = 28, right_row = 44;

template <typename T, uint columns>
kernel void staged(device float *out [[buffer(0)]], constant uint &rounds [[buffer(1)]], uint t [[thread_index_in_threadgroup]],
                   uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup T a[16 * left_row], b[24 * right_row];
    for (uint i = t; i < 16 * 24; i += 64) a[i / 24 * left_row + i % 24] = T(int((i / 24 * 7 + i % 24 * 3) % 11) - 5);
    for (uint i = t; i < 24 * 40; i += 64) b[i / 40 * right_row + i % 40] = T(int((i / 40 * 5 + i % 40 * 2) % 13) - 6);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out += 640 * simdgroup;
    simdgroup_float8x8 sums[2 * columns];
    simdgroup_matrix<T, 8, 8> l[2], r[columns];
    for (uint i = 0; i < 2 * columns; i++) sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(10 * i);
    threadgroup const T *left = a, *right = b;
#pragma unroll(1)
    for (uint round = 0; round < rounds; round++, left += 8, right += 8 * right_row) {
        for (uint i = 0; i < 2; i++) simdgroup_load(l[i], left + 8 * i * left_row, left_row);
        for (uint j = 0; j < columns; j++) simdgroup_load(r[j], right + 8 * j, right_row);
        for (uint i = 0; i < 2; i++)
            for (uint j = 0; j < columns; j++)
                simdgroup_multiply_accumulate(sums[i * columns + j], l[i], r[j], sums[i * columns + j]);
    }
    for (uint i = 0; i < 2 * columns; i++) simdgroup_store(sums[i], out + 64 * i, 8);
}

#define OF(type, n) template [[host_name(#type "_" #n)]] kernel decltype(staged<type, n>) staged<type, n>;
#define ALL(type) OF(type, 1) OF(type, 2) OF(type, 3) OF(type, 4) OF(type, 5)
ALL(float) ALL(half) ALL(bfloat)
