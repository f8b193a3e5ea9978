// C = A · B where A has few rows. Each element of B is used a few times only, so the time is that of reading B: once per `Rows` rows
// of A, in loads of 16 bytes of which many are under way.
//
// thin_rows: the columns of B are contiguous; a simdgroup multiplies two of them by `Rows` rows of A. thin_columns: the rows of B are
// contiguous; a thread has the columns of a vector, and the simdgroups of a threadgroup take turns at the rows.
//
// A: M × K, with contiguous rows. size: M, N, K, and the depth: how many elements of K a threadgroup takes. If that is less than K,
// the threadgroups write parts of the sums, as floats, to `partial` (products × parts × M × N), and thin_sum adds them up. strides, in
// elements: from a row of A to the next, from a column (thin_rows) or row (thin_columns) of B to the next, from a row of C to the next
// and from a column of C to the next. batches: from the A, B and C of a product to those of the next. Sums are floats.
//
// Threadgroups of 128. Grid: N / 8 (thin_rows) or N / (elements in 512 bytes) (thin_columns) × M / Rows × (products · parts), each
// rounded up.
#include <metal_stdlib>
using namespace metal;
#define UNROLL _Pragma("clang loop unroll(full)")

constant constexpr int simdgroups = 4, columns_at_once = 2;
// Rounds whose loads begin together: as many as the registers have room for.
template <int Rows> constant constexpr int rounds_ahead = Rows == 1 ? 4 : Rows == 4 ? 2 : 1;

// 16 bytes of a matrix. `Words`: they begin at a multiple of 4 bytes; elsewhere elements of 2 bytes must not be loaded as words.
template <typename T, bool Words> struct Line {
    static constant constexpr int length = 16 / sizeof(T);
    vec<T, 4> quads[length / 4];
    Line() = default;
    Line(device const T *from) {
        if constexpr (sizeof(T) == 4 || !Words) {
            UNROLL for (int q = 0; q < length / 4; q++) quads[q] = ((device const vec<T, 4> *)from)[q];
        } else {
            const uint4 words = *(device const uint4 *)from;
            quads[0] = as_type<vec<T, 4>>(words.xy);
            quads[1] = as_type<vec<T, 4>>(words.zw);
        }
    }
    float operator[](int e) const { return float(quads[e / 4][e % 4]); }
};

// What a threadgroup multiplies: rows of A from m on, columns of B from n on, and elements first … last - 1 of K.
struct Where {
    int m, n, first, last;
    int part, parts; // of K
};

static int parts_of(int4 size) { return (size.z - 1) / size.w + 1; }

static Where where(int4 size, uint3 group, int rows, int columns) {
    Where at;
    at.parts = parts_of(size);
    at.part = int(group.z) % at.parts;
    at.m = int(group.y) * rows;
    at.n = int(group.x) * columns;
    at.first = at.part * size.w;
    at.last = at.part + 1 < at.parts ? at.first + size.w : size.z;
    return at;
}

// Whether lines that are `stride` elements apart all begin at multiples of 4 bytes.
template <typename T> static bool has_words(device const T *from, long stride) {
    return ((ulong(from) | ulong(stride) * sizeof(T)) & 3) == 0;
}

template <typename T>
static void put(float sum, int m, int n, device T *c, device float *partial, int4 size, long4 strides, Where at, int product) {
    if (m >= size.x || n >= size.y) return;
    if (at.parts > 1)
        partial[((long(product) * at.parts + at.part) * size.x + m) * size.y + n] = sum;
    else
        c[m * strides.z + n * strides.w] = T(sum);
}

