// The derivative of attention of arrays by warpgroups, for GPUs of compute capability 9.0 and half or bfloat.
// attention_parts.metal precedes this text, with ATTENTION_DEPTH 64 and ATTENTION_ROWS 128, or 128 and 64; ATTENTION_KEYS is
// 128.
//
// A threadgroup of two warpgroups, 256 threads, computes the derivatives by 128 keys and by their values, 64 by each
// warpgroup, and adds its part of that by each row of q. It walks over the rows, of all heads that share the keys, in blocks
// of ROWS. Scores are transposed here, keys × rows: their weights in registers are the left matrix of the product with g. The
// derivatives by scores lie in threadgroup memory as well, where both warpgroups have theirs, for the product with the keys.
//
// Three kernels run one after another:
//   smelt_attention_vjp_notes       what all blocks of keys need of each row; sums by q become 0
//   smelt_attention_vjp_warpgroups
//   smelt_attention_vjp_round       sums by q, times the scale, as elements
//
// Rows of q, k, v and g begin at multiples of 16 bytes. Sums by q lie as the products leave them (see sums_at).

static_assert(sizeof(T) == 2 && (D == 64 || D == 128) && ROWS == 8192 / D && KEYS == 128, "the tile of this kernel");
constant constexpr uint bfloat_type = is_same_v<T, bfloat>, map_type = bfloat_type ? 10 : 6;
// Bytes of 64 columns of a tile of keys (values) or of rows (of q or g), of the tile, and of the derivatives by scores.
constant constexpr uint key_part = KEYS * 128, key_tile = D / 64 * key_part, row_part = ROWS * 128, row_tile = D / 64 * row_part;
constant constexpr uint score_part = KEYS * 128, score_tile = ROWS / 64 * score_part, note_bytes = ROWS * 8, stages = 3;
// What lies in threadgroup memory. Derivatives by scores have two places, rows and what belongs to them three.
constant constexpr uint keys_at = 0, values_at = keys_at + key_tile, scores_at = values_at + key_tile,
                        rows_at = scores_at + 2 * score_tile, g_at = rows_at + stages * row_tile,
                        notes_at = g_at + stages * row_tile, barriers_at = notes_at + stages * note_bytes,
                        memory_bytes = barriers_at + 8 * stages;
constant constexpr float log2_e = 1.44269504f;

using mpp::tensor_ops::__tensor_ops_detail::matrix_at;

// ---- What is known of each row: the logarithm (base 2) of its sum, then Σ g · out. A row of which nothing is seen, or that
// does not exist, has an infinite sum: all of its weights are 0.

// Where a block's sums by q begin; 4 floats of each of 256 threads follow another, 8 times.
inline ulong sums_at(long head, int block, int row_blocks) { return (head * row_blocks + block) * 8192ul; }

// A simdgroup for each row of each head, of rows in whole blocks.
kernel void smelt_attention_vjp_notes(device const T *out [[buffer(0)]], device const T *g [[buffer(1)]],
                                      device float2 *notes [[buffer(3)]], constant attention_size &size [[buffer(4)]],
                                      device const float *log_sums [[buffer(5)]], device float4 *by_q [[buffer(6)]],
                                      uint group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                                      uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    const int rows = (size.rows + ROWS - 1) / ROWS * ROWS;
    const long place = group * 8l + simdgroup, head = place / rows;
    const int row = (int)(place % rows), column = lane * 4;
    if (D == 128 || lane < 16) by_q[place * (D / 4) + lane] = 0;
    if (row >= size.rows) {
        if (lane == 0) notes[place] = float2(INFINITY, 0);
        return;
    }
    const long line = head * size.rows + row;
    float sum = 0;
    if (column < size.value_depth) {
        const vec<T, 4> a = *(device const vec<T, 4> *)(out + line * size.value_depth + column);
        const vec<T, 4> b = *(device const vec<T, 4> *)(g + line * size.value_depth + column);
        for (int i = 0; i < 4; i++) sum += (float)a[i] * (float)b[i];
    }
    sum = simd_sum(sum);
    if (lane == 0) notes[place] = float2(log_sums[line] == -INFINITY ? INFINITY : log_sums[line] * log2_e, sum);
}

