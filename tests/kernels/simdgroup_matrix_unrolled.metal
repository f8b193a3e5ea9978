// Loops over the depth of products that the source asks to unroll: of tiles by rows; of matrices that lie one behind the other,
// by pointers that move; in the method of a structure with arrays of matrices; with an array that the rounds choose from.
// for loop: rows matrices method chosen
// run: {loop} -b 0:out:float32:1024 --bytes 1=uint32:3 --grid 64 --threadgroup 64
// let a = lambda r, k: (r * 7 + k * 3) % 11 - 5
// let b = lambda k, c: (k * 5 + c * 2) % 13 - 6
// let value = lambda r, c: 3 * sum(a(r, k) * b(k, c) * (1 + (loop == "chosen" and k // 8 % 2)) for k in range(32))
// expect buffer 0: f(i) for i in 1024: value(i // 512 * 16 + i % 512 // 32, i % 32)
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

#define UNROLL _Pragma("clang loop unroll(full)")
constant constexpr uint depth = 32;
enum form { ROWS, MATRICES, METHOD, CHOSEN };

struct tiles {
    simdgroup_float8x8 sums[2][4], l[2], r[4];
    void multiply(threadgroup const float *left, threadgroup const float *right) {
        UNROLL for (uint k = 0; k < depth; k += 8) {
            UNROLL for (uint i = 0; i < 2; i++) simdgroup_load(l[i], left + i * 8 * depth + k, depth);
            UNROLL for (uint j = 0; j < 4; j++) simdgroup_load(r[j], right + k * 32 + j * 8, 32);
            UNROLL for (uint i = 0; i < 2; i++)
                UNROLL for (uint j = 0; j < 4; j++) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
        }
    }
};

template <form Form>
kernel void loops(device float *out [[buffer(0)]], constant uint &rounds [[buffer(1)]], uint t [[thread_index_in_threadgroup]],
                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float a[32 * depth], b[depth * 32];
    tiles own;
    for (uint i = 0; i < 2; i++)
        for (uint j = 0; j < 4; j++) own.sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0);
    for (uint round = 0; round < rounds; round++) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint e = t; e < 1024; e += 64) {
            const uint i = e / 32, j = e % 32;
            const uint at = Form == MATRICES ? (j / 8 * 4 + i / 8) * 64 + i % 8 * 8 + j % 8 : e;
            const uint to = Form == MATRICES ? (i / 8 * 4 + j / 8) * 64 + i % 8 * 8 + j % 8 : e;
            a[at] = int((i * 7 + j * 3) % 11) - 5;
            b[to] = int((i * 5 + j * 2) % 13) - 6;
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (Form == METHOD) {
            own.multiply(a + simdgroup * 16 * depth, b);
            continue;
        }
        threadgroup const float *left = a + (Form == MATRICES ? simdgroup * 128 : simdgroup * 16 * depth), *right = b;
        const float factors[4] = {1, 2, 1, 2};
        UNROLL for (uint k = 0; k < depth / 8; k++) {
            UNROLL for (uint i = 0; i < 2; i++)
                simdgroup_load(own.l[i], left + (Form == MATRICES ? i * 64 : i * 8 * depth), Form == MATRICES ? 8 : depth);
            UNROLL for (uint j = 0; j < 4; j++)
                simdgroup_load(own.r[j], right + (Form == MATRICES ? j * 64 : j * 8), Form == MATRICES ? 8 : 32);
            if (Form == CHOSEN)
                for (uint i = 0; i < 2; i++) own.l[i].thread_elements() *= factors[k];
            UNROLL for (uint i = 0; i < 2; i++)
                UNROLL for (uint j = 0; j < 4; j++)
                    simdgroup_multiply_accumulate(own.sums[i][j], own.l[i], own.r[j], own.sums[i][j]);
            left += Form == MATRICES ? 256 : 8;
            right += 256;
        }
    }
    out += simdgroup * 512;
    for (uint i = 0; i < 2; i++)
        for (uint j = 0; j < 4; j++) simdgroup_store(own.sums[i][j], out + i * 8 * 32 + j * 8, 32);
}

template [[host_name("rows")]] kernel decltype(loops<ROWS>) loops<ROWS>;
template [[host_name("matrices")]] kernel decltype(loops<MATRICES>) loops<MATRICES>;
template [[host_name("method")]] kernel decltype(loops<METHOD>) loops<METHOD>;
template [[host_name("chosen")]] kernel decltype(loops<CHOSEN>) loops<CHOSEN>;
