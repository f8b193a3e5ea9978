// Loops over products whose operands are in threadgroup memory: four sums; two products per sum and round; a transposed left
// matrix; sums that change places after each round; a sum that is stored before each round; no rounds.
// for loop: four twice turned swapped stored none
// run: {loop} -b 0:out:float32:512 --bytes 1=uint32:3 --grid 64 --threadgroup 64
// let a = lambda r, k: (r * 7 + k * 3) % 11 - 5
// let b = lambda k, c: (k * 5 + c * 2) % 13 - 6
// let sum_of = lambda left, rounds, row, column: 10 + sum(left(row, k) * b(k, column) for n in rounds for k in range(8 * n, 8 * n + 8))
// let four = lambda n, r, c: sum_of(a, range(3), n // 2 * 8 + r, n % 2 * 8 + c)
// let twice = lambda n, r, c: sum_of(a, range(3), r, n * 8 + c) + sum_of(a, range(3), 8 + r, n * 8 + c) - 10 if n < 2 else 0
// let turned = lambda n, r, c: sum_of(lambda i, k: a(k, i), range(3), r, n * 8 + c) if n < 2 else 0
// let swapped = lambda n, r, c: 10 + sum(sum_of(a, [m], 8 * ((n + m + 1) % 2) + r, c) - 10 for m in range(3)) if n < 2 else 0
// let stored = lambda n, r, c: sum_of(a, range(3), r, n * 8 + c) if n < 2 else sum_of(a, range(2), r, c) if n == 2 else 0
// let none = lambda n, r, c: 10 if n < 2 else 0
// let of = {"four": four, "twice": twice, "turned": turned, "swapped": swapped, "stored": stored, "none": none}
// let at = lambda n, i: of[loop](n, i // 8, i % 8)
// expect buffer 0: f(i) for i in 512: at(i // 64 % 4, i % 64)
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

constant constexpr uint left_row = 28, right_row = 20;

enum form { FOUR, TWICE, TURNED, SWAPPED, STORED, NONE };

template <form Form>
kernel void loops(device float *out [[buffer(0)]], constant uint &rounds [[buffer(1)]], uint t [[thread_index_in_threadgroup]],
                  uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float a[24 * left_row], b[24 * right_row];
    for (uint i = t; i < 24 * 24; i += 64) a[i / 24 * left_row + i % 24] = int((i / 24 * 7 + i % 24 * 3) % 11) - 5;
    for (uint i = t; i < 24 * 16; i += 64) b[i / 16 * right_row + i % 16] = int((i / 16 * 5 + i % 16 * 2) % 13) - 6;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out += 256 * simdgroup;
    constexpr uint count = Form == FOUR ? 4 : 2;
    simdgroup_float8x8 sums[count], l[2], r[2];
    for (uint i = 0; i < count; i++) sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(10);
    threadgroup const float *left = a, *right = b;
#pragma unroll(1)
    for (uint round = Form == NONE ? 3 : 0; round < rounds; round++, right += 8 * right_row) {
        for (uint i = 0; i < 2; i++)
            if (Form == TURNED)
                simdgroup_load(l[i], left + 8 * i, left_row, ulong2(0), true);
            else
                simdgroup_load(l[i], left + 8 * i * left_row, left_row);
        for (uint j = 0; j < 2; j++) simdgroup_load(r[j], right + 8 * j, right_row);
        if (Form == STORED) simdgroup_store(sums[0], out + 128, 8);
        if (Form == FOUR || Form == TWICE) {
            for (uint i = 0; i < 4; i++) simdgroup_multiply_accumulate(sums[i % count], l[i / 2], r[i % 2], sums[i % count]);
        } else if (Form == SWAPPED) {
            for (uint i = 0; i < 2; i++) simdgroup_multiply_accumulate(sums[i], l[i], r[0], sums[i]);
        } else {
            for (uint j = 0; j < 2; j++) simdgroup_multiply_accumulate(sums[j], l[0], r[j], sums[j]);
        }
        if (Form == SWAPPED) {
            const simdgroup_float8x8 first = sums[0];
            sums[0] = sums[1];
            sums[1] = first;
        }
        left += Form == TURNED ? 8 * left_row : 8;
    }
    for (uint i = 0; i < count; i++) simdgroup_store(sums[i], out + 64 * i, 8);
}

template [[host_name("four")]] kernel decltype(loops<FOUR>) loops<FOUR>;
template [[host_name("twice")]] kernel decltype(loops<TWICE>) loops<TWICE>;
template [[host_name("turned")]] kernel decltype(loops<TURNED>) loops<TURNED>;
template [[host_name("swapped")]] kernel decltype(loops<SWAPPED>) loops<SWAPPED>;
template [[host_name("stored")]] kernel decltype(loops<STORED>) loops<STORED>;
template [[host_name("none")]] kernel decltype(loops<NONE>) loops<NONE>;
