// C = A · B of 16-bit numbers by the asynchronous tensor cores of compute capability 9.0: the product of best.metal, with
// threadgroups that compute several tiles of C.
//
// A threadgroup of best.metal computes one tile of C, and fills a multiprocessor. The tensor cores are idle while it stores its
// sums, and while the next one starts, creates its tensor maps and waits for its first copies. Here
//
// - as many threadgroups as multiprocessors compute one tile after the other;
// - the first warpgroup only copies operands, while stages are free: also those of the next tile, while sums are stored;
// - the third warpgroup begins a little later than the second, so that one multiplies while the other stores;
// - copies from threadgroup memory store the sums where tensor maps can describe C;
// - tiles are computed in bands of few rows, so that those computed at the same time share rows and columns in the cache;
// - two threadgroups of a cluster compute neighbouring tiles, which multiply the same columns of B (with 256 rows and 128 columns,
//   the same rows of A). Each copies half of these, to the memory of both.
//
// size, rows and the matrices are those of best.metal. The third element of batches is the number of products. A, B and their rows
// begin at multiples of 16 bytes, and K is at least 1. Grid: any number of clusters of 1 or 2 (CLUSTER) threadgroups of 384 threads,
// at most one cluster per CLUSTER tiles.
#include <metal_stdlib>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
using namespace metal;
namespace detail = mpp::tensor_ops::__tensor_ops_detail;

constant constexpr uint BAND = 8; // rows of tiles, or of clusters' tiles
constant constexpr uint LAG = 2;  // the third warpgroup begins when the stage with this number is filled

// Where number `at` of a grid of tiles, or of clusters' tiles, lies. They are numbered column by column in each band.
struct place {
    int row, column;
    uint matrix; // its number among the parts of all products
};
inline place place_of(uint at, uint rows, uint columns) {
    const uint matrix = at / (rows * columns), rest = at % (rows * columns), band = rest / (BAND * columns);
    const uint in_band = rest % (BAND * columns), height = min(BAND, rows - band * BAND);
    return {int(band * BAND + in_band % height), int(in_band / height), matrix};
}

// The elements of K that a part adds up: `blocks` stages of 64, from `first` on.
struct terms {
    uint first, blocks;
};
inline terms terms_of(uint part, constant int4 &size) {
    const uint first = part * uint(size.w);
    return {first, (min(uint(size.w), uint(size.z) - first) + 63) / 64};
}

// Copies one operand's tile: SIDE rows (columns) of 64 terms. Each of PARTS threadgroups copies its part, number `rank`, to the
// memory of all. DOWN: rows (columns) follow each other in memory, so the tile lies in blocks of 64 of them.
template <int SIDE, int PARTS, bool DOWN> struct operand_copies {
    static constexpr uint box = DOWN ? 64 : SIDE / PARTS, count = SIDE / PARTS / box;
    static METAL_FUNC void begin(uint to, ulong map, uint side, uint k, uint matrix, uint barrier, uint rank, uint leads) {
        _Pragma("clang loop unroll(full)") for (uint i = 0; i < count; i++) {
            const uint first = (PARTS > 1 ? rank * (SIDE / PARTS) : 0) + i * box, at = to + first * 128;
            const uint x = DOWN ? side + first : k, y = DOWN ? k : side + first;
            if constexpr (PARTS > 1)
                __smelt_ptx_tensor_copy_to_all(at, map, x, y, matrix, barrier, (1 << PARTS) - 1, leads);
            else
                __smelt_ptx_tensor_copy_of(at, map, x, y, matrix, barrier, leads);
        }
    }
};

// Stores the sums of a warpgroup through its own STORED bytes of threadgroup memory: 64 rows of 128 columns at a time, in two boxes
// of 64 columns. Only those bytes must be free before the next store, so the warpgroup need not wait for the device's memory.
constant constexpr uint STORED = 16384;
template <typename W, typename O>
inline void store_by_copies(uint memory, ulong map, uint own, int row, int column, uint matrix, uint leads,
                            thread const float (&sums)[W::sums]) {
    const uint lane = __smelt_ptx_lane(), line = W::row(0) - lane / 4 + lane % 16, to = memory + line * 128;
    _Pragma("clang loop unroll(full)") for (int at = 0; at < W::sums; at += 64) {
        if (leads) __smelt_ptx_store_wait_read();
        __smelt_ptx_group_sync(1 + own, 128);
        _Pragma("clang loop unroll(full)") for (uint j = 0; j < 8; j++) { // 16 columns each
            uint words[4];
            _Pragma("clang loop unroll(full)") for (uint i = 0; i < 4; i++) {
                const int first = at + j * 8 + i * 2;
                words[i] = as_type<uint>(vec<O, 2>(O(sums[first]), O(sums[first + 1])));
            }
            const uint piece = (j % 4 * 2 + lane / 16) ^ (line & 7); // of 16 bytes, swizzled
            __smelt_ptx_store_matrices(to + j / 4 * (STORED / 2) + piece * 16, words[0], words[1], words[2], words[3]);
        }
        __smelt_ptx_fence_async();
        __smelt_ptx_group_sync(1 + own, 128);
        const int down = row + at / (W::width / 2) * 64, right = column + at % (W::width / 2) * 2;
        __smelt_ptx_tensor_store_of(map, memory, right, down, matrix, leads);
        __smelt_ptx_tensor_store_of(map, memory + STORED / 2, right + 64, down, matrix, leads);
        if (leads) __smelt_ptx_store_commit();
    }
}

