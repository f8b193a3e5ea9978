// (I + S)⁻¹ of N x N squares, S the part below the diagonal; what lies above it is not used. One group of N threads a
// square; a thread has a column of the inverse in registers. Row i of it is [i == j] - Σ S[i][k] · X[k][j] over k < i.
#include <metal_stdlib>
using namespace metal;

// Rows FIRST … N - 1; above them the thread's column is 0.
template <int N, int FIRST>
void substitute(threadgroup const float4 *lower, int column, thread float (&x)[N]) {
#pragma unroll
    for (int i = FIRST; i < N; i++) {
        float sums[4] = {i == column ? 1.0f : 0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int k = FIRST; k < i; k += 4) {
            const float4 row = lower[(i * N + k) / 4];
#pragma unroll
            for (int d = 0; d < 4; d++)
                if (k + d < i) sums[d] = fma(-row[d], x[k + d], sums[d]);
        }
        x[i] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
}

template <int N>
kernel void inverse(device const float4 *a [[buffer(0)]], device float *out [[buffer(1)]],
                    uint group [[threadgroup_position_in_grid]], uint me [[thread_position_in_threadgroup]],
                    uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    static_assert(N == 64, "two simdgroups of a column a lane");
    constexpr uint quarters = N / 4;
    threadgroup float4 lower[N * quarters];
    device const float4 *square = a + size_t(group) * (N * quarters);
#pragma unroll
    for (uint i = 0; i < quarters; i++) {
        const uint at = i * N + me, row = at / quarters, column = at % quarters * 4;
        if (column < row) lower[at] = square[at];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);

    // The left half of the columns is most of the work. Which simdgroup has it changes from group to group, so that all
    // schedulers of a processor get their share.
    const bool left = simdgroup == (popcount(group) & 1);
    const uint column = left ? lane : lane + N / 2;
    float x[N];
    if (left) {
        substitute<N, 0>(lower, column, x);
    } else {
#pragma unroll
        for (int i = 0; i < N / 2; i++) x[i] = 0.0f;
        substitute<N, N / 2>(lower, column, x);
    }
    device float *result = out + size_t(group) * (N * N) + column;
#pragma unroll
    for (int i = 0; i < N; i++) result[i * N] = x[i];
}

template [[host_name("inverse_64")]] kernel void inverse<64>(device const float4 *, device float *, uint, uint, uint, uint);
