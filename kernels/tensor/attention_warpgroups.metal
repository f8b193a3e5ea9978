// Attention of arrays by warpgroups, for GPUs of compute capability 9.0 and half or bfloat. attention_parts.metal precedes this text,
// with ATTENTION_DEPTH 64 or 128, ATTENTION_ROWS 128, or 192 with depth 64, and ATTENTION_KEYS 128.
//
// A threadgroup computes ATTENTION_ROWS rows at a time, some tiles one after the other (tiles_of_group). It has a warpgroup, of 128
// threads, for every 64 rows, and one before them. That one copies these rows of q, and blocks of keys and values, to threadgroup
// memory by tensor maps, some blocks ahead, and leaves its registers to the others. A thread holds scores of two rows, as the
// products leave them. Their exponentials, rounded, are the left matrix of the next product without a move. Products of one block
// with the values run while the next block's exponentials are computed, whether of the same tile or of the next: queries have two
// places, so that the next ones are copied ahead, too.
//
// Rows of q, k and v begin at multiples of 16 bytes; where, size.places says.

// A warpgroup of a tile of 192 rows holds the values of its last block while it passes by another one and waits for the next:
// with two stages, they would never come.
static_assert(sizeof(T) == 2 && (D == 64 || (D == 128 && ROWS == 128)) && (ROWS == 128 || ROWS == 192) && KEYS == 128,
              "the tile of this kernel");
constant constexpr uint bfloat_type = is_same_v<T, bfloat>, map_type = bfloat_type ? 10 : 6;
// Warpgroups that compute, and the registers of their threads.
constant constexpr uint computing = ROWS / 64, registers = computing == 2 ? 240 : 160;
// Bytes of 64 elements of all rows or keys, of a tile, and what lies in threadgroup memory: queries, keys, values, barriers.
constant constexpr uint rows_part = ROWS * 128, part = KEYS * 128, tile = D / 64 * part, stages = D == 64 ? 4 : 2;
constant constexpr uint queries_size = D / 64 * rows_part, keys_at = 2 * queries_size, values_at = keys_at + stages * tile,
                        barriers_at = values_at + stages * tile;
// More than half of a multiprocessor's memory, so that it runs one group at a time (__smelt_ptx_map_memory).
constant constexpr uint needed = barriers_at + 8 * (4 * stages + 4) + 256, memory_bytes = needed < 120 * 1024 ? 120 * 1024 : needed;
constant constexpr float log2_e = 1.44269504f;
#if ATTENTION_MASK == 4
// A thread keeps the pairs of columns of its scores, if they are few: of every GRAIN pairs of a line, the first. Otherwise 0.
constant constexpr int PAIRS = WIDTH / 2, GRAIN = PAIRS % 4 == 0 ? 4 : PAIRS % 2 == 0 ? 2 : 1,
                       KEPT = WIDTH % 2 == 0 && PAIRS / GRAIN <= 16 ? PAIRS / GRAIN : 0;
#endif

using mpp::tensor_ops::__tensor_ops_detail::matrix_at;

// Three warpgroups begin their products in turns, so that one computes exponentials while others multiply; otherwise all would wait
// for the same unit at the same time. The barriers are 1 to 3.
constant constexpr bool in_turns = computing == 3;

inline void take_turn(uint warpgroup) {
    if (in_turns) __smelt_ptx_group_sync(1 + warpgroup, 256);
}
inline void pass_turn(uint warpgroup) {
    if (in_turns) __smelt_ptx_group_arrive(1 + (warpgroup + 1) % computing, 256);
}

inline ulong further(ulong matrix, uint bytes) { return matrix + (bytes >> 4); }

// Begins to compute the products of 64 queries and 128 keys.
inline void begin_scores(uint queries, uint keys, thread float (&scores)[64]) {
    const ulong left = matrix_at(queries, 0), right = matrix_at(keys, 0);
    __smelt_ptx_wgmma_fence();
#pragma unroll
    for (uint i = 0; i < D / 16; i++) {
        __smelt_ptx_wgmma(scores, further(left, i / 4 * rows_part + i % 4 * 32), further(right, i / 4 * part + i % 4 * 32), i > 0, 128,
                          bfloat_type, 0, 0);
    }
    __smelt_ptx_wgmma_commit();
}

