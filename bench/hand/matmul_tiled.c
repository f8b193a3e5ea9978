/* A product by 32 x 32 threadgroups with both tiles in threadgroup memory. Eight simdgroups (rows of the
 * tile) are jammed: a row of b is loaded once for all of them. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include <immintrin.h>

#define TILE 32
#define ROWS 8

struct job {
    const float *a, *b;
    float *c;
    int64_t n;
};

struct tiles {
    _Alignas(64) float a[TILE][TILE], b[TILE][TILE], sum[TILE][TILE];
};

static void load(float tile[TILE][TILE], const float *from, int64_t stride) {
    for (int row = 0; row < TILE; row++, from += stride) {
        _mm512_store_ps(tile[row], _mm512_loadu_ps(from));
        _mm512_store_ps(tile[row] + 16, _mm512_loadu_ps(from + 16));
    }
}

static inline void multiply_rows(struct tiles *t, int first) {
    __m512 sum[ROWS][2];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < 2; v++) sum[r][v] = _mm512_load_ps(&t->sum[first + r][16 * v]);
#pragma GCC unroll 4
    for (int k = 0; k < TILE; k++) {
        __m512 low = _mm512_load_ps(t->b[k]), high = _mm512_load_ps(t->b[k] + 16);
        for (int r = 0; r < ROWS; r++) {
            __m512 a = _mm512_set1_ps(t->a[first + r][k]);
            sum[r][0] = _mm512_fmadd_ps(a, low, sum[r][0]);
            sum[r][1] = _mm512_fmadd_ps(a, high, sum[r][1]);
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < 2; v++) _mm512_store_ps(&t->sum[first + r][16 * v], sum[r][v]);
}

static void group(void *context, int64_t index) {
    const struct job *job = context;
    int64_t n = job->n, row = index / (n / TILE) * TILE, column = index % (n / TILE) * TILE;
    struct tiles t;
    for (int r = 0; r < TILE; r++)
        for (int v = 0; v < 2; v++) _mm512_store_ps(&t.sum[r][16 * v], _mm512_setzero_ps());
    for (int64_t k = 0; k < n; k += TILE) {
        load(t.a, job->a + row * n + k, n);
        load(t.b, job->b + k * n + column, n);
        for (int first = 0; first < TILE; first += ROWS) multiply_rows(&t, first);
    }
    for (int r = 0; r < TILE; r++)
        for (int v = 0; v < 2; v++)
            _mm512_storeu_ps(job->c + (row + r) * n + column + 16 * v, _mm512_load_ps(&t.sum[r][16 * v]));
}

void handwritten_matmul_tiled(const float *a, const float *b, float *c, int64_t n) {
    struct job job = {a, b, c, n};
    team_run(group, &job, (n / TILE) * (n / TILE));
}