// A threadgroup of 256 for each block of rows of each head. A thread rounds eight columns of two rows, which four lanes of
// the products left next to each other.
kernel void smelt_attention_vjp_round(device const float4 *sums [[buffer(0)]], device T *by_q [[buffer(3)]],
                                      constant attention_size &size [[buffer(4)]], uint group [[threadgroup_position_in_grid]],
                                      uint thread_index [[thread_index_in_threadgroup]]) {
    const int row_blocks = (size.rows + ROWS - 1) / ROWS, block = group % row_blocks, eighth = thread_index % 8;
    const long head = group / row_blocks;
    for (int four = thread_index / 8; four < 64; four += 32) {
        device const float4 *from = sums + sums_at(head, block, row_blocks) / 4 + eighth * 256 + four * 4;
        const int half_tile = four / 32 * 64, column = (D == 128 ? half_tile : 0) + eighth * 8;
        const int row = block * ROWS + (D == 64 ? half_tile : 0) + four % 32 / 8 * 16 + four % 8;
        vec<T, 4> parts[2][2];
        for (int i = 0; i < 4; i++) {
            const float4 sum = from[i] * size.scale;
            for (int h = 0; h < 2; h++) {
                parts[h][i / 2][i % 2 * 2] = T(sum[h * 2]);
                parts[h][i / 2][i % 2 * 2 + 1] = T(sum[h * 2 + 1]);
            }
        }
        if (column >= size.depth) continue;
        for (int h = 0; h < 2; h++) {
            if (row + h * 8 >= size.rows) continue;
            device vec<T, 4> *to = (device vec<T, 4> *)(by_q + (head * size.rows + row + h * 8) * size.depth + column);
            to[0] = parts[h][0], to[1] = parts[h][1];
        }
    }
}

// ---- Products.

inline ulong further(ulong matrix, uint bytes) { return matrix + (bytes >> 4); }

// Begins to compute the products of 64 keys (values) and ROWS rows.
inline void begin_scores(uint keys, uint rows, thread float (&scores)[ROWS / 2]) {
    const ulong left = matrix_at(keys, 0), right = matrix_at(rows, 0);
    __smelt_ptx_wgmma_fence();
#pragma unroll
    for (uint i = 0; i < D / 16; i++)
        __smelt_ptx_wgmma(scores, further(left, i / 4 * key_part + i % 4 * 32), further(right, i / 4 * row_part + i % 4 * 32),
                          i > 0, ROWS, bfloat_type, 0, 0);
    __smelt_ptx_wgmma_commit();
}

// Begins to add the rows, weighted, to sums of 64 keys; without `add`, the sums begin with them.
inline void begin_sums(thread const uint (&weights)[ROWS / 4], uint rows, bool add, thread float (&sums)[D / 2]) {
    const ulong right = matrix_at(rows, row_part);
    __smelt_ptx_wgmma_fence();
#pragma unroll
    for (uint i = 0; i < ROWS / 16; i++)
        __smelt_ptx_wgmma_registers(sums, weights[4 * i], weights[4 * i + 1], weights[4 * i + 2], weights[4 * i + 3],
                                    further(right, i * 2048), add || i > 0, D, bfloat_type, 1);
    __smelt_ptx_wgmma_commit();
}

// Begins to compute the sums by q of 64 rows and 64 columns.
inline void begin_by_rows(uint scores, uint keys, thread float (&sums)[32]) {
    const ulong left = matrix_at(scores, 0), right = matrix_at(keys, 0);
    __smelt_ptx_wgmma_fence();
#pragma unroll
    for (uint i = 0; i < KEYS / 16; i++)
        __smelt_ptx_wgmma(sums, further(left, i * 2048), further(right, i * 2048), i > 0, 64, bfloat_type, 1, 1);
    __smelt_ptx_wgmma_commit();
}

// ---- Scores.

// A thread's two keys, `key` and 8 further on, and of each eight rows two: `row` is the first. A key is seen by the rows
// from `seen_from` on.
struct pairs_of_thread {
    int row, key, seen_from[2];
    bool all; // all rows see all keys of the warpgroup
};