// Begins to add the weighted values; without `add`, the sums begin with them.
inline void begin_sums(thread const uint (&weights)[32], uint values, bool add, thread float (&sums)[D / 2]) {
    const ulong right = matrix_at(values, part);
    __smelt_ptx_wgmma_fence();
#pragma unroll
    for (uint i = 0; i < 8; i++)
        __smelt_ptx_wgmma_registers(sums, weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3],
                                    further(right, i * 2048), add || i > 0, D, bfloat_type, 1);
    __smelt_ptx_wgmma_commit();
}

inline void round_weights(thread const float (&scores)[64], thread uint (&weights)[32]) {
#pragma unroll
    for (int i = 0; i < 32; i++) weights[i] = as_type<uint>(vec<T, 2>(T(scores[2 * i]), T(scores[2 * i + 1])));
}

// A thread's state of its two rows: the largest score so far times log2(e), its part of the sum, and by how much what was
// summed before counts less now.
struct softmax_state {
    float top[2], sum[2], scale[2];
    softmax_state(float sink, int column) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            top[i] = sink * log2_e;
            sum[i] = sink != -INFINITY && column == 0 ? 1.0f : 0.0f; // of four threads, one
        }
    }
};

// One instruction. A row with a NaN has NaN as its largest score, and so as all of its weights.
inline float larger(float x, float y) { return __smelt_ptx_max_nan(x, y); }

// Of the lane whose number differs in this bit.
inline float of_other(float x, uint bit) { return as_type<float>(__smelt_ptx_exchange(as_type<uint>(x), bit)); }

inline float largest_of_four(float x) {
    x = larger(x, of_other(x, 1));
    return larger(x, of_other(x, 2));
}

// Scores become exponentials: of `factor` times the score, base 2.
inline void exponentials(thread float (&scores)[64], float factor, thread softmax_state &state) {
    float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < 64; i += 2) top[i / 2 % 2] = larger(top[i / 2 % 2], larger(scores[i], scores[i + 1]));
    float from[2];
#pragma unroll
    for (int row = 0; row < 2; row++) {
        const float now = larger(state.top[row], largest_of_four(top[row]) * factor);
        from[row] = now == -INFINITY ? 0.0f : fma(now, 0.0f, now); // without any key so far, weights of 0; NaN, of infinity
        state.scale[row] = fast::exp2(state.top[row] - from[row]);
        state.top[row] = now;
        state.sum[row] *= state.scale[row];
    }
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
        const int row = i / 2 % 2;
        scores[i] = fast::exp2(fma(scores[i], factor, -from[row]));
        scores[i + 1] = fast::exp2(fma(scores[i + 1], factor, -from[row]));
        state.sum[row] += scores[i] + scores[i + 1];
    }
}

// A thread's two rows: the number of keys that each sees, the first of them, and the mask.
struct rows_of_thread {
    int first, limit[2];
    head_mask mask;
    float scale;
#if ATTENTION_MASK == 4
    device const T *lines[2], *columns[2];
    vec<T, 2> near[2][KEPT + !KEPT]; // of the block's first key of the thread, and every GRAIN pairs further in the line
#endif
    rows_of_thread(int row, int column, head_mask head, constant attention_size &size) : first(row), mask(head), scale(size.scale) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = row + i * 8;
            limit[i] = at >= size.rows ? 0 : size.causal ? min(size.keys, at + size.keys - size.rows + 1) : size.keys;
#if ATTENTION_MASK == 4
            lines[i] = mask.lines + (long)min(at, size.rows - 1) * size.lines;
            columns[i] = mask.columns + (long)min(at, size.rows - 1) * WIDTH;
            for (int j = 0; j < KEPT; j++) near[i][j] = *(device const vec<T, 2> *)(columns[i] + (j * GRAIN * 2 + column) % WIDTH);
#endif
        }
    }
};