template <typename T, typename O, int BM, int BN, ushort simdgroups, bool A_DOWN, bool B_DOWN, int CLUSTER>
kernel void best_warpgroups(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device O *c [[buffer(2)]],
                            constant int4 &size [[buffer(3)]], constant int2 &rows [[buffer(4)]],
                            constant long3 &batches [[buffer(5)]], uint group [[threadgroup_position_in_grid]],
                            uint groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) {
    if (__smelt_gpu_target() != 901) return;
    using W = detail::warpgroups<is_same_v<T, bfloat> ? detail::kind::brain16 : detail::kind::real16, BM, BN, A_DOWN, B_DOWN, simdgroups>;
    constexpr uint stages = W::stages, stage_bytes = W::stage_bytes, barriers = stages * stage_bytes;
    // A cluster's tiles lie next to each other, or below each other.
    constexpr uint wide_by = BM > BN ? CLUSTER : 1, tall_by = BM > BN ? 1 : CLUSTER;
    using A = operand_copies<BM, wide_by, A_DOWN>;
    using B = operand_copies<BN, tall_by, !B_DOWN>;
    __smelt_ptx_clusters(CLUSTER);
    const uint rank = CLUSTER > 1 ? __smelt_ptx_cluster_rank() : 0, cluster = group / CLUSTER, clusters = groups / CLUSTER;
    const uint down = uint(size.x + BM * tall_by - 1) / (BM * tall_by), across = uint(size.y + BN * wide_by - 1) / (BN * wide_by);
    const uint parts = uint(size.z - 1) / uint(size.w) + 1, products = uint(batches.z), tiles = down * across * parts * products;
    const uint memory = __smelt_ptx_shared_address(__smelt_staging(barriers + 1024 + W::count * STORED));
    const uint filled = memory + barriers, emptied = filled + 8 * stages, scratch = filled + 256;
    const uint simdgroup = __smelt_ptx_broadcast(thread_index >> 5);
    const ulong maps = __smelt_ptx_map_memory();
    // Products share a matrix whose distance is 0.
    const ulong a_bytes = rows.x * 2ul, b_bytes = rows.y * 2ul;
    if (simdgroup == 0)
        __smelt_ptx_tensor_map_of(maps, scratch, (ulong)a, A_DOWN ? size.x : size.z, A_DOWN ? size.z : size.x, a_bytes, 64,
                                  A_DOWN ? 64 : A::box, W::map_type, batches.x ? products : 1, batches.x ? ulong(batches.x) * 2 : a_bytes);
    if (simdgroup == 1)
        __smelt_ptx_tensor_map_of(maps + 128, scratch + 128, (ulong)b, B_DOWN ? size.z : size.y, B_DOWN ? size.y : size.z, b_bytes, 64,
                                  B_DOWN ? B::box : 64, W::map_type, batches.y ? products : 1, batches.y ? ulong(batches.y) * 2 : b_bytes);
    // Copies store C where tensor maps can describe it.
    const bool copies = sizeof(O) == 2 && size.y % 8 == 0 && ((ulong)c & 15) == 0;
    const ulong c_bytes = size.y * 2ul;
    if (copies && simdgroup == 2)
        __smelt_ptx_tensor_map_of(maps + 256, scratch + 256, (ulong)c, size.y, size.x, c_bytes, 64, 64, W::map_type, parts * products,
                                  parts * products > 1 ? c_bytes * size.x : c_bytes);
    if (thread_index == 96) {
        for (uint s = 0; s < stages; s++) {
            __smelt_ptx_barrier_init(filled + 8 * s, 1);
            __smelt_ptx_barrier_init(emptied + 8 * s, W::count * CLUSTER);
        }
        __smelt_ptx_fence_barriers();
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (CLUSTER > 1) __smelt_ptx_cluster_sync();
    // The next launch of this kernel may run up to here while this one computes its last tiles: nothing above may access the
    // matrices.
    __smelt_ptx_launch_next();
    __smelt_ptx_wait_previous();

    if (simdgroup < 4) {
        __smelt_ptx_fewer_registers(40);
        if (simdgroup > 0) return;
        const uint leads = thread_index == 0;
        __smelt_ptx_map_acquire(maps);
        __smelt_ptx_map_acquire(maps + 128);
        uint stage = 0, parity = 1;
        for (uint at = cluster; at < tiles; at += clusters) {
            const place tile = place_of(at, down, across);
            const terms own = terms_of(tile.matrix % parts, size);
            const uint row = (tile.row * tall_by + rank % tall_by) * BM, column = (tile.column * wide_by + rank % wide_by) * BN;
            const uint product = tile.matrix / parts, a_matrix = batches.x ? product : 0, b_matrix = batches.y ? product : 0;
            for (uint block = 0; block < own.blocks; block++) {
                const uint to = memory + stage * stage_bytes, barrier = filled + 8 * stage, k = own.first + block * 64;
                __smelt_ptx_barrier_wait(emptied + 8 * stage, parity);
                __smelt_ptx_barrier_expect(barrier, stage_bytes, leads);
                A::begin(to, maps, row, k, a_matrix, barrier, rank, leads);
                B::begin(to + BM * 128, maps + 128, column, k, b_matrix, barrier, rank, leads);
                if (++stage == stages) stage = 0, parity ^= 1;
            }
        }
        // The other threadgroup may still copy to this one's memory, and arrive at its barriers.
        if (CLUSTER > 1) __smelt_ptx_cluster_sync();
        return;
    }

    __smelt_ptx_more_registers(232);
    const uint own = simdgroup / 4 - 1;
    // A stage may be filled again when it is free in both threadgroups: a thread arrives for each of them.
    const uint signals = (thread_index & 127) < CLUSTER;
    const uint released = CLUSTER > 1 ? __smelt_ptx_cluster_address(emptied, thread_index % CLUSTER) : emptied;
    const uint stored = memory + barriers + 1024 + own * STORED, leads = (thread_index & 127) == 0;
    if (copies && leads) __smelt_ptx_map_acquire(maps + 256);
    uint stage = 0, parity = 0;
    const bool deep = terms_of(place_of(cluster, down, across).matrix % parts, size).blocks > LAG;
    if (own == 1 && deep) __smelt_ptx_barrier_wait(filled + 8 * LAG, 0);
    for (uint at = cluster; at < tiles; at += clusters) {
        const place tile = place_of(at, down, across);
        const uint blocks = terms_of(tile.matrix % parts, size).blocks;
        float sums[W::sums];
        uint before = 0;
        for (uint block = 0; block < blocks; block++) {
            __smelt_ptx_barrier_wait(filled + 8 * stage, parity);
            detail::multiply_stage<W>(memory + stage * stage_bytes, own, block == 0, sums);
            // Now the products of the previous block are done.
            __smelt_ptx_wgmma_wait(1);
            if (block > 0) __smelt_ptx_barrier_arrive_at(released + 8 * before, signals);
            before = stage;
            if (++stage == stages) stage = 0, parity ^= 1;
        }
        __smelt_ptx_wgmma_finish(sums, W::sums, 0);
        __smelt_ptx_barrier_arrive_at(released + 8 * before, signals);
        const int row = (tile.row * tall_by + rank % tall_by) * BM + W::first_row(own);
        const int column = (tile.column * wide_by + rank % wide_by) * BN + W::first_column(own);
        if constexpr (sizeof(O) == 2)
            if (copies) {
                store_by_copies<W, O>(stored, maps + 256, own, row, column, tile.matrix, leads, sums);
                continue;
            }
        device O *first = c + ((long)tile.matrix * size.x + row) * size.y + column;
        _Pragma("clang loop unroll(full)") for (int i = 0; i < W::sums; i++)
            if (row + W::row(i) < size.x && column + W::column(i) < size.y) first[(long)W::row(i) * size.y + W::column(i)] = O(sums[i]);
    }
    if (copies && leads) __smelt_ptx_store_wait_read();
    if (CLUSTER > 1) __smelt_ptx_cluster_sync();
}

#define INSTANTIATE(name, T, O, BM, BN, simdgroups, A_DOWN, B_DOWN, CLUSTER)                                     \
    template [[host_name(name)]] kernel void best_warpgroups<T, O, BM, BN, simdgroups, A_DOWN, B_DOWN, CLUSTER>( \
        device const T *, device const T *, device O *, constant int4 &, constant int2 &, constant long3 &, uint, uint, uint);
#ifdef BEST_FORM // the parameters of the only form to compile
#define INSTANTIATE_FORM(...) INSTANTIATE(__VA_ARGS__)
INSTANTIATE_FORM(BEST_NAME, BEST_FORM)
#else
INSTANTIATE("best_warpgroups_half", half, half, 128, 256, 8, false, false, 2)
INSTANTIATE("best_warpgroups_bfloat", bfloat, bfloat, 128, 256, 8, false, false, 2)
#endif