// Scores become weights. Those of rows that do not exist become 0 by their notes.
inline void weigh(thread float (&scores)[ROWS / 2], threadgroup const float4 *notes, pairs_of_thread at,
                  constant attention_size &size, head_mask mask) {
    if (!at.all) {
        const float factor = size.scale * log2_e;
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++) {
#if ATTENTION_MASK
            scores[i] = masked(scores[i], at.row + i / 4 * 8 + i % 2, at.key + i / 2 % 2 * 8, size, mask) * log2_e;
#else
            scores[i] = i / 4 * 8 + i % 2 >= at.seen_from[i / 2 % 2] - at.row ? scores[i] * factor : -INFINITY;
#endif
        }
    }
    const float factor = at.all ? size.scale * log2_e : 1.0f;
#pragma unroll
    for (int j = 0; j < ROWS / 8; j++) {
        const float4 note = notes[j * 4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            scores[j * 4 + i] = fast::exp2(fma(scores[j * 4 + i], factor, i % 2 ? -note[2] : -note[0]));
    }
}

// Derivatives by weights become those by scores.
inline void differentiate(thread const float (&weights)[ROWS / 2], threadgroup const float4 *notes,
                          thread float (&by_weights)[ROWS / 2]) {
#pragma unroll
    for (int j = 0; j < ROWS / 8; j++) {
        const float4 note = notes[j * 4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            by_weights[j * 4 + i] = weights[j * 4 + i] * (by_weights[j * 4 + i] - (i % 2 ? note[3] : note[1]));
    }
}

inline void round_pairs(thread const float (&from)[ROWS / 2], thread uint (&to)[ROWS / 4]) {
#pragma unroll
    for (int i = 0; i < ROWS / 4; i++) to[i] = as_type<uint>(vec<T, 2>(T(from[2 * i]), T(from[2 * i + 1])));
}

// Keys are lines of 128 bytes, 64 rows; `line` is that of the lane, `chunk` its first 16 bytes there.
inline void store_scores(thread const uint (&scores)[ROWS / 4], uint line, uint key, uint chunk) {
#pragma unroll
    for (uint i = 0; i < ROWS / 16; i++)
        __smelt_ptx_store_matrices(line + i / 4 * score_part + ((i % 4 * 2 + chunk) ^ (key & 7)) * 16, scores[4 * i],
                                   scores[4 * i + 1], scores[4 * i + 2], scores[4 * i + 3]);
}

inline void add_by_rows(thread const float (&sums)[32], ulong to) {
#pragma unroll
    for (int i = 0; i < 8; i++) __smelt_ptx_add_four(to + i * 4096, sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
}

// ---- Copies.

// 128 rows of `depth` elements, of which `there` exist, to a tile.
inline void copy_keys(device const T *from, int there, int depth, uint to, uint thread_index) {
    for (int i = thread_index; i < KEYS * D / 8; i += 256) {
        const int row = i / (D / 8), chunk = i % (D / 8);
        uint4 bits = 0;
        if (row < there && chunk * 8 < depth) bits = *(device const uint4 *)(from + (long)row * depth + chunk * 8);
        __smelt_ptx_store_shared(to + chunk / 8 * key_part + row * 128 + ((chunk ^ row) & 7) * 16, bits.x, bits.y, bits.z, bits.w);
    }
}

// The blocks of rows in order: of each head from `begin` on.
struct place_of_block {
    int head, block;
};

inline void advance(thread place_of_block &at, int begin, int row_blocks) {
    if (++at.block == row_blocks) at.head++, at.block = begin;
}

// Two elements of each eighth column, of two rows 8 apart, from `to` on.
inline void write_sums(thread const float (&sums)[D / 2], float factor, device T *to, int row, int rows, int column, int depth) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (row + i * 8 >= rows) continue;
#pragma unroll
        for (int j = 0; j < D / 8; j++)
            if (j * 8 + column < depth)
                *(device vec<T, 2> *)(to + (long)(row + i * 8) * depth + j * 8 + column) =
                    vec<T, 2>(T(sums[j * 4 + i * 2] * factor), T(sums[j * 4 + i * 2 + 1] * factor));
    }
}

