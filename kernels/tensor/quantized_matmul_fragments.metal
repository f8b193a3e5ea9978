// out = x · wᵀ of few rows and packed weights, as quantized_matmul.metal computes it, by the tensor cores of each simdgroup. For
// GPUs of compute capability 9.0. Weights are integers or small floats that half and bfloat hold exactly; scales and biases are
// applied to the sums of each group of them, which are float.
//
// quantized_parts.metal precedes this text. The text that precedes that one also defines
//   QUANTIZED_LINES   of w for a simdgroup: 16 or 32
//   QUANTIZED_EIGHTS  of rows of x for a threadgroup
//   QUANTIZED_TEAMS   of eight simdgroups in a threadgroup
//
// A team computes LINES columns of 8 · EIGHTS rows. Its simdgroups take turns at chunks of 128 terms, each with copies of its own
// to threadgroup memory, some chunks ahead; they add their sums at the end. Rows of x and w begin at multiples of 16 bytes (8, of
// 2 bits), rows of scales at multiples of a chunk's; terms are a multiple of 128, and w has less than 2^32 bytes.
constant constexpr int LINES = QUANTIZED_LINES, EIGHTS = QUANTIZED_EIGHTS, TEAMS = QUANTIZED_TEAMS;
constant constexpr int CHUNK = 128, SIMDGROUPS = 8, SIXTEENS = LINES / 16, GROUPS = CHUNK / GROUP;
// Of a line's and a row's part of a chunk; of a copy; of a chunk.
constant constexpr int line_bytes = CHUNK * BITS / 8, row_bytes = CHUNK * 2, piece = BITS == 2 ? 8 : 16;
constant constexpr int weight_bytes = LINES * line_bytes, stage_bytes = weight_bytes + EIGHTS * 8 * row_bytes;
// Two threadgroups of one team run on a multiprocessor.
constant constexpr int most_stages = (TEAMS == 1 ? 104 : 208) * 1024 / (TEAMS * SIMDGROUPS * stage_bytes), STAGES = most_stages < 4 ? most_stages : 4;
constant constexpr int sum_bytes = SIMDGROUPS * LINES * EIGHTS * 8 * 4;
constant constexpr int team_bytes = SIMDGROUPS * STAGES * stage_bytes > sum_bytes ? SIMDGROUPS * STAGES * stage_bytes : sum_bytes;
static_assert(STAGES >= 2 && CHUNK % GROUP == 0 && sizeof(T) == 2, "the tile of this kernel");

// Where bytes of lines and rows lie in a stage: so that the lanes of a load meet in no bank.
inline uint place_in_line(uint line, uint byte) {
    return line * line_bytes + (byte ^ (BITS == 4   ? (line >> 1 & 3) << 4
                                        : BITS == 8 ? (line & 3) << 5
                                                    : (line >> 2 & 1) << 3));
}
inline uint place_in_row(uint row, uint byte) { return row * row_bytes + (byte ^ (row & 1) << 6); }

inline void read_weights(threadgroup const uchar *at, thread uint (&pairs)[4]) {
    if (BITS == 8) {
        const uint2 words = *(threadgroup const uint2 *)at;
        unpack(words.x, words.y, pairs);
    } else {
        unpack(BITS == 4 ? *(threadgroup const uint *)at : *(threadgroup const ushort *)at, 0, pairs);
    }
}

// Eight elements of x as such pairs.
inline void read_terms(threadgroup const uchar *at, thread uint (&pairs)[4]) {
    const uint4 words = *(threadgroup const uint4 *)at;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        pairs[i] = __smelt_ptx_permute_bytes(words[i / 2], words[i / 2 + 2], i % 2 ? 0x7632 : 0x5410);
    }
}

// A chunk's scales, or biases, of a line.
struct alignas(sizeof(S) * GROUPS) scales_of_chunk {
    S of[GROUPS];
};

