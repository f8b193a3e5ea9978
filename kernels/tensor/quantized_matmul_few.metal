// out = x · wᵀ of one to four rows and packed weights, as quantized_matmul.metal computes it, by the tensor cores of each
// simdgroup. For GPUs of compute capability 9.0. The rows of x stay in threadgroup memory, and each weight is read once, in
// pieces that are neighbours in memory. quantized_matmul_fragments.metal is for more rows and for other sizes.
//
// quantized_parts.metal precedes this text. The text that precedes that one also defines
//   QUANTIZED_ROWS     of x: 1, 2, 4 or 8; those that x lacks count as 0
//   QUANTIZED_TILES    of 16 lines of w, in a threadgroup
//   QUANTIZED_SHARES   the simdgroups of a tile, which take turns at its chunks and add their sums at the end
//   QUANTIZED_STAGES   chunks that a simdgroup has in threadgroup memory
//
// A chunk has 256 terms (512, of 2 bits); terms are a multiple of it. x, w, scales and biases begin at multiples of 16 bytes,
// and w has less than 2^32 bytes. Threadgroup memory: few_memory in src/ops/quantized.c.
//
// A right matrix has eight columns: column c is row c % ROWS of x in group c / ROWS of SLOTS groups, and 0 in the others. So the
// sums of SLOTS groups are in one matrix, and their scales are applied at once.
constant constexpr int ROWS = QUANTIZED_ROWS, TILES = QUANTIZED_TILES, SHARES = QUANTIZED_SHARES, STAGES = QUANTIZED_STAGES;
constant constexpr int CHUNK = BITS == 2 ? 512 : 256, GROUPS = CHUNK / GROUP, SLOTS = min(8 / ROWS, GROUPS);
// In a step of STEP terms, each lane reads LANE_TERMS neighbours.
constant constexpr int STEP = min(GROUP, 64), LANE_TERMS = STEP / 4, LANE_BYTES = LANE_TERMS * BITS / 8;
constant constexpr int line_bytes = CHUNK * BITS / 8, scale_bytes = GROUPS * sizeof(S), planes = MODE == 0 ? 2 : 1;
constant constexpr int weight_bytes = 16 * line_bytes, stage_bytes = weight_bytes + planes * 16 * scale_bytes;
constant constexpr int simdgroups = TILES * SHARES, threads = simdgroups * 32, LINES = TILES * 16;
// Floats from one column's sums to the next's: lanes write them to different banks.
constant constexpr int parts_pitch = LINES + 4;
static_assert(CHUNK % GROUP == 0 && sizeof(T) == 2 && STAGES >= 2 &&
                  SHARES * 8 * parts_pitch * 4 <= simdgroups * STAGES * stage_bytes,
              "the tile of this kernel");

// Where a byte of a line lies: swizzled, so that the lanes of a load use different banks.
inline uint place_in_line(uint line, uint byte) {
    return line * line_bytes + (byte ^ (LANE_BYTES == 16 ? (line & 1) << 6 : LANE_BYTES == 8 ? (line & 3) << 5 : (line & 7) << 4));
}

inline void copy_piece(uint bytes, uint to, ulong from) {
    if (bytes == 4)
        __smelt_ptx_copy_4(to, from, 4);
    else if (bytes == 8)
        __smelt_ptx_copy_8(to, from, 8);
    else
        __smelt_ptx_copy_16(to, from, 16);
}

// Reads a lane's weights of a step.
inline void read_step(threadgroup const uchar *at, thread uint (&words)[4]) {
    if (LANE_BYTES == 16) {
        const uint4 four = *(threadgroup const uint4 *)at;
#pragma unroll
        for (int i = 0; i < 4; i++) words[i] = four[i];
    } else if (LANE_BYTES == 8) {
        const uint2 two = *(threadgroup const uint2 *)at;
        words[0] = two.x, words[1] = two.y;
    } else {
        words[0] = LANE_BYTES == 4 ? *(threadgroup const uint *)at : *(threadgroup const ushort *)at;
    }
}

// Unpacks number `i` of their runs of eight codes.
inline void unpack_step(thread const uint (&words)[4], int i, thread uint (&pairs)[4]) {
    if (BITS == 8)
        unpack(words[i * 2], words[i * 2 + 1], pairs);
    else
        unpack(BITS == 4 ? words[i] : words[0] >> i * 16, 0, pairs);
}

// Two threads prefetch the whole pieces of 16 bytes of a threadgroup's scales and of its biases.
inline void prefetch_scales(device const S *scales, device const S *biases, uint first_line, uint columns, uint chunks, uint own_thread) {
    const ulong plane = own_thread == 32 ? (ulong)biases : (ulong)scales;
    const uint end_line = min(first_line + LINES, columns);
    const ulong begin = (plane + (ulong)first_line * chunks * scale_bytes + 15) & ~15ul,
                end = (plane + (ulong)end_line * chunks * scale_bytes) & ~15ul;
    __smelt_ptx_prefetch(begin, (uint)(end - begin), end > begin && (own_thread == 0 || (planes == 2 && own_thread == 32)));
}