kernel void smelt_attention_vjp_warpgroups(device const T *q [[buffer(0)]], device const T *k [[buffer(1)]],
                                           device const T *v [[buffer(2)]], device T *by_k [[buffer(3)]],
                                           constant attention_size &size [[buffer(4)]], device const float2 *notes [[buffer(5)]],
                                           device float *by_q [[buffer(6)]], device const T *g [[buffer(7)]],
                                           device T *by_v [[buffer(8)]] MASK_PARAMETER,
                                           uint group [[threadgroup_position_in_grid]], uint groups [[threadgroups_per_grid]],
                                           uint thread_index [[thread_index_in_threadgroup]]) {
    if (__smelt_gpu_target() != 901) return;
    // Those of the first keys have the most rows under a causal mask.
    const int key_blocks = (size.keys + KEYS - 1) / KEYS, row_blocks = (size.rows + ROWS - 1) / ROWS;
    const int first = group % key_blocks * KEYS, past = size.keys - size.rows, together = size.heads / size.key_heads;
    const long key_head = group / key_blocks;
    const int batch = (int)(key_head / size.key_heads), first_head = (int)(key_head % size.key_heads) * together;
    const int heads_before = batch * size.heads;
    const int begin = size.causal ? max(0, first - past) / ROWS : 0;
    const int steps = __smelt_ptx_broadcast(max(0, row_blocks - begin) * together);
    const uint memory = __smelt_ptx_shared_address(__smelt_staging(memory_bytes)), filled = memory + barriers_at;
    const uint simdgroup = __smelt_ptx_broadcast(thread_index >> 5), lane = __smelt_ptx_lane(), own = simdgroup / 4;
    const ulong maps = __smelt_ptx_map_memory();
    const uint leads = thread_index == 0;

    // The scores' memory lends scratch space for the maps.
    const uint all_heads = (groups / key_blocks) / size.key_heads * size.heads;
    if (simdgroup == 0)
        __smelt_ptx_tensor_map_of(maps, memory + scores_at, (ulong)q, size.depth, size.rows, size.depth * 2ul, 64, ROWS, map_type,
                                  all_heads, size.rows * (size.depth * 2ul));
    if (simdgroup == 1)
        __smelt_ptx_tensor_map_of(maps + 128, memory + scores_at + 128, (ulong)g, size.value_depth, size.rows,
                                  size.value_depth * 2ul, 64, ROWS, map_type, all_heads, size.rows * (size.value_depth * 2ul));
    if (thread_index == 64) {
        for (uint s = 0; s < stages; s++) __smelt_ptx_barrier_init(filled + 8 * s, 1);
        __smelt_ptx_fence_barriers();
    }
    copy_keys(k + (key_head * size.keys + first) * size.depth, size.keys - first, size.depth, memory + keys_at, thread_index);
    copy_keys(v + (key_head * size.keys + first) * size.value_depth, size.keys - first, size.value_depth, memory + values_at,
              thread_index);
    __smelt_ptx_fence_async();
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup == 0) {
        __smelt_ptx_map_acquire(maps);
        __smelt_ptx_map_acquire(maps + 128);
    }

    place_of_block next = {first_head, begin};
    auto copy = [&](uint stage, uint active) __attribute__((always_inline)) {
        const uint barrier = filled + 8 * stage, head = __smelt_ptx_broadcast(heads_before + next.head),
                   row = __smelt_ptx_broadcast(next.block * ROWS);
        __smelt_ptx_barrier_expect(barrier, 2 * row_tile + note_bytes, active);
#pragma unroll
        for (uint i = 0; i < D / 64; i++) {
            __smelt_ptx_tensor_copy_of(memory + rows_at + stage * row_tile + i * row_part, maps, i * 64, row, head, barrier, active);
            __smelt_ptx_tensor_copy_of(memory + g_at + stage * row_tile + i * row_part, maps + 128, i * 64, row, head, barrier, active);
        }
        __smelt_ptx_copy(memory + notes_at + stage * note_bytes, (ulong)(notes + ((long)head * row_blocks * ROWS + row)), note_bytes,
                         barrier, active);
        advance(next, begin, row_blocks);
    };
    for (int s = 0; s < 3; s++) copy(s, leads && s < steps);

    const uint keys = memory + keys_at + own * 64 * 128, values = memory + values_at + own * 64 * 128;
    // The lane's line among the scores, and the warpgroup's part of the product with the keys.
    const uint stored_key = own * 64 + simdgroup % 4 * 16 + lane % 16, chunk = lane / 16;
    const uint line = memory + scores_at + stored_key * 128;
    const uint left_rows = memory + scores_at + (D == 64 ? own * score_part : 0), right_keys = memory + keys_at + (D == 128 ? own * key_part : 0);
    const int key = first + (int)(own * 64 + simdgroup % 4 * 16 + lane / 4), column = lane % 4 * 2;
    const int last_key = first + (int)own * 64 + 63;
    threadgroup const float4 *lane_notes = (threadgroup const float4 *)(__smelt_staging(memory_bytes) + notes_at) + lane % 4;
    const ulong thread_sums = (ulong)(by_q) + thread_index * 16;
    float scores[ROWS / 2], by_weights[ROWS / 2], sums_k[D / 2], sums_v[D / 2], sums_q[32];
    uint weights[ROWS / 4], by_scores[ROWS / 4];
    place_of_block at = {first_head, begin};
    int seen_from[2];
