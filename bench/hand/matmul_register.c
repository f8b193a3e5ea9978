/* A product by groups of 64 threads, each with 8 x 8 outputs in registers: 64 x 64 outputs a group, 16 of the
 * inner dimension at a time, tiles in threadgroup memory. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include "bench/hand/multiply_block.h"

#define TILE 64
#define STEP 16

struct job {
    const float *a, *b;
    float *c;
    int64_t n;
};

/* ---- Vectors along the columns of the tile: several rows by two vectors at a time. */

struct row_tiles {
    _Alignas(64) float a[TILE][STEP], b[STEP][TILE], sum[TILE][TILE];
};

static void group_of_rows(void *context, int64_t index) {
    const struct job *job = context;
    int64_t n = job->n, row = index / (n / TILE) * TILE, column = index % (n / TILE) * TILE;
    struct row_tiles t;
    for (int r = 0; r < TILE; r++)
        for (int v = 0; v < TILE; v += LANES) vector_store(&t.sum[r][v], vector_set(0));
    for (int64_t k = 0; k < n; k += STEP) {
        for (int r = 0; r < TILE; r++)
            for (int v = 0; v < STEP; v += LANES)
                vector_store(&t.a[r][v], vector_load(job->a + (row + r) * n + k + v));
        for (int r = 0; r < STEP; r++)
            for (int v = 0; v < TILE; v += LANES)
                vector_store(&t.b[r][v], vector_load(job->b + (k + r) * n + column + v));
        for (int c = 0; c < TILE; c += 2 * LANES)
            for (int r = 0; r < TILE; r += ROWS)
                multiply_block(t.a[r], STEP, STEP, &t.b[0][c], &t.sum[r][c], TILE);
    }
    for (int r = 0; r < TILE; r++)
        for (int v = 0; v < TILE; v += LANES)
            vector_store(job->c + (row + r) * n + column + v, vector_load(&t.sum[r][v]));
}

void BY_HAND(matmul_register)(const float *a, const float *b, float *c, int64_t n) {
    struct job job = {a, b, c, n};
    team_run(group_of_rows, &job, (n / TILE) * (n / TILE));
}

/* ---- Lanes are threads: thread t has rows 8 (t / 8) … and columns 8 (t % 8) …. Each thread's 64 sums do not
 * fit in registers: they are worked on in four squares of 4 x 4, or with 16 registers in eight of 4 x 2. */

#define VECTORS (TILE / LANES) /* of threads */
#define COLUMNS (REGISTERS / 8)

struct lane_tiles {
    _Alignas(64) float a[STEP][TILE]; /* transposed, as the kernel keeps it */
    _Alignas(64) float b[STEP][8][8]; /* [k][j][t % 8]: a lane's j-th column */
    vector sum[VECTORS][8][8];        /* [threads][row][column] */
};

#ifdef __AVX512F__

/* As many rows of a column of a as a vector has threads. */
static inline void load_column(float *to, const float *from, int64_t n) {
    const __m512i rows = _mm512_mullo_epi32(
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi32((int)n));
    vector_store(to, _mm512_i32gather_ps(rows, from, 4));
}

/* Elements of a for the rows of a vector's threads: two groups of eight threads. */
static inline vector spread_rows(const float *low) {
    return _mm512_mask_broadcastss_ps(_mm512_set1_ps(low[0]), 0xff00, _mm_load_ss(low + 8));
}

static inline vector load_columns(const float *from) {
    return _mm512_broadcast_f32x8(_mm256_load_ps(from));
}

static inline void store_lanes(float *to, int64_t n, vector v) {
    const __m512i at =
        _mm512_set_epi32(56 + 8 * (int)n, 48 + 8 * (int)n, 40 + 8 * (int)n, 32 + 8 * (int)n, 24 + 8 * (int)n,
                         16 + 8 * (int)n, 8 + 8 * (int)n, 8 * (int)n, 56, 48, 40, 32, 24, 16, 8, 0);
    _mm512_i32scatter_ps(to, at, v, 4);
}

#else

static inline void load_column(float *to, const float *from, int64_t n) {
    for (int i = 0; i < LANES; i++) to[i] = from[i * n];
}

static inline vector spread_rows(const float *low) {
    return vector_set(low[0]);
}

static inline vector load_columns(const float *from) {
    return vector_load(from);
}

static inline void store_lanes(float *to, int64_t n, vector v) {
    float lanes[LANES];
    (void)n;
    vector_store(lanes, v);
    for (int i = 0; i < LANES; i++) to[(ptrdiff_t)8 * i] = lanes[i];
}

#endif

static void load_lanes(struct lane_tiles *t, const struct job *job, int64_t row, int64_t column, int64_t k) {
    int64_t n = job->n;
    for (int r = 0; r < STEP; r++)
        for (int v = 0; v < TILE; v += LANES) load_column(&t->a[r][v], job->a + (row + v) * n + k + r, n);
    const __m256i columns = _mm256_set_epi32(56, 48, 40, 32, 24, 16, 8, 0);
    for (int r = 0; r < STEP; r++)
        for (int j = 0; j < 8; j++)
            _mm256_store_ps(t->b[r][j], _mm256_i32gather_ps(job->b + (k + r) * n + column + j, columns, 4));
}

static inline void multiply_square(struct lane_tiles *t, int threads, int row, int column) {
    vector sum[4][COLUMNS];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < COLUMNS; j++) sum[i][j] = t->sum[threads][row + i][column + j];
    for (int k = 0; k < STEP; k++) {
        vector a[4];
        for (int i = 0; i < 4; i++) a[i] = spread_rows(&t->a[k][LANES * threads + row + i]);
        for (int j = 0; j < COLUMNS; j++) {
            vector b = load_columns(t->b[k][column + j]);
            for (int i = 0; i < 4; i++) sum[i][j] = vector_fmadd(a[i], b, sum[i][j]);
        }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < COLUMNS; j++) t->sum[threads][row + i][column + j] = sum[i][j];
}

static void group_of_lanes(void *context, int64_t index) {
    const struct job *job = context;
    int64_t n = job->n, row = index / (n / TILE) * TILE, column = index % (n / TILE) * TILE;
    struct lane_tiles t;
    for (int threads = 0; threads < VECTORS; threads++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++) t.sum[threads][i][j] = vector_set(0);
    for (int64_t k = 0; k < n; k += STEP) {
        load_lanes(&t, job, row, column, k);
        for (int threads = 0; threads < VECTORS; threads++)
            for (int i = 0; i < 8; i += 4)
                for (int j = 0; j < 8; j += COLUMNS) multiply_square(&t, threads, i, j);
    }
    for (int threads = 0; threads < VECTORS; threads++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++)
                store_lanes(job->c + (row + LANES * threads + i) * n + column + j, n, t.sum[threads][i][j]);
}

void BY_HAND(matmul_register_lanes)(const float *a, const float *b, float *c, int64_t n) {
    struct job job = {a, b, c, n};
    team_run(group_of_lanes, &job, (n / TILE) * (n / TILE));
}