kernel void smelt_quantized_matmul_few(device const T *x [[buffer(0)]], device const uchar *w [[buffer(1)]],
                                       device const S *scales [[buffer(2)]], device const S *biases [[buffer(3)]],
                                       device T *out [[buffer(4)]], constant quantized_size &size [[buffer(5)]],
                                       threadgroup uint4 *x_memory [[threadgroup(0)]], uint group [[threadgroup_position_in_grid]],
                                       uint thread_index [[thread_index_in_threadgroup]]) {
    if (__smelt_gpu_target() != 901) return;
    // Where memory allows, the next launch's threadgroup has room next to this one's.
    __smelt_ptx_resident(simdgroups * STAGES * stage_bytes <= 100 * 1024 ? 2 : 1);
    const uint simdgroup = __smelt_ptx_broadcast(thread_index >> 5), lane = __smelt_ptx_lane(), eighth = lane / 4, quarter = lane % 4;
    const uint own_thread = simdgroup * 32 + lane; // by the hardware's lanes
    const uint tile = simdgroup / SHARES, share = simdgroup % SHARES;
    const int chunks = size.terms / CHUNK, last = size.columns - 1;
    const int first_line = group * LINES, first = first_line + tile * 16;
    threadgroup uchar *memory = __smelt_staging(simdgroups * STAGES * stage_bytes), *ring = memory + simdgroup * STAGES * stage_bytes;
    const uint ring_address = __smelt_ptx_shared_address(ring);

    // What the lane copies of a chunk: pieces of 16 bytes of lines; pieces of a line's scales or biases.
    constexpr uint line_pieces = line_bytes / 16, pieces = 16 * line_pieces / 32;
    constexpr uint scale_piece = min(scale_bytes, 16), scale_pieces = scale_bytes / scale_piece;
    uint line_from[pieces];
#pragma unroll
    for (uint i = 0; i < pieces; i++) {
        const uint at = i * 32 + lane, line = min(first + (int)(at / line_pieces), last);
        line_from[i] = line * chunks * line_bytes + at % line_pieces * 16;
    }
    ulong weights_from = (ulong)w + share * line_bytes;
    ulong scales_from = (lane < 16 ? (ulong)scales : (ulong)biases) +
                        ((ulong)min(first + (int)lane % 16, last) * chunks + share) * scale_bytes;
    auto copy = [&](uint stage, bool exists) __attribute__((always_inline)) {
        if (exists) {
            const uint to = ring_address + stage * stage_bytes;
#pragma unroll
            for (uint i = 0; i < pieces; i++) {
                const uint at = i * 32 + lane;
                __smelt_ptx_copy_16(to + place_in_line(at / line_pieces, at % line_pieces * 16), weights_from + line_from[i], 16);
            }
            if (planes == 2 || lane < 16)
#pragma unroll
                for (uint i = 0; i < scale_pieces; i++)
                    copy_piece(scale_piece, to + weight_bytes + lane * scale_bytes + i * 16, scales_from + i * 16);
            weights_from += SHARES * line_bytes, scales_from += SHARES * scale_bytes;
        }
        __smelt_ptx_copy_commit();
    };
    prefetch_scales(scales, biases, first_line, size.columns, chunks, own_thread);
    begin_ahead(w, chunks * line_bytes, min(first_line + (int)own_thread, last), own_thread < LINES);
    int left = (chunks - (int)share + SHARES - 1) / SHARES;

    // The rows of x as pairs, each 16 bytes further in the banks than the one before; the zeros of one group, which lanes read for
    // columns that are 0; the sums of each group of x.
    const int rows = size.rows, row_pieces = chunks * (CHUNK / 8), pitch = row_pieces + 1;
    threadgroup uint4 *zeros = x_memory + rows * pitch; // in other banks than the rows' first pieces
    threadgroup float *totals = (threadgroup float *)(zeros + GROUP / 8);
    constexpr int together = ROWS == 1 ? 2 : 4; // pieces that a thread loads before it stores the first
    const int all_pieces = rows * row_pieces;
    uint4 words[together];
    auto load = [&](int from) __attribute__((always_inline)) {
#pragma unroll
        for (int k = 0; k < together; k++)
            words[k] = from + k * threads < all_pieces ? ((device const uint4 *)x)[from + k * threads] : uint4(0);
    };
    auto store = [&](int from) __attribute__((always_inline)) {
#pragma unroll
        for (int k = 0; k < together; k++) {
            const int i = from + k * threads;
            int row = 0;
#pragma unroll
            for (int r = 1; r < ROWS; r++) row += i >= r * row_pieces;
            const int piece = i - row * row_pieces;
            uint4 pairs;
            float total = 0;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const ushort2 low = as_type<ushort2>(words[k][j / 2]), high = as_type<ushort2>(words[k][j / 2 + 2]);
                pairs[j] = as_type<uint>(ushort2(low[j % 2], high[j % 2]));
                total += (float)as_type<T>(low[j % 2]) + (float)as_type<T>(high[j % 2]);
            }
            if (MODE == 0)
#pragma unroll
                for (uint bit = 1; bit < GROUP / 8; bit *= 2) total += as_type<float>(__smelt_ptx_exchange(as_type<uint>(total), bit));
            if (i < all_pieces) {
                x_memory[row * pitch + piece] = pairs;
                if (MODE == 0 && piece % (GROUP / 8) == 0) totals[piece / (GROUP / 8) * ROWS + row] = total / divisor;
            }
        }
    };
    load(own_thread); // before the weights, which take longer: 8192 × 8192 of 4 bits and one row, an H200, 11.3 µs instead of 12.6