#pragma unroll
    for (int i = 0; i < 2; i++) seen_from[i] = key + i * 8 >= size.keys ? INT_MAX : size.causal ? key + i * 8 - past : 0;
    auto pairs = [&]() __attribute__((always_inline)) {
        const int row = at.block * ROWS;
        return pairs_of_thread{.row = row + column, .key = key, .seen_from = {seen_from[0], seen_from[1]},
                               .all = !ATTENTION_MASK && last_key < size.keys && (!size.causal || last_key <= row + past)};
    };
    if (steps == 0) {
#pragma unroll
        for (int i = 0; i < D / 2; i++) sums_k[i] = sums_v[i] = 0;
    } else {
        __smelt_ptx_barrier_wait(filled, 0);
        begin_scores(keys, memory + rows_at, scores);
        uint stage = 0, parity = 0, buffer = 0, after = 0;
        for (int step = 0; step < steps; step++) {
            const uint rows = memory + rows_at + stage * row_tile, own_g = memory + g_at + stage * row_tile;
            threadgroup const float4 *own_notes = lane_notes + stage * (note_bytes / 16);
            begin_scores(values, own_g, by_weights);
            __smelt_ptx_wgmma_finish(scores, ROWS / 2, 1);
            weigh(scores, own_notes, pairs(), size, MASK_OF(batch, at.head));
            __smelt_ptx_wgmma_finish(by_weights, ROWS / 2, 0);
            differentiate(scores, own_notes, by_weights);
            round_pairs(scores, weights);
            round_pairs(by_weights, by_scores);
            store_scores(by_scores, line + buffer * score_tile, stored_key, chunk);
            __smelt_ptx_fence_async();
            begin_sums(weights, own_g, step > 0, sums_v);
            // Both warpgroups have written these derivatives by scores, and read the rows of the step before.
            threadgroup_barrier(mem_flags::mem_threadgroup);
            begin_by_rows(left_rows + buffer * score_tile, right_keys, sums_q);
            begin_sums(by_scores, rows, step > 0, sums_k);
            if (simdgroup == 0 && step > 0) {
                copy(after, leads && step + 2 < steps);
                if (++after == stages) after = 0;
            }
            __smelt_ptx_wgmma_finish(sums_q, 32, 1);
            // The next step's scores; after the last, once more its own.
            if (step + 1 < steps && ++stage == stages) stage = 0, parity ^= 1;
            __smelt_ptx_barrier_wait(filled + 8 * stage, parity);
            begin_scores(keys, memory + rows_at + stage * row_tile, scores);
            add_by_rows(sums_q, thread_sums + sums_at(heads_before + at.head, at.block, row_blocks) * 4);
            advance(at, begin, row_blocks);
            buffer ^= 1;
        }
        __smelt_ptx_wgmma_finish(scores, ROWS / 2, 0);
        __smelt_ptx_wgmma_finish(sums_v, D / 2, 0);
        __smelt_ptx_wgmma_finish(sums_k, D / 2, 0);
    }
    const int own_row = key - first, there = size.keys - first;
    write_sums(sums_k, size.scale, by_k + (key_head * size.keys + first) * size.depth, own_row, there, column, size.depth);
    write_sums(sums_v, 1, by_v + (key_head * size.keys + first) * size.value_depth, own_row, there, column, size.value_depth);
}
