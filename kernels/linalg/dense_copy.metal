// Copies of matrices (…, rows, columns) with a transposition, a triangle or a shift of the diagonal, and what the checks before a
// factorisation need: the largest magnitude, the first element that is not finite, the largest asymmetry.
struct copy_size {
    uint rows, columns;       // of the source
    uint transpose;           // the target is its transpose
    uint triangle;            // what of the target is copied: 0 all, 1 on and above the diagonal, 2 on and below it
    uint clear;               // 1: the rest becomes 0; 0: it is not written; 2: nothing is written
    uint jitter;              // jitter[matrix] is added to the diagonal
    uint measure;             // stats are updated
    uint first_row;           // rows above count as 0 (of the source)
    long from_matrix, from_first, from_row;
    long to_matrix, to_first, to_row;
};

// stats, for each matrix: bits of the largest magnitude (NaN is larger than all), number of the first element that is not
// finite, bits of the largest asymmetry, number of the first element whose asymmetry is above the tolerance.
constant constexpr uint STATS = 4;

inline bool is_copied(thread const copy_size &s, uint i, uint j) {
    return s.triangle == 0 || (s.triangle == 1 ? i <= j : i >= j);
}

inline void keep_stats(device metal::atomic_uint *stats, uint largest, uint bad, uint lane) {
    largest = metal::simd_max(largest);
    bad = metal::simd_min(bad);
    if (lane != 0 || largest == 0) return;
    metal::atomic_fetch_max_explicit(&stats[0], largest, metal::memory_order_relaxed);
    if (bad != 0xffffffffu) metal::atomic_fetch_min_explicit(&stats[1], bad, metal::memory_order_relaxed);
}

// Rows of a tile that a simdgroup copies: all on CPUs, where a threadgroup has one.
constant constexpr uint STEP = ON_CPU ? 1 : 8;

// Groups: columns / 32 × rows / 32 × matrices, of 32 × STEP threads. Tiles whose elements are all copied, or none, need no masks.
// TRANSPOSES and MEASURES are s.transpose and s.measure: constants on CPUs, where what is not done then costs nothing.
kernel void linalg_copy(device const float *from [[buffer(0)]], device float *to [[buffer(1)]],
                        device const float *jitter [[buffer(2)]], device metal::atomic_uint *stats [[buffer(3)]],
                        constant copy_size &size [[buffer(4)]], uint3 group [[threadgroup_position_in_grid]],
                        uint2 at [[thread_position_in_threadgroup]]) {
    threadgroup float tile[32][33];
    const copy_size s = size; // stores might change what is behind the reference
    const uint row = group.y * 32, column = group.x * 32;
    const uint to_row = TRANSPOSES ? column : row, to_column = TRANSPOSES ? row : column; // of the target
    const bool whole = row + 32 <= s.rows && column + 32 <= s.columns;
    const bool all = s.triangle == 0 || (s.triangle == 1 ? to_row + 32 <= to_column : to_column + 32 <= to_row);
    const bool none = s.triangle != 0 && (s.triangle == 1 ? to_row >= to_column + 32 : to_column >= to_row + 32);
    const float more = s.jitter ? jitter[group.z] : 0.0f;
    from += group.z * s.from_matrix + s.from_first;
    to += group.z * s.to_matrix + s.to_first;
    stats += group.z * STATS;
    uint largest = 0, bad = 0xffffffffu;
    if (none && s.clear != 1) return;
    if (whole && none && !MEASURES) {
        to += ulong(to_row) * s.to_row + to_column;
        for (uint q = at.y; q < 32; q += STEP) to[q * s.to_row + at.x] = 0.0f;
        return;
    }
    if (whole && all && row >= s.first_row && !(s.jitter && row == column)) {
        from += ulong(row) * s.from_row + column;
        to += ulong(to_row) * s.to_row + to_column;
        for (uint q = at.y; q < 32; q += STEP) {
            const float value = from[q * s.from_row + at.x];
            if (MEASURES) {
                const uint bits = as_type<uint>(value) & 0x7fffffffu;
                largest = metal::max(largest, bits);
                bad = metal::min(bad, bits >= 0x7f800000u ? (row + q) * s.columns + column + at.x : 0xffffffffu);
            }
            if (TRANSPOSES)
                tile[q][at.x] = value;
            else if (s.clear != 2)
                to[q * s.to_row + at.x] = value;
        }
        if (MEASURES) keep_stats(stats, largest, bad, at.x);
        if (!TRANSPOSES || s.clear == 2) return;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint q = at.y; q < 32; q += STEP) to[q * s.to_row + at.x] = tile[at.x][q];
        return;
    }
    for (uint q = at.y; q < 32; q += STEP) {
        const uint i = row + q, j = column + at.x;
        const bool exists = i < s.rows && j < s.columns && i >= s.first_row;
        const bool counts = exists && !none && (TRANSPOSES ? is_copied(s, j, i) : is_copied(s, i, j));
        float value = counts ? from[i * s.from_row + j] : 0.0f;
        if (MEASURES) {
            const uint bits = as_type<uint>(value) & 0x7fffffffu;
            largest = metal::max(largest, bits);
            if (bits >= 0x7f800000u) bad = metal::min(bad, i * s.columns + j);
        }
        tile[q][at.x] = i == j ? value + more : value;
    }
    if (MEASURES) keep_stats(stats, largest, bad, at.x);
    if (s.clear == 2) return;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint q = at.y; q < 32; q += STEP) {
        const uint i = to_row + q, j = to_column + at.x;
        if (i >= (TRANSPOSES ? s.columns : s.rows) || j >= (TRANSPOSES ? s.rows : s.columns)) continue;
        if (s.clear || is_copied(s, i, j)) to[i * s.to_row + j] = TRANSPOSES ? tile[at.x][q] : tile[q][at.x];
    }
}