// Softmax of a block of scores, of which the thread has those from `key` on. all: every row sees all of its keys. Without a mask,
// a positive scale keeps the order of scores, so it is applied in the exponentials.
#if ATTENTION_MASK == 4
inline void softmax(thread float (&scores)[64], bool all, int key, constant attention_size &size, thread rows_of_thread &rows,
                    thread softmax_state &state) {
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
        const int half = i / 2 % 2, at = key + i / 4 * 8;
        vec<T, 2> columns;
        float lines[2];
        if (KEPT) {
            columns = rows.near[half][i / 4 * (4 / GRAIN) % (KEPT + !KEPT)];
            lines[0] = lines[1] = (float)rows.lines[half][min(at / WIDTH, size.lines - 1)];
        } else if (WIDTH % 2 == 0) {
            const int own = min(at, size.keys - 2);
            columns = *(device const vec<T, 2> *)(rows.columns[half] + own % WIDTH);
            lines[0] = lines[1] = (float)rows.lines[half][own / WIDTH];
        } else {
            const int own = min(at, size.keys - 1), next = min(at + 1, size.keys - 1);
            columns = vec<T, 2>(rows.columns[half][own % WIDTH], rows.columns[half][next % WIDTH]);
            lines[0] = (float)rows.lines[half][own / WIDTH], lines[1] = (float)rows.lines[half][next / WIDTH];
        }
        scores[i] = fma(scores[i], rows.scale, lines[0] + (float)columns.x);
        scores[i + 1] = fma(scores[i + 1], rows.scale, lines[1] + (float)columns.y);
    }
    // The next block begins KEYS / 2 pairs later.
    if (KEPT && KEYS / 2 / GRAIN % (KEPT + !KEPT)) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            vec<T, 2> next[KEPT + !KEPT];
#pragma unroll
            for (int i = 0; i < KEPT; i++) next[i] = rows.near[half][(i + KEYS / 2 / GRAIN) % (KEPT + !KEPT)];
#pragma unroll
            for (int i = 0; i < KEPT; i++) rows.near[half][i] = next[i];
        }
    }
    if (!all) {
#pragma unroll
        for (int i = 0; i < 64; i++)
            if (key + i / 4 * 8 + i % 2 >= rows.limit[i / 2 % 2]) scores[i] = -INFINITY;
    }
    exponentials(scores, log2_e, state);
}
#elif ATTENTION_MASK == 0
inline void softmax(thread float (&scores)[64], bool all, int key, constant attention_size &size, thread const rows_of_thread &rows,
                    thread softmax_state &state) {
    const float factor = rows.scale * log2_e;
    const bool in_order = rows.scale > 0;
    if (!in_order) {
#pragma unroll
        for (int i = 0; i < 64; i++) scores[i] *= factor;
    }
    if (!all) {
        const int seen[2] = {rows.limit[0] - key, rows.limit[1] - key};
#pragma unroll
        for (int i = 0; i < 64; i++)
            if (i / 4 * 8 + i % 2 >= seen[i / 2 % 2]) scores[i] = -INFINITY;
    }
    exponentials(scores, in_order ? factor : 1.0f, state);
}
#else
// The score of a key times scale and log2(e), with the mask: -INFINITY where the row does not see the key.
inline float visible(float score, int half, int key, constant attention_size &size, thread const rows_of_thread &rows) {
    if (key >= rows.limit[half]) return -INFINITY;
    return kept_finite(with_mask(score * rows.scale, mask_at(rows.mask, rows.first + half * 8, key, size), 1), log2_e);
}

inline void softmax(thread float (&scores)[64], bool all, int key, constant attention_size &size, thread const rows_of_thread &rows,
                    thread softmax_state &state) {
#pragma unroll
    for (int i = 0; i < 64; i++) scores[i] = visible(scores[i], i / 2 % 2, key + i / 4 * 8 + i % 2, size, rows);
    exponentials(scores, 1.0f, state);
}
#endif