template <typename T, int Rows, bool Words>
static void multiply_rows(device const T *a, device const T *b, device T *c, device float *partial, int4 size, long4 strides,
                          uint3 group, uint lane, uint simdgroup) {
    typedef Line<T, Words> Line;
    constexpr int V = Line::length, step = 32 * V, ahead = rounds_ahead<Rows>;
    Where at = where(size, group, Rows, simdgroups * columns_at_once);
    const int product = int(group.z) / at.parts;
    at.n += int(simdgroup) * columns_at_once;
    if (at.n >= size.y) return;
    device const T *rows[Rows], *columns[columns_at_once];
    UNROLL for (int i = 0; i < Rows; i++) rows[i] = a + min(at.m + i, size.x - 1) * strides.x;
    UNROLL for (int j = 0; j < columns_at_once; j++) columns[j] = b + min(at.n + j, size.y - 1) * strides.y;
    float sums[Rows][columns_at_once];
    UNROLL for (int i = 0; i < Rows; i++) UNROLL for (int j = 0; j < columns_at_once; j++) sums[i][j] = 0;
    const auto add = [&](thread const Line *lines, int k) {
        UNROLL for (int i = 0; i < Rows; i++) {
            const Line row(rows[i] + k);
            UNROLL for (int j = 0; j < columns_at_once; j++)
                UNROLL for (int e = 0; e < V; e++) sums[i][j] = fma(row[e], lines[j][e], sums[i][j]);
        }
    };
    int k = at.first + int(lane) * V;
    for (; k + (ahead - 1) * step + V <= at.last; k += ahead * step) {
        Line lines[ahead][columns_at_once];
        UNROLL for (int u = 0; u < ahead; u++)
            UNROLL for (int j = 0; j < columns_at_once; j++) lines[u][j] = Line(columns[j] + k + u * step);
        UNROLL for (int u = 0; u < ahead; u++) add(lines[u], k + u * step);
    }
    for (; k + V <= at.last; k += step) {
        Line lines[columns_at_once];
        UNROLL for (int j = 0; j < columns_at_once; j++) lines[j] = Line(columns[j] + k);
        add(lines, k);
    }
    for (int rest = at.first + (at.last - at.first) / V * V + int(lane); rest < at.last; rest += 32)
        UNROLL for (int i = 0; i < Rows; i++)
            UNROLL for (int j = 0; j < columns_at_once; j++) sums[i][j] = fma(float(rows[i][rest]), float(columns[j][rest]), sums[i][j]);
    UNROLL for (int i = 0; i < Rows; i++)
        UNROLL for (int j = 0; j < columns_at_once; j++) {
            const float sum = simd_sum(sums[i][j]);
            if (lane == 0) put(sum, at.m + i, at.n + j, c, partial, size, strides, at, product);
        }
}