#pragma unroll
    for (int s = 0; s < STAGES; s++) copy(s, s < left);
    for (int from = simdgroup * 32; from < all_pieces; from += together * threads) { // whole simdgroups
        if (from >= together * threads) load(from + lane);
        store(from + lane);
    }
    for (int i = own_thread; i < GROUP / 8; i += threads) zeros[i] = uint4(0);
    if (MODE == 0 && rows < ROWS)
        for (int i = own_thread; i < chunks * GROUPS * ROWS; i += threads)
            if (i % ROWS >= rows) totals[i] = 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);

    const uint slot = eighth / ROWS, row = eighth % ROWS;
    const bool has_row = (int)row < rows;
    threadgroup const uint4 *zero_terms = zeros + quarter * (LANE_TERMS / 8);
    threadgroup const uint4 *terms_at = x_memory + (has_row ? row * pitch : 0) + share * (CHUNK / 8) + quarter * (LANE_TERMS / 8);
    threadgroup const float *totals_at = totals + share * GROUPS * ROWS + quarter * 2;
    float sums[4] = {};
    uint stage = 0;
    for (; left > 0; left--) {
        // Late, so that the next launch reads ahead while this one ends. At the beginning, chains of launches took 12 % longer.
        if (left == 2) __smelt_ptx_launch_next();
        __smelt_ptx_copy_wait_group(STAGES - 1);
        simdgroup_barrier(mem_flags::mem_threadgroup);
        threadgroup const uchar *weights = ring + stage * stage_bytes;
        threadgroup const S *chunk_scales = (threadgroup const S *)(weights + weight_bytes);
#pragma unroll
        for (int run = 0; run < GROUPS / SLOTS; run++) {
            __smelt_float4 dots = {};
#pragma unroll
            for (int s = 0; s < SLOTS; s++) {
                const int g = run * SLOTS + s;
                threadgroup const uint4 *at = has_row && (uint)s == slot ? terms_at + g * (GROUP / 8) : zero_terms;
#pragma unroll
                for (int step = 0; step < GROUP / STEP; step++) {
                    uint upper[4], lower[4];
                    const uint byte = (g * GROUP + step * STEP) * BITS / 8 + quarter * LANE_BYTES;
                    read_step(weights + place_in_line(eighth, byte), upper);
                    read_step(weights + place_in_line(eighth + 8, byte), lower);
#pragma unroll
                    for (int i = 0; i < LANE_TERMS / 8; i++) {
                        const uint4 b = at[step * (STEP / 8) + i];
                        uint up[4], low[4];
                        unpack_step(upper, i, up);
                        unpack_step(lower, i, low);
                        dots = product(up[0], low[0], up[1], low[1], b.x, b.y, dots);
                        dots = product(up[2], low[2], up[3], low[3], b.z, b.w, dots);
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < 2; i++) { // the lane's columns
                const int slot_of = run * SLOTS + min((int)(quarter * 2 + i) / ROWS, SLOTS - 1);
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int at = (half * 8 + eighth) * GROUPS + slot_of;
                    float &sum = sums[half * 2 + i];
                    sum = fma(scale_of(chunk_scales[at]), (float)dots[half * 2 + i], sum);
                    if (MODE == 0) sum = fma((float)chunk_scales[16 * GROUPS + at], totals_at[run * SLOTS * ROWS + i], sum);
                }
            }
        }
        terms_at += SHARES * (CHUNK / 8);
        totals_at += SHARES * GROUPS * ROWS;
        simdgroup_barrier(mem_flags::mem_threadgroup);
        copy(stage, left > STAGES);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }

    // The sums of slots and of shares.
    __smelt_ptx_copy_wait_group(0);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    threadgroup float *parts = (threadgroup float *)memory;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint column = quarter * 2 + i % 2;
        parts[(share * 8 + column) * parts_pitch + tile * 16 + i / 2 * 8 + eighth] = column / ROWS < SLOTS ? sums[i] : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int i = own_thread; i < rows * LINES; i += threads) {
        const int of = i / LINES, line = i % LINES, column = first_line + line;
        float sum = 0;
#pragma unroll
        for (int s = 0; s < SHARES; s++)
#pragma unroll
            for (int k = 0; k < SLOTS; k++) sum += parts[(s * 8 + k * ROWS + of) * parts_pitch + line];
        if (column < size.columns) out[(long)of * size.columns + column] = (T)(sum * divisor);
    }
}
