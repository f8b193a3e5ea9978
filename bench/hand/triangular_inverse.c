/* Inverses of unit lower triangular 64 x 64 squares: 64 threads, with a column each, are SIDE / LANES
 * vectors. */
#include "bench/hand/handwritten.h"
#include "bench/cpu/threads.h"

#include "bench/hand/vector.h"

#define SIDE 64
#define VECTORS (SIDE / LANES)
#define AT_ONCE (REGISTERS / 8) /* vectors of four rows whose sums are half of the registers */

struct job {
    const float *a;
    float *inverse;
    int64_t heads;
};

struct square {
    _Alignas(64) float lower[SIDE][SIDE], x[SIDE][SIDE];
};

/* Row i of the identity, columns LANES v … */
static inline vector identity(int i, int v) {
    float row[LANES] = {0};
    if (i / LANES == v) row[i % LANES] = 1.0f;
    return vector_load(row);
}

static inline void solve_row(struct square *s, int i) {
    vector sum[VECTORS];
    for (int v = 0; v < VECTORS; v++) sum[v] = identity(i, v);
    for (int k = 0; k < i; k++) {
        vector factor = vector_set(s->lower[i][k]);
        for (int v = 0; v < VECTORS; v++)
            sum[v] = vector_fnmadd(factor, vector_load(&s->x[k][LANES * v]), sum[v]);
    }
    for (int v = 0; v < VECTORS; v++) vector_store(&s->x[i][LANES * v], sum[v]);
}

/* Rows first … first + 3, vectors from … from + AT_ONCE - 1: what the rows above contribute is taken from all
 * four at once. */
static inline void solve_four_rows(struct square *s, int first, int from) {
    vector sum[4][AT_ONCE];
    for (int r = 0; r < 4; r++)
        for (int v = 0; v < AT_ONCE; v++) sum[r][v] = identity(first + r, from + v);
    for (int k = 0; k < first; k++) {
        vector x[AT_ONCE];
        for (int v = 0; v < AT_ONCE; v++) x[v] = vector_load(&s->x[k][LANES * (from + v)]);
        for (int r = 0; r < 4; r++) {
            vector factor = vector_set(s->lower[first + r][k]);
            for (int v = 0; v < AT_ONCE; v++) sum[r][v] = vector_fnmadd(factor, x[v], sum[r][v]);
        }
    }
    for (int r = 0; r < 4; r++) {
        for (int k = 0; k < r; k++) {
            vector factor = vector_set(s->lower[first + r][first + k]);
            for (int v = 0; v < AT_ONCE; v++) sum[r][v] = vector_fnmadd(factor, sum[k][v], sum[r][v]);
        }
        for (int v = 0; v < AT_ONCE; v++) vector_store(&s->x[first + r][LANES * (from + v)], sum[r][v]);
    }
}

static inline void invert(const struct job *job, int64_t index, int rows_at_once) {
    int64_t step = job->heads * SIDE;
    int64_t start = index / job->heads * SIDE * step + index % job->heads * SIDE;
    struct square s;
    for (int i = 0; i < SIDE; i++)
        for (int v = 0; v < VECTORS; v++)
            vector_store(&s.lower[i][LANES * v], vector_load(job->a + start + i * step + LANES * v));
    for (int i = 0; i < SIDE; i += rows_at_once) {
        if (rows_at_once == 1)
            solve_row(&s, i);
        else
            for (int v = 0; v < VECTORS; v += AT_ONCE) solve_four_rows(&s, i, v);
    }
    for (int i = 0; i < SIDE; i++)
        for (int v = 0; v < VECTORS; v++)
            vector_store(job->inverse + start + i * step + LANES * v, vector_load(&s.x[i][LANES * v]));
}

static void by_rows(void *job, int64_t index) {
    invert(job, index, 1);
}
static void by_fours(void *job, int64_t index) {
    invert(job, index, 4);
}

void BY_HAND(triangular_inverse)(const float *a, float *inverse, int64_t length, int64_t heads) {
    struct job job = {a, inverse, heads};
    team_run(by_rows, &job, length / SIDE * heads);
}

void BY_HAND(triangular_inverse_fours)(const float *a, float *inverse, int64_t length, int64_t heads) {
    struct job job = {a, inverse, heads};
    team_run(by_fours, &job, length / SIDE * heads);
}