template <typename T, int Rows, bool Words>
static void multiply_columns(device const T *a, device const T *b, device T *c, device float *partial, int4 size, long4 strides,
                             uint3 group, uint lane, uint simdgroup, threadgroup float *memory) {
    typedef Line<T, Words> Line;
    constexpr int V = Line::length, width = 32 * V, ahead = 4;
    threadgroup float(*others)[width] = (threadgroup float(*)[width])memory;
    const Where at = where(size, group, Rows, width);
    const int product = int(group.z) / at.parts, n = at.n + int(lane) * V;
    const bool whole = n + V <= size.y;
    device const T *rows[Rows];
    UNROLL for (int i = 0; i < Rows; i++) rows[i] = a + min(at.m + i, size.x - 1) * strides.x;
    device const T *from = b + n;
    float sums[Rows][V];
    UNROLL for (int i = 0; i < Rows; i++) UNROLL for (int e = 0; e < V; e++) sums[i][e] = 0;
    int k = at.first + int(simdgroup);
    if (whole) {
        const auto add = [&](Line line, int k) {
            UNROLL for (int i = 0; i < Rows; i++) {
                const float factor = float(rows[i][k]);
                UNROLL for (int e = 0; e < V; e++) sums[i][e] = fma(factor, line[e], sums[i][e]);
            }
        };
        for (; k + (ahead - 1) * simdgroups < at.last; k += ahead * simdgroups) {
            Line lines[ahead];
            UNROLL for (int u = 0; u < ahead; u++) lines[u] = Line(from + (k + u * simdgroups) * strides.y);
            UNROLL for (int u = 0; u < ahead; u++) add(lines[u], k + u * simdgroups);
        }
        for (; k < at.last; k += simdgroups) add(Line(from + k * strides.y), k);
    } else if (n < size.y) {
        for (; k < at.last; k += simdgroups)
            UNROLL for (int e = 0; e < V; e++) {
                const float element = n + e < size.y ? float(from[k * strides.y + e]) : 0;
                UNROLL for (int i = 0; i < Rows; i++) sums[i][e] = fma(float(rows[i][k]), element, sums[i][e]);
            }
    }
    UNROLL for (int i = 0; i < Rows; i++) {
        UNROLL for (int e = 0; e < V; e++) others[simdgroup][e * 32 + lane] = sums[i][e];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (int at_column = int(simdgroup * 32 + lane); at_column < width; at_column += simdgroups * 32) {
            float sum = 0;
            UNROLL for (int s = 0; s < simdgroups; s++) sum += others[s][at_column % V * 32 + at_column / V];
            put(sum, at.m + i, at.n + at_column, c, partial, size, strides, at, product);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}

template <typename T, int Rows>
kernel void thin_rows(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
    device float *partial [[buffer(3)]], constant int4 &size [[buffer(4)]], constant long4 &strides [[buffer(5)]],
    constant long4 &batches [[buffer(6)]], uint3 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    const long product = group.z / parts_of(size);
    a += product * batches.x;
    b += product * batches.y;
    c += product * batches.z;
    if (sizeof(T) == 4 || (has_words(a, strides.x) && has_words(b, strides.y)))
        multiply_rows<T, Rows, true>(a, b, c, partial, size, strides, group, lane, simdgroup);
    else
        multiply_rows<T, Rows, false>(a, b, c, partial, size, strides, group, lane, simdgroup);
}

template <typename T, int Rows>
kernel void thin_columns(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device T *c [[buffer(2)]],
    device float *partial [[buffer(3)]], constant int4 &size [[buffer(4)]], constant long4 &strides [[buffer(5)]],
    constant long4 &batches [[buffer(6)]], uint3 group [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup float memory[simdgroups * 32 * 16 / sizeof(T)];
    const long product = group.z / parts_of(size);
    a += product * batches.x;
    b += product * batches.y;
    c += product * batches.z;
    if (sizeof(T) == 4 || has_words(b, strides.y))
        multiply_columns<T, Rows, true>(a, b, c, partial, size, strides, group, lane, simdgroup, memory);
    else
        multiply_columns<T, Rows, false>(a, b, c, partial, size, strides, group, lane, simdgroup, memory);
}

// C = the sums of the parts. Grid: N × M × products.
template <typename T>
kernel void thin_sum(device const float *partial [[buffer(0)]], device T *c [[buffer(1)]], constant int4 &size [[buffer(2)]],
                     constant long4 &strides [[buffer(3)]], constant long4 &batches [[buffer(4)]], uint3 at [[thread_position_in_grid]]) {
    const int parts = parts_of(size);
    const long count = long(size.x) * size.y;
    device const float *from = partial + at.z * parts * count + long(at.y) * size.y + at.x;
    float sum = 0;
    for (int part = 0; part < parts; part++) sum += from[part * count];
    c[at.z * batches.z + at.y * strides.z + at.x * strides.w] = T(sum);
}

#define INSTANTIATE(kind, T, Rows, suffix)                                                                                       \
    template [[host_name("thin_" #kind "_" #T suffix)]] kernel void thin_##kind<T, Rows>(                                         \
        device const T *, device const T *, device T *, device float *, constant int4 &, constant long4 &, constant long4 &, uint3, \
        uint, uint);
#define INSTANTIATE_ALL(T)                                                                                             \
    INSTANTIATE(rows, T, 1, "_1")                                                                                      \
    INSTANTIATE(rows, T, 4, "_4")                                                                                      \
    INSTANTIATE(rows, T, 8, "_8")                                                                                      \
    INSTANTIATE(columns, T, 1, "_1")                                                                                   \
    INSTANTIATE(columns, T, 4, "_4")                                                                                   \
    INSTANTIATE(columns, T, 8, "_8")                                                                                   \
    template [[host_name("thin_sum_" #T)]] kernel void thin_sum<T>(device const float *, device T *, constant int4 &,  \
                                                                   constant long4 &, constant long4 &, uint3);
INSTANTIATE_ALL(float)
INSTANTIATE_ALL(half)
INSTANTIATE_ALL(bfloat)