// Of a tile of ROWS rows: its first row, its head in the batch, and the blocks of keys that its rows see.
struct tile_of_rows {
    uint head, batch, head_of_batch, queries, keys, values; // the last three: numbers of matrices
    int first, blocks;
    tile_of_rows(uint tile, constant attention_size &size) {
        // Tiles of a head follow each other, and share its keys in the cache; the longest rows of a causal mask first.
        const uint row_blocks = (size.rows + ROWS - 1) / ROWS;
        head = __smelt_ptx_broadcast(tile / row_blocks);
        first = __smelt_ptx_broadcast((row_blocks - 1 - tile % row_blocks) * ROWS);
        batch = head / size.heads, head_of_batch = head % size.heads;
        const uint key_head = head_of_batch / (size.heads / size.key_heads);
        queries = batch * size.places[0].batch + head_of_batch * size.places[0].head;
        keys = batch * size.places[1].batch + key_head * size.places[1].head;
        values = batch * size.places[2].batch + key_head * size.places[2].head;
        const int end = size.causal ? min(size.keys, first + ROWS + size.keys - size.rows) : size.keys;
        blocks = max(0, end + KEYS - 1) / KEYS;
    }
};

// Which tiles a threadgroup computes: every `groups`th. With a causal mask tiles take different times; if there are fewer
// threadgroups than tiles, it computes
// - without size.turns, every `groups`th pair of a head's tiles: the longest and the shortest, the next two, and so on to the middle
//   one. So all pairs take equally long.
// - with it, tiles of all heads from the longest to the shortest, in rounds: the threadgroup that is first in one round is last in
//   the next. So all threadgroups take about equally long for any number of tiles, but each round reads the keys of all heads.
struct tiles_of_group {
    uint group, groups, steps;
    tiles_of_group(uint group, uint groups, constant attention_size &size) : group(group), groups(groups) {
        const uint row_blocks = row_blocks_of(size), tiles = size.tiles;
        const uint units = is_paired(size) ? tiles / row_blocks * ((row_blocks + 1) / 2) : tiles, first = size.turns ? 0 : group;
        steps = __smelt_ptx_broadcast((units - first + groups - 1) / groups * (is_paired(size) ? 2 : 1));
    }
    static uint row_blocks_of(constant attention_size &size) { return (size.rows + ROWS - 1) / ROWS; }
    bool is_paired(constant attention_size &size) thread const { return size.causal && !size.turns && groups < (uint)size.tiles; }
    // ~0: none, as the pair is one tile, or in the last round.
    uint number(uint step, constant attention_size &size) thread const {
        const uint row_blocks = row_blocks_of(size), tiles = size.tiles;
        if (size.turns) {
            const uint heads = tiles / row_blocks, place = step * groups + (step % 2 ? groups - 1 - group : group);
            return place < tiles ? place % heads * row_blocks + place / heads : ~0u;
        }
        if (!is_paired(size)) return group + step * groups;
        const uint pairs = (row_blocks + 1) / 2, unit = group + step / 2 * groups, head = unit / pairs, first = unit - head * pairs;
        const uint last = row_blocks - 1 - first;
        if (step % 2 && first == last) return ~0u;
        return head * row_blocks + (step % 2 ? last : first);
    }
    // The tile from `step` on, which moves past it; ~0: there is none.
    uint next(thread uint &step, constant attention_size &size) thread const {
        while (step < steps) {
            const uint tile = number(step++, size);
            if (tile != ~0u) return tile;
        }
        return ~0u;
    }
};

// The stage of the next block, and the phase of its barriers.
inline void advance(thread uint &stage, thread uint &parity) {
    if (++stage == stages) stage = 0, parity ^= 1;
}

// The place of the next tile's queries, and the phase of its barriers.
inline void advance_queries(thread uint &place, thread uint &parity) {
    place ^= 1;
    if (place == 0) parity ^= 1;
}

// What a warpgroup computes of a tile: its first row, how many keys all of its rows see, and how many blocks of keys some row sees,
// at least one. Of tiles of 128 rows, these are mostly all.
struct part_of_tile {
    int first, seen, blocks;
    part_of_tile(thread const tile_of_rows &tile, uint half, constant attention_size &size) {
        const int past = size.keys - size.rows;
        first = tile.first + half * 64;
        seen = size.causal ? min(size.keys, first + past + 1) : size.keys;
        const int seeing = size.causal && ROWS > 128 ? (first + 64 + past + KEYS - 1) / KEYS : tile.blocks;
        blocks = ROWS > 128 ? __smelt_ptx_broadcast(min(tile.blocks, max(1, seeing))) : tile.blocks;
    }
};