struct symmetry_size {
    uint n;
    float tolerance; // times the largest magnitude
};

// Groups: n / 32 × n / 32 × matrices, of 32 × 8 threads. After linalg_copy has measured all elements.
kernel void linalg_symmetry(device const float *a [[buffer(0)]], device metal::atomic_uint *stats [[buffer(1)]],
                            constant symmetry_size &s [[buffer(2)]], uint3 group [[threadgroup_position_in_grid]],
                            uint2 at [[thread_position_in_threadgroup]]) {
    threadgroup float tile[32][33];
    if (group.y > group.x) return;
    a += ulong(group.z) * s.n * s.n;
    for (uint q = 0; q < 32; q += 8) {
        const uint i = group.x * 32 + at.y + q, j = group.y * 32 + at.x;
        tile[at.y + q][at.x] = i < s.n && j < s.n ? a[ulong(i) * s.n + j] : 0.0f;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const float most = s.tolerance * as_type<float>(metal::atomic_load_explicit(&stats[group.z * STATS], metal::memory_order_relaxed));
    for (uint q = 0; q < 32; q += 8) {
        const uint i = group.y * 32 + at.y + q, j = group.x * 32 + at.x;
        if (i >= j || j >= s.n) continue;
        const float difference = metal::abs(a[ulong(i) * s.n + j] - tile[at.x][at.y + q]);
        if (!(difference > most)) continue;
        metal::atomic_fetch_max_explicit(&stats[group.z * STATS + 2], as_type<uint>(difference), metal::memory_order_relaxed);
        metal::atomic_fetch_min_explicit(&stats[group.z * STATS + 3], i * s.n + j, metal::memory_order_relaxed);
    }
}

// stats as they begin. Grid: matrices.
kernel void linalg_begin(device uint *stats [[buffer(0)]], device float *dbg [[buffer(1)]], constant uint4 &size [[buffer(2)]],
                         uint matrix [[thread_position_in_grid]]) {
    stats[matrix * STATS] = stats[matrix * STATS + 2] = 0;
    stats[matrix * STATS + 1] = stats[matrix * STATS + 3] = 0xffffffffu;
    dbg += matrix * DBG_COUNT;
    dbg_clear(dbg);
    dbg_dims(dbg, size.x, size.y);
    dbg_start(dbg);
    dbg_value(dbg, 0, -1.0f);
}

// The identity, of rows × columns. Grid: columns × rows × matrices.
kernel void linalg_identity(device float *to [[buffer(0)]], uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {
    to[(ulong(at.z) * size.y + at.y) * size.x + at.x] = at.x == at.y ? 1.0f : 0.0f;
}
