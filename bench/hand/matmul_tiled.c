/* A product by 32 x 32 threadgroups with both tiles in threadgroup memory. Several simdgroups (rows of the
 * tile) are jammed: a row of b is loaded once for all of them. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include "bench/hand/multiply_block.h"

#define TILE 32

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
        for (int c = 0; c < TILE; c += LANES) vector_store(tile[row] + c, vector_load(from + c));
    }
}

static void group(void *context, int64_t index) {
    const struct job *job = context;
    int64_t n = job->n, row = index / (n / TILE) * TILE, column = index % (n / TILE) * TILE;
    struct tiles t;
    for (int r = 0; r < TILE; r++)
        for (int c = 0; c < TILE; c += LANES) vector_store(&t.sum[r][c], vector_set(0));
    for (int64_t k = 0; k < n; k += TILE) {
        load(t.a, job->a + row * n + k, n);
        load(t.b, job->b + k * n + column, n);
        for (int c = 0; c < TILE; c += 2 * LANES)
            for (int r = 0; r < TILE; r += ROWS)
                multiply_block(t.a[r], TILE, TILE, &t.b[0][c], &t.sum[r][c], TILE);
    }
    for (int r = 0; r < TILE; r++)
        for (int c = 0; c < TILE; c += LANES)
            vector_store(job->c + (row + r) * n + column + c, vector_load(&t.sum[r][c]));
}

void BY_HAND(matmul_tiled)(const float *a, const float *b, float *c, int64_t n) {
    struct job job = {a, b, c, n};
    team_run(group, &job, (n / TILE) * (n / TILE));
}