// Where the results of a thread's two rows go, and what their sums are multiplied by.
struct results_of_thread {
    device T *place; // of the first row, in the thread's first column
    int left;        // rows from this one on
    float factor[2];

    results_of_thread() = default;
    // Stores the logarithms of the rows' sums.
    results_of_thread(thread const softmax_state &state, thread const tile_of_rows &tile, int row, int column, device T *out,
                      device float *log_sums, constant attention_size &size) {
        place = out + result_at(tile.batch, tile.head_of_batch, row, size) + column;
        left = size.rows - row;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float all = state.sum[i];
            all += of_other(all, 1);
            all += of_other(all, 2);
            factor[i] = all == 0 ? 0.0f : 1 / all;
            if (i * 8 < left && column == 0) log_sums[(long)tile.head * size.rows + row + i * 8] = log_of_sum(state.top[i], all);
        }
    }

    void store(thread const float (&sums)[D / 2], int column, constant attention_size &size) thread const {
        const int depth = size.value_depth;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (i * 8 >= left) continue;
            device uint *const to = (device uint *)(place + i * 8 * size.result.row); // pairs, at multiples of their size
#pragma unroll
            for (int j = 0; j < D / 8; j++)
                if (j * 8 + column < depth)
                    to[j * 4] = as_type<uint>(vec<T, 2>(T(sums[j * 4 + i * 2] * factor[i]), T(sums[j * 4 + i * 2 + 1] * factor[i])));
        }
    }

    // Of rows that see no key.
    void store_zeros(int column, constant attention_size &size) thread const {
        for (int i = 0; i < 2 && i * 8 < left; i++)
            for (int j = 0; j * 8 + column < size.value_depth; j++) ((device uint *)(place + i * 8 * size.result.row))[j * 4] = 0;
    }
};

// Begins to copy KEYS rows of a matrix to threadgroup memory.
inline void copy_block(uint to, ulong map, int first, uint matrix, uint filled, uint leads) {
    __smelt_ptx_barrier_expect(filled, tile, leads);
    for (uint i = 0; i < D / 64; i++) __smelt_ptx_tensor_copy_of(to + i * part, map, i * 64, first, matrix, filled, leads);
}

// Values are copied after the keys of the block behind them, which are needed earlier, and whose place is free earlier.
struct values_of_block {
    bool any;
    uint stage, parity, matrix;
    int block;
    void copy(uint memory, ulong maps, uint values_filled, uint values_empty, uint leads) thread const {
        if (!any) return;
        __smelt_ptx_barrier_wait(values_empty + 8 * stage, parity);
        copy_block(memory + values_at + stage * tile, maps + 256, block * KEYS, matrix, values_filled + 8 * stage, leads);
    }
};

