// Products that the simdgroups of a threadgroup compute alike: each has rows of its own, and all multiply by the same tile of
// the right matrix. Some only look alike. test_tensor_alike.c and tests/ptx/test_alike.py run them.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
using namespace mpp::tensor_ops;

struct sizes {
    int rows, columns, terms, stride; // the right matrix's rows are `stride` elements apart
};

// forward, backward: the order of the terms of one tile of columns. leaves: simdgroups without rows return. apart: simdgroups
// walk over all columns in different orders. changes: adds 1 to the right matrix and multiplies again. ragged: the first simdgroup's
// right matrix ends with its tile, those of the others do not. moved: the pointer to the right matrix moves, and its extent is
// always all terms. ragged and moved need a multiple of K terms. waits: each simdgroup spins until the one before it has multiplied.
enum walk { forward, backward, leaves, apart, changes, ragged, moved, waits };

template <typename T, int M, int N, int K, bool Transposed, bool Held, walk Walk>
kernel void alike(device const T *left [[buffer(0)]], device T *right [[buffer(1)]], device float *out [[buffer(2)]],
                  constant sizes &size [[buffer(3)]], uint2 group [[threadgroup_position_in_grid]],
                  uint simdgroup [[simdgroup_index_in_threadgroup]], uint simdgroups [[simdgroups_per_threadgroup]],
                  uint thread_index [[thread_index_in_threadgroup]], uint threads [[threads_per_threadgroup]]) {
    const int first = (group.x * simdgroups + simdgroup) * M;
    if (Walk == leaves && first >= size.rows) return;
    auto a = tensor(const_cast<device T *>(left), dextents<int, 2>(size.terms, size.rows));
    const int width = Transposed ? size.terms : size.columns, height = Transposed ? size.columns : size.terms;
    auto b = tensor(right, dextents<int, 2>(width, height), array<int, 2>{1, size.stride});
    auto c = tensor(out, dextents<int, 2>(size.columns, size.rows));
    constexpr auto add = matmul2d_descriptor::mode::multiply_accumulate;
    matmul2d<matmul2d_descriptor(M, N, K, false, Transposed, false, add), execution_simdgroup> op;
    threadgroup atomic_uint turn;
    if (Walk == waits) {
        if (thread_index == 0) atomic_store_explicit(&turn, 0, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        while (atomic_load_explicit(&turn, memory_order_relaxed) < simdgroup) {}
    }
    const int tiles = (size.columns + N - 1) / N;
    constexpr bool all = Walk == apart || Walk == changes;
    for (int i = all ? 0 : group.y; i < tiles; i++) {
        const int column = (Walk == apart ? (i + simdgroup) % tiles : i) * N;
        auto sums = op.template get_destination_cooperative_tensor<decltype(a), decltype(b), float>();
        for (auto it = sums.begin(); it != sums.end(); it++) *it = 0;
        for (int round = 0; round < (Walk == changes ? 2 : 1); round++) {
            const int blocks = (size.terms + K - 1) / K;
            for (int block = 0; block < blocks; block++) {
                const int k = (Walk == backward ? blocks - 1 - block : block) * K;
                auto tile = Transposed ? b.slice(k, column) : b.slice(column, k);
                if (Walk == ragged || Walk == moved) {
                    const int more = Walk == moved ? size.terms : simdgroup ? 2 * K : K;
                    tile = tensor(right + (long)k * size.stride + column, dextents<int, 2>(size.columns - column, more),
                                  array<int, 2>{1, size.stride});
                }
                if (Held) {
                    auto held = op.template get_left_input_cooperative_tensor<T, T, float>();
                    held.load(a.slice(k, first));
                    op.run(held, tile, sums);
                } else {
                    auto own = a.slice(k, first);
                    op.run(own, tile, sums);
                }
            }
            if (Walk == changes) {
                threadgroup_barrier(mem_flags::mem_device);
                for (int at = thread_index; at < height * size.stride; at += threads)
                    right[at] = (T)((float)right[at] + (round ? -1.0f : 1.0f));
                threadgroup_barrier(mem_flags::mem_device);
            }
        }
        sums.store(c.slice(column, first));
        if (Walk == waits && thread_index % 32 == 0) atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
        if (!all) break;
    }
}

#define ALIKE(name, type, m, n, k, transposed, held, walk)                                                                    \
    template [[host_name(name)]] kernel void alike<type, m, n, k, transposed, held, walk>(                                    \
        device const type *, device type *, device float *, constant sizes &, uint2, uint, uint, uint, uint);
ALIKE("alike_rows", half, 16, 64, 32, false, false, forward)
ALIKE("alike_held", bfloat, 16, 48, 64, false, true, forward)
ALIKE("alike_columns", bfloat, 32, 32, 80, true, false, forward)
ALIKE("alike_columns_held", half, 16, 80, 96, true, true, forward)
ALIKE("alike_backward", half, 32, 16, 48, false, true, backward)
ALIKE("alike_leaves", bfloat, 16, 64, 32, true, false, leaves)
ALIKE("alike_apart", half, 16, 32, 64, false, false, apart)
ALIKE("alike_changes", half, 16, 64, 64, false, true, changes)
ALIKE("alike_ragged", half, 16, 64, 64, false, true, ragged)
ALIKE("alike_moved", half, 16, 64, 32, false, false, moved)
ALIKE("alike_waits", half, 16, 64, 32, false, false, waits)
