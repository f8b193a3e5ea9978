/* A product by groups of 64 threads, each with 8 x 8 outputs in registers: 64 x 64 outputs a group, 16 of the
 * inner dimension at a time, tiles in threadgroup memory. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include <immintrin.h>

#define TILE 64
#define STEP 16

struct job {
    const float *a, *b;
    float *c;
    int64_t n;
};

/* ---- Vectors along the columns of the tile: 8 rows by 32 columns at a time. */

struct row_tiles {
    _Alignas(64) float a[TILE][STEP], b[STEP][TILE], sum[TILE][TILE];
};

static inline void multiply_block(struct row_tiles *t, int row, int column) {
    __m512 sum[8][2];
    for (int r = 0; r < 8; r++)
        for (int v = 0; v < 2; v++) sum[r][v] = _mm512_load_ps(&t->sum[row + r][column + 16 * v]);
#pragma GCC unroll 4
    for (int k = 0; k < STEP; k++) {
        __m512 low = _mm512_load_ps(&t->b[k][column]), high = _mm512_load_ps(&t->b[k][column + 16]);
        for (int r = 0; r < 8; r++) {
            __m512 a = _mm512_set1_ps(t->a[row + r][k]);
            sum[r][0] = _mm512_fmadd_ps(a, low, sum[r][0]);
            sum[r][1] = _mm512_fmadd_ps(a, high, sum[r][1]);
        }
    }
    for (int r = 0; r < 8; r++)
        for (int v = 0; v < 2; v++) _mm512_store_ps(&t->sum[row + r][column + 16 * v], sum[r][v]);
}

static void group_of_rows(void *context, int64_t index) {
    const struct job *job = context;
    int64_t n = job->n, row = index / (n / TILE) * TILE, column = index % (n / TILE) * TILE;
    struct row_tiles t;
    for (int r = 0; r < TILE; r++)
        for (int v = 0; v < TILE; v += 16) _mm512_store_ps(&t.sum[r][v], _mm512_setzero_ps());
    for (int64_t k = 0; k < n; k += STEP) {
        for (int r = 0; r < TILE; r++) _mm512_store_ps(t.a[r], _mm512_loadu_ps(job->a + (row + r) * n + k));
        for (int r = 0; r < STEP; r++)
            for (int v = 0; v < TILE; v += 16)
                _mm512_store_ps(&t.b[r][v], _mm512_loadu_ps(job->b + (k + r) * n + column + v));
        for (int c = 0; c < TILE; c += 32)
            for (int r = 0; r < TILE; r += 8) multiply_block(&t, r, c);
    }
    for (int r = 0; r < TILE; r++)
        for (int v = 0; v < TILE; v += 16)
            _mm512_storeu_ps(job->c + (row + r) * n + column + v, _mm512_load_ps(&t.sum[r][v]));
}

void handwritten_matmul_register(const float *a, const float *b, float *c, int64_t n) {
    struct job job = {a, b, c, n};
    team_run(group_of_rows, &job, (n / TILE) * (n / TILE));
}

/* ---- Lanes are threads: thread t has rows 8 (t / 8) … and columns 8 (t % 8) …; 16 threads a vector. Each
 * thread's 64 sums do not fit in registers: they are worked on in four squares of 4 x 4. */

struct lane_tiles {
    _Alignas(64) float a[STEP][TILE]; /* transposed, as the kernel keeps it */
    _Alignas(64) float b[STEP][8][8]; /* [k][j][t % 8]: a lane's j-th column */
    __m512 sum[4][8][8];              /* [16 threads][row][column] */
};

static void load_lanes(struct lane_tiles *t, const struct job *job, int64_t row, int64_t column, int64_t k) {
    int64_t n = job->n;
    const __m512i rows = _mm512_mullo_epi32(
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), _mm512_set1_epi32((int)n));
    for (int r = 0; r < STEP; r++)
        for (int v = 0; v < TILE; v += 16)
            _mm512_store_ps(&t->a[r][v], _mm512_i32gather_ps(rows, job->a + (row + v) * n + k + r, 4));
    const __m256i columns = _mm256_set_epi32(56, 48, 40, 32, 24, 16, 8, 0);
    for (int r = 0; r < STEP; r++)
        for (int j = 0; j < 8; j++)
            _mm256_store_ps(t->b[r][j], _mm256_i32gather_ps(job->b + (k + r) * n + column + j, columns, 4));
}

static inline void multiply_square(struct lane_tiles *t, int threads, int row, int column) {
    __m512 sum[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) sum[i][j] = t->sum[threads][row + i][column + j];
    for (int k = 0; k < STEP; k++) {
        const float *low = &t->a[k][16 * threads + row], *high = low + 8;
        __m512 a[4];
        for (int i = 0; i < 4; i++)
            a[i] = _mm512_mask_broadcastss_ps(_mm512_set1_ps(low[i]), 0xff00, _mm_load_ss(high + i));
        for (int j = 0; j < 4; j++) {
            __m512 b = _mm512_broadcast_f32x8(_mm256_load_ps(t->b[k][column + j]));
            for (int i = 0; i < 4; i++) sum[i][j] = _mm512_fmadd_ps(a[i], b, sum[i][j]);
        }
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) t->sum[threads][row + i][column + j] = sum[i][j];
}

static void group_of_lanes(void *context, int64_t index) {
    const struct job *job = context;
    int64_t n = job->n, row = index / (n / TILE) * TILE, column = index % (n / TILE) * TILE;
    struct lane_tiles t;
    for (int threads = 0; threads < 4; threads++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++) t.sum[threads][i][j] = _mm512_setzero_ps();
    for (int64_t k = 0; k < n; k += STEP) {
        load_lanes(&t, job, row, column, k);
        for (int threads = 0; threads < 4; threads++)
            for (int square = 0; square < 4; square++)
                multiply_square(&t, threads, square / 2 * 4, square % 2 * 4);
    }
    const __m512i at =
        _mm512_set_epi32(56 + 8 * (int)n, 48 + 8 * (int)n, 40 + 8 * (int)n, 32 + 8 * (int)n, 24 + 8 * (int)n,
                         16 + 8 * (int)n, 8 + 8 * (int)n, 8 * (int)n, 56, 48, 40, 32, 24, 16, 8, 0);
    for (int threads = 0; threads < 4; threads++)
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++)
                _mm512_i32scatter_ps(job->c + (row + 16 * threads + i) * n + column + j, at,
                                     t.sum[threads][i][j], 4);
}

void handwritten_matmul_register_lanes(const float *a, const float *b, float *c, int64_t n) {
    struct job job = {a, b, c, n};
    team_run(group_of_lanes, &job, (n / TILE) * (n / TILE));
}