kernel void smelt_attention_warpgroups(device const T *q [[buffer(0)]], device const T *k [[buffer(1)]],
                                       device const T *v [[buffer(2)]], device T *out [[buffer(3)]],
                                       constant attention_size &size [[buffer(4)]],
                                       device float *log_sums [[buffer(5)]] MASK_PARAMETER SINKS_PARAMETER,
                                       uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]],
                                       uint thread_index [[thread_index_in_threadgroup]]) {
    if (__smelt_gpu_target() != 901) return;
    const uint memory = __smelt_ptx_shared_address(__smelt_staging(memory_bytes)), barriers = memory + barriers_at;
    const uint keys_filled = barriers, keys_empty = keys_filled + 8 * stages, values_filled = keys_empty + 8 * stages,
               values_empty = values_filled + 8 * stages, queries_filled = values_empty + 8 * stages,
               queries_empty = queries_filled + 16;
    const uint simdgroup = __smelt_ptx_broadcast(thread_index >> 5);
    const ulong maps = __smelt_ptx_map_memory();

    // The maps of all heads. What they describe lends scratch space for them.
    if (simdgroup < 3) {
        constant const auto &place = size.places[simdgroup];
        device const T *const data = (simdgroup == 0 ? q : simdgroup == 1 ? k : v) + place.first;
        const uint scratch = memory + (simdgroup == 0 ? 0 : simdgroup == 1 ? keys_at : values_at);
        __smelt_ptx_tensor_map_of(maps + 128 * simdgroup, scratch, (ulong)data, simdgroup == 2 ? size.value_depth : size.depth,
                                  simdgroup == 0 ? size.rows : size.keys, place.row * 2ul, 64, simdgroup == 0 ? ROWS : KEYS, map_type,
                                  place.count, place.between * 2ul);
    }
    if (thread_index == 96) {
        for (uint s = 0; s < stages; s++) {
            __smelt_ptx_barrier_init(keys_filled + 8 * s, 1);
            __smelt_ptx_barrier_init(values_filled + 8 * s, 1);
            __smelt_ptx_barrier_init(keys_empty + 8 * s, computing);
            __smelt_ptx_barrier_init(values_empty + 8 * s, computing);
        }
        for (uint s = 0; s < 2; s++) {
            __smelt_ptx_barrier_init(queries_filled + 8 * s, 1);
            __smelt_ptx_barrier_init(queries_empty + 8 * s, computing);
        }
        __smelt_ptx_fence_barriers();
    }
    __smelt_ptx_fence_async();
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const tiles_of_group tiles(group, groups, size);
    uint step = 0, number = tiles.next(step, size);
    if (simdgroup < 4) {
        __smelt_ptx_fewer_registers(24);
        if (simdgroup > 0) return;
        const uint leads = thread_index == 0;
        for (uint i = 0; i < 3; i++) __smelt_ptx_map_acquire(maps + 128 * i);
        uint stage = 0, parity = 1, queries_place = 0, queries_parity = 1;
        values_of_block due = {};
        for (; number != ~0u; number = tiles.next(step, size)) {
            const tile_of_rows own(number, size);
            if (own.blocks == 0) continue;
            const uint queries = memory + queries_place * queries_size, queries_full = queries_filled + 8 * queries_place;
            __smelt_ptx_barrier_wait(queries_empty + 8 * queries_place, queries_parity);
            advance_queries(queries_place, queries_parity);
            __smelt_ptx_barrier_expect(queries_full, queries_size, leads);
            for (uint i = 0; i < D / 64; i++)
                __smelt_ptx_tensor_copy_of(queries + i * rows_part, maps, i * 64, own.first, own.queries, queries_full, leads);
            for (int block = 0; block < own.blocks; block++) {
                __smelt_ptx_barrier_wait(keys_empty + 8 * stage, parity);
                copy_block(memory + keys_at + stage * tile, maps + 128, block * KEYS, own.keys, keys_filled + 8 * stage, leads);
                due.copy(memory, maps, values_filled, values_empty, leads);
                due = {true, stage, parity, own.values, block};
                advance(stage, parity);
            }
        }
        due.copy(memory, maps, values_filled, values_empty, leads);
        return;
    }

    __smelt_ptx_more_registers(registers);
    const uint lane = __smelt_ptx_lane(), half = simdgroup / 4 - 1, signals = (thread_index & 127) == 0;
    const int row_of_part = simdgroup % 4 * 16 + lane / 4, column = lane % 4 * 2;
    uint stage = 0, parity = 0, queries_place = 0, queries_parity = 0, before = 0, parity_before = 0;
    float scores[64], sums[D / 2];
    uint weights[32] = {};
    // Of the tile before: whether there is one, whose last weights wait for their product with values; whether that adds to others.
    bool waits = false, add = false;
    results_of_thread results;
    if (half == computing - 1) pass_turn(half);
    for (; number != ~0u; number = tiles.next(step, size)) {
        const tile_of_rows own(number, size);
        const part_of_tile work(own, half, size);
        rows_of_thread rows(work.first + row_of_part, column, MASK_OF(own.batch, own.head_of_batch), size);
        softmax_state state(SINK_OF(own.head_of_batch), column);
        if (own.blocks == 0) {
            results_of_thread(state, own, rows.first, column, out, log_sums, size).store_zeros(column, size);
            continue;
        }
        const uint queries = memory + queries_place * queries_size + half * 64 * 128, queries_read = queries_empty + 8 * queries_place;
        __smelt_ptx_barrier_wait(queries_filled + 8 * queries_place, queries_parity);
        advance_queries(queries_place, queries_parity);
        __smelt_ptx_barrier_wait(keys_filled + 8 * stage, parity);
        take_turn(half);
        begin_scores(queries, memory + keys_at + stage * tile, scores);
        // For the first tile, a product of what lies there: a branch would have products run one after another.
        if (waits) __smelt_ptx_barrier_wait(values_filled + 8 * before, parity_before);
        begin_sums(weights, memory + values_at + before * tile, add, sums);
        pass_turn(half);
        __smelt_ptx_wgmma_finish(scores, 64, 1);
        __smelt_ptx_barrier_arrive(keys_empty + 8 * stage, signals);
        __smelt_ptx_barrier_arrive(queries_read, signals & (work.blocks == 1));
        softmax(scores, KEYS <= work.seen, column, size, rows, state);
        __smelt_ptx_barrier_wait(values_filled + 8 * stage, parity);
        __smelt_ptx_wgmma_finish(sums, D / 2, 0);
        __smelt_ptx_barrier_arrive(values_empty + 8 * before, signals & waits);
        if (waits) results.store(sums, column, size);
        round_weights(scores, weights);
        before = stage, parity_before = parity;
        if (work.blocks > 1) {
            advance(stage, parity);
            __smelt_ptx_barrier_wait(keys_filled + 8 * stage, parity);
        }
        for (int block = 1; block < work.blocks; block++) {
            take_turn(half);
            begin_scores(queries, memory + keys_at + stage * tile, scores);
            __smelt_ptx_barrier_wait(values_filled + 8 * before, parity_before);
            begin_sums(weights, memory + values_at + before * tile, block > 1, sums);
            pass_turn(half);
            __smelt_ptx_wgmma_finish(scores, 64, 1);
            __smelt_ptx_barrier_arrive(keys_empty + 8 * stage, signals);
            __smelt_ptx_barrier_arrive(queries_read, signals & (block + 1 == work.blocks));
            const int key = block * KEYS;
            softmax(scores, key + KEYS <= work.seen, key + column, size, rows, state);
            const uint done = before;
            before = stage, parity_before = parity;
            const bool is_last = block + 1 == work.blocks;
            if (!is_last) advance(stage, parity);
            // The next keys; after the last, their values. The branch in it keeps the exponentials before the wait below.
            __smelt_ptx_barrier_wait((is_last ? values_filled : keys_filled) + 8 * stage, parity);
            __smelt_ptx_wgmma_finish(sums, D / 2, 0);
            __smelt_ptx_barrier_arrive(values_empty + 8 * done, signals);
            round_weights(scores, weights);
#pragma unroll
            for (int i = 0; i < D / 2; i++) sums[i] *= state.scale[i / 2 % 2];
        }
        results = results_of_thread(state, own, rows.first, column, out, log_sums, size);
        waits = true, add = work.blocks > 1;
        advance(stage, parity);
        // The other blocks only pass by. The turns keep a simdgroup from missing a phase of the barriers, which others may end.
        for (int block = work.blocks; ROWS > 128 && block < own.blocks; block++) {
            __smelt_ptx_barrier_wait(keys_filled + 8 * stage, parity);
            __smelt_ptx_barrier_arrive(keys_empty + 8 * stage, signals);
            __smelt_ptx_barrier_wait(values_filled + 8 * stage, parity);
            __smelt_ptx_barrier_arrive(values_empty + 8 * stage, signals);
            advance(stage, parity);
            take_turn(half);
            pass_turn(half);
        }
    }
    if (!waits) return;
    __smelt_ptx_barrier_wait(values_filled + 8 * before, parity_before);
    begin_sums(weights, memory + values_at + before * tile, add, sums);
    __smelt_ptx_wgmma_finish(sums, D / 2, 0);
    results.store(sums, column, size);
}
