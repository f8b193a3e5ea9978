/* Inverses of unit lower triangular 64 x 64 squares: 64 threads, a column each, are four vectors. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include <immintrin.h>

#define SIDE 64
#define VECTORS (SIDE / 16)

struct job {
    const float *a;
    float *inverse;
    int64_t heads;
};

struct square {
    _Alignas(64) float lower[SIDE][SIDE], x[SIDE][SIDE];
};

/* Row i of the identity, columns 16 v … */
static inline __m512 identity(int i, int v) {
    return _mm512_maskz_mov_ps((__mmask16)(i / 16 == v ? 1u << (i % 16) : 0), _mm512_set1_ps(1.0f));
}

static inline void solve_row(struct square *s, int i) {
    __m512 sum[VECTORS];
    for (int v = 0; v < VECTORS; v++) sum[v] = identity(i, v);
    for (int k = 0; k < i; k++) {
        __m512 factor = _mm512_set1_ps(s->lower[i][k]);
        for (int v = 0; v < VECTORS; v++)
            sum[v] = _mm512_fnmadd_ps(factor, _mm512_load_ps(&s->x[k][16 * v]), sum[v]);
    }
    for (int v = 0; v < VECTORS; v++) _mm512_store_ps(&s->x[i][16 * v], sum[v]);
}

/* Rows first … first + 3: what the rows above contribute is taken from all four at once. */
static inline void solve_four_rows(struct square *s, int first) {
    __m512 sum[4][VECTORS];
    for (int r = 0; r < 4; r++)
        for (int v = 0; v < VECTORS; v++) sum[r][v] = identity(first + r, v);
    for (int k = 0; k < first; k++) {
        __m512 x[VECTORS];
        for (int v = 0; v < VECTORS; v++) x[v] = _mm512_load_ps(&s->x[k][16 * v]);
        for (int r = 0; r < 4; r++) {
            __m512 factor = _mm512_set1_ps(s->lower[first + r][k]);
            for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_fnmadd_ps(factor, x[v], sum[r][v]);
        }
    }
    for (int r = 0; r < 4; r++) {
        for (int k = 0; k < r; k++) {
            __m512 factor = _mm512_set1_ps(s->lower[first + r][first + k]);
            for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_fnmadd_ps(factor, sum[k][v], sum[r][v]);
        }
        for (int v = 0; v < VECTORS; v++) _mm512_store_ps(&s->x[first + r][16 * v], sum[r][v]);
    }
}

static inline void invert(const struct job *job, int64_t index, int rows_at_once) {
    int64_t step = job->heads * SIDE;
    int64_t start = index / job->heads * SIDE * step + index % job->heads * SIDE;
    struct square s;
    for (int i = 0; i < SIDE; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_store_ps(&s.lower[i][16 * v], _mm512_loadu_ps(job->a + start + i * step + 16 * v));
    for (int i = 0; i < SIDE; i += rows_at_once) {
        if (rows_at_once == 1)
            solve_row(&s, i);
        else
            solve_four_rows(&s, i);
    }
    for (int i = 0; i < SIDE; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(job->inverse + start + i * step + 16 * v, _mm512_load_ps(&s.x[i][16 * v]));
}

static void by_rows(void *job, int64_t index) {
    invert(job, index, 1);
}
static void by_fours(void *job, int64_t index) {
    invert(job, index, 4);
}

void handwritten_triangular_inverse(const float *a, float *inverse, int64_t length, int64_t heads) {
    struct job job = {a, inverse, heads};
    team_run(by_rows, &job, length / SIDE * heads);
}

void handwritten_triangular_inverse_fours(const float *a, float *inverse, int64_t length, int64_t heads) {
    struct job job = {a, inverse, heads};
    team_run(by_fours, &job, length / SIDE * heads);
}
