// The simdgroups of a group share the rounds of a loop in which much is computed from each round's sum over a simdgroup, as in attention.
// Group g has g rounds: none, fewer than simdgroups, and numbers that the simdgroups do and do not divide. The last round's values are at the
// end of the array.
// for sgs: 1 2 4
// run: -b 0=arange:float32:1248 -b 1:out:uint32:40x4 --threadgroup 32,{sgs} --groups 40
// let step = lambda u: (u * 1664525 + 1013904223) % 2**32 ^ u >> 13
// let mixed = lambda u, n: mixed(step(u), n - 1) if n else u
// let total = lambda r, end, t, sgs: total(r + sgs, end, (t * 31 + mixed(r * 1024 + 496 >> 4, 8)) % 2**32, sgs) if r < end else t
// expect buffer 1: f(i) for i in 160: total(i % 4, i // 4, 0, sgs) if i % 4 < sgs else 0
#include <metal_stdlib>
using namespace metal;

kernel void ahead(device const float *x [[buffer(0)]], device uint *out [[buffer(1)]], uint group [[threadgroup_position_in_grid]],
                  uint simdgroup [[simdgroup_index_in_threadgroup]], uint simdgroups [[simdgroups_per_threadgroup]],
                  uint lane [[thread_index_in_simdgroup]]) {
    threadgroup uint totals[4];
    uint total = 0;
    for (uint r = simdgroup; r < group; r += simdgroups) {
        uint mixed = uint(simd_sum(x[r * 32 + lane])) >> 4;
        for (uint n = 0; n < 8; n++) mixed = (mixed * 1664525 + 1013904223) ^ mixed >> 13;
        total = total * 31 + mixed;
    }
    if (lane == 0) totals[simdgroup] = total;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (lane == 0 && simdgroup == 0)
        for (uint s = 0; s < simdgroups; s++) out[group * 4 + s] = totals[s];
}