kernel void smelt_quantized_matmul_fragments(device const T *x [[buffer(0)]], device const uchar *w [[buffer(1)]],
                                             device const S *scales [[buffer(2)]], device const S *biases [[buffer(3)]],
                                             device T *out [[buffer(4)]], constant quantized_size &size [[buffer(5)]],
                                             uint2 group [[threadgroup_position_in_grid]],
                                             uint thread_index [[thread_index_in_threadgroup]]) {
    if (__smelt_gpu_target() != 901) return;
    const uint all_simdgroups = __smelt_ptx_broadcast(thread_index >> 5), lane = __smelt_ptx_lane();
    const uint simdgroup = all_simdgroups % SIMDGROUPS, team = all_simdgroups / SIMDGROUPS;
    const int first = (group.x * TEAMS + team) * LINES, row = group.y * 8 * EIGHTS, chunks = size.terms / CHUNK;
    threadgroup uchar *team_memory = __smelt_staging(TEAMS * team_bytes) + team * team_bytes;
    threadgroup uchar *memory = team_memory + simdgroup * STAGES * stage_bytes;

    // What the lane copies of a chunk: pieces of lines and of rows. Rows that do not exist count as 0; nothing is read of them.
    constexpr int line_pieces = weight_bytes / piece / 32, row_pieces = EIGHTS * 8 * row_bytes / 16 / 32;
    static_assert(row_bytes == 16 * 16, "a simdgroup copies a chunk of two rows at a time");
    const int own_row = row + lane / 16, rows_left = size.rows - own_row;
    const ulong rows_from = (ulong)x + (own_row * (ulong)chunks * 16 + lane % 16) * 16, two_rows = (ulong)chunks * row_bytes * 2;
    uint line_from[line_pieces];
#pragma unroll
    for (int i = 0; i < line_pieces; i++) {
        const uint at = i * 32 + lane, line = min(first + (int)(at / (line_bytes / piece)), size.columns - 1);
        line_from[i] = line * chunks * line_bytes + at % (line_bytes / piece) * piece;
    }

    auto copy = [&](uint stage, int chunk) __attribute__((always_inline)) {
        const uint to = __smelt_ptx_shared_address(memory) + stage * stage_bytes;
        if (chunk < chunks) {
            const ulong from = (ulong)w + (uint)chunk * line_bytes;
#pragma unroll
            for (int i = 0; i < line_pieces; i++) {
                const uint at = i * 32 + lane, place = place_in_line(at / (line_bytes / piece), at % (line_bytes / piece) * piece);
                if (piece == 8)
                    __smelt_ptx_copy_8(to + place, from + line_from[i], 8);
                else
                    __smelt_ptx_copy_16(to + place, from + line_from[i], 16);
            }
            const ulong chunk_from = rows_from + (uint)chunk * row_bytes;
#pragma unroll
            for (int i = 0; i < row_pieces; i++)
                __smelt_ptx_copy_16(to + weight_bytes + place_in_row(i * 2 + lane / 16, lane % 16 * 16), chunk_from + i * two_rows,
                                    i * 2 < rows_left ? 16 : 0);
        }
        __smelt_ptx_copy_commit();
    };

    // Scales and biases of the lane's lines, one chunk ahead.
    scales_of_chunk scales_ahead[SIXTEENS * 2], biases_ahead[SIXTEENS * 2];
    uint scales_at[SIXTEENS * 2];
#pragma unroll
    for (int i = 0; i < SIXTEENS * 2; i++) scales_at[i] = min(first + i * 8 + (int)lane / 4, size.columns - 1) * chunks;
    auto read_scales = [&](int chunk) __attribute__((always_inline)) {
#pragma unroll
        for (int i = 0; i < SIXTEENS * 2; i++) {
            scales_ahead[i] = ((device const scales_of_chunk *)scales)[scales_at[i] + chunk];
            if (MODE == 0) biases_ahead[i] = ((device const scales_of_chunk *)biases)[scales_at[i] + chunk];
        }
    };

    const uint own_thread = all_simdgroups * 32 + lane;
    begin_ahead(w, chunks * line_bytes, min((int)(group.x * TEAMS * LINES + own_thread), size.columns - 1), own_thread < TEAMS * LINES);
    __smelt_ptx_launch_next();
    for (int s = 0; s < STAGES - 1; s++) copy(s, simdgroup + s * SIMDGROUPS);
    read_scales(min((int)simdgroup, chunks - 1));
    __smelt_float4 sums[SIXTEENS][EIGHTS] = {};
    uint stage = 0;
    for (int chunk = simdgroup; chunk < chunks; chunk += SIMDGROUPS) {
        __smelt_ptx_copy_wait_group(STAGES - 2);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        copy((stage + STAGES - 1) % STAGES, chunk + (STAGES - 1) * SIMDGROUPS);
        threadgroup const uchar *weights = memory + stage * stage_bytes, *terms = weights + weight_bytes;
        scales_of_chunk scales_now[SIXTEENS * 2], biases_now[SIXTEENS * 2];
#pragma unroll
        for (int i = 0; i < SIXTEENS * 2; i++) {
            scales_now[i] = scales_ahead[i];
            if (MODE == 0) biases_now[i] = biases_ahead[i];
        }
        read_scales(min(chunk + SIMDGROUPS, chunks - 1));
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
            __smelt_float4 dots[SIXTEENS][EIGHTS] = {}, alls[EIGHTS] = {};
#pragma unroll
            for (int j = g * GROUP / 32; j < (g + 1) * GROUP / 32; j++) {
                uint b[EIGHTS][4];
#pragma unroll
                for (int e = 0; e < EIGHTS; e++) {
                    read_terms(terms + place_in_row(e * 8 + lane / 4, j * 64 + lane % 4 * 16), b[e]);
                    if (MODE == 0) { // the sums of x, for the biases
                        const uint one = pair_of((T)(1 / divisor));
                        alls[e] = product(one, one, one, one, b[e][0], b[e][1], alls[e]);
                        alls[e] = product(one, one, one, one, b[e][2], b[e][3], alls[e]);
                    }
                }
#pragma unroll
                for (int m = 0; m < SIXTEENS; m++) {
                    uint upper[4], lower[4];
                    read_weights(weights + place_in_line(m * 16 + lane / 4, j * 4 * BITS + lane % 4 * BITS), upper);
                    read_weights(weights + place_in_line(m * 16 + 8 + lane / 4, j * 4 * BITS + lane % 4 * BITS), lower);
#pragma unroll
                    for (int e = 0; e < EIGHTS; e++) {
                        dots[m][e] = product(upper[0], lower[0], upper[1], lower[1], b[e][0], b[e][1], dots[m][e]);
                        dots[m][e] = product(upper[2], lower[2], upper[3], lower[3], b[e][2], b[e][3], dots[m][e]);
                    }
                }
            }
#pragma unroll
            for (int m = 0; m < SIXTEENS; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const float scale = scale_of(scales_now[m * 2 + half].of[g]);
                    const float bias = MODE == 0 ? (float)biases_now[m * 2 + half].of[g] : 0.0f;
#pragma unroll
                    for (int e = 0; e < EIGHTS; e++)
#pragma unroll
                        for (int i = 0; i < 2; i++) {
                            float &sum = ((thread float *)&sums[m][e])[half * 2 + i];
                            sum = fma(scale, dots[m][e][half * 2 + i], sum);
                            if (MODE == 0) sum = fma(bias, alls[e][i], sum);
                        }
                }
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

    // The simdgroups' sums: rows of LINES.
    __smelt_ptx_copy_wait_group(0);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float *parts = (threadgroup float *)team_memory;
#pragma unroll
    for (int m = 0; m < SIXTEENS; m++)
#pragma unroll
        for (int e = 0; e < EIGHTS; e++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                parts[(simdgroup * EIGHTS * 8 + e * 8 + lane % 4 * 2 + i % 2) * LINES + m * 16 + i / 2 * 8 + lane / 4] = sums[m][e][i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = thread_index % (SIMDGROUPS * 32); i < EIGHTS * 8 * LINES; i += SIMDGROUPS * 32) {
        const int of = row + i / LINES, column = first + i % LINES;
        float sum = 0;
#pragma unroll
        for (int s = 0; s < SIMDGROUPS; s++) sum += parts[s * EIGHTS * 8 * LINES + i];
        if (of < size.rows && column < size.columns) out[(long)of * size.columns + column] = (T)(sum * divisor);
    }
}
