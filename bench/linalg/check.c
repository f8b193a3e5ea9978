/* Checks of factors and solutions: both sides of an equation times random vectors, in float64. A wrong
 * element changes the product by its size times an element of the vector. */
#include "bench/linalg/linalg.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define VECTORS 3

/* A matrix, or one of its triangles. */
struct operand {
    const float *data;
    int64_t rows, columns, row_step, column_step;
    enum { WHOLE, LOWER, UPPER } part;
    bool unit;
};

static struct operand matrix_of(const float *data, int64_t rows, int64_t columns, bool by_columns) {
    return (struct operand){.data = data,
                            .rows = rows,
                            .columns = columns,
                            .row_step = by_columns ? 1 : columns,
                            .column_step = by_columns ? rows : 1};
}

static struct operand part_of(struct operand matrix, int part, bool unit) {
    matrix.part = part == LOWER ? LOWER : UPPER;
    matrix.unit = unit;
    return matrix;
}

static struct operand transposed(struct operand matrix) {
    struct operand t = matrix;
    t.rows = matrix.columns, t.columns = matrix.rows;
    t.row_step = matrix.column_step, t.column_step = matrix.row_step;
    if (matrix.part != WHOLE) t.part = matrix.part == LOWER ? UPPER : LOWER;
    return t;
}

static double element(const struct operand *m, int64_t i, int64_t j) {
    if (m->part != WHOLE && m->unit && i == j) return 1;
    if (m->part == LOWER ? j > i : m->part == UPPER ? j < i : false) return 0;
    return (double)m->data[i * m->row_step + j * m->column_step];
}

/* y = m x; y and x are different. */
static void multiply(struct operand m, const double *x, double *y) {
    for (int64_t i = 0; i < m.rows; i++) y[i] = 0;
    for (int64_t i = 0; i < m.rows; i++)
        for (int64_t j = 0; j < m.columns; j++) y[i] += element(&m, i, j) * x[j];
}

static double norm(const double *x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static double norm_of(struct operand m) {
    double sum = 0;
    for (int64_t i = 0; i < m.rows; i++)
        for (int64_t j = 0; j < m.columns; j++) sum += element(&m, i, j) * element(&m, i, j);
    return sqrt(sum);
}

/* In [-1, 1), from a counter. */
static double random_real(uint64_t seed) {
    uint64_t z = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)(int64_t)(z ^ z >> 31) * 0x1p-63;
}

struct vectors {
    double *x, *left, *right, *between;
};

static double distance(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(sum);
}

/* Two factors: a x = first (second x), relative to ‖a‖ ‖x‖. */
static double product_error(struct operand a, struct operand first, struct operand second, struct vectors v,
                            const int32_t *pivots) {
    multiply(a, v.x, v.left);
    for (int64_t i = 0; pivots && i < first.columns; i++) {
        double held = v.left[i];
        v.left[i] = v.left[pivots[i]];
        v.left[pivots[i]] = held;
    }
    multiply(second, v.x, v.between);
    multiply(first, v.between, v.right);
    return distance(v.left, v.right, a.rows) / (norm_of(a) * norm(v.x, a.columns));
}

static double solution_error(struct operand a, struct operand solution, struct operand b, struct vectors v) {
    multiply(solution, v.x, v.between);
    multiply(a, v.between, v.left);
    multiply(b, v.x, v.right);
    return distance(v.left, v.right, a.rows) / (norm_of(a) * norm_of(solution) * norm(v.x, b.columns));
}

/* ‖qᵀ q x - x‖ / ‖x‖ */
static double orthogonality_error(struct operand q, struct vectors v) {
    multiply(q, v.x, v.between);
    multiply(transposed(q), v.between, v.right);
    return distance(v.right, v.x, q.columns) / norm(v.x, q.columns);
}

static double error_of(const struct problem *p, const struct answer *answer, int64_t index,
                       struct vectors v) {
    int64_t m = p->rows, n = p->columns, k = m < n ? m : n;
    bool turned = answer->by_columns;
    /* LAPACK's own matrices are square here, or were transposed for it. */
    struct operand a = matrix_of(p->a + index * m * n, m, n, false),
                   first = matrix_of(answer->first + index * m * n, m, n, turned);
    if (p->kind == CHOLESKY) {
        struct operand l = part_of(matrix_of(answer->first + index * n * n, n, n, false), LOWER, false);
        return product_error(a, l, transposed(l), v, NULL);
    }
    if (p->kind == QR) {
        struct operand q = matrix_of(answer->first + index * m * k, m, k, turned),
                       r = part_of(matrix_of(answer->second + index * k * n, k, n, turned), UPPER, false);
        double apart = orthogonality_error(q, v), wrong = product_error(a, q, r, v, NULL);
        return apart / 2 > wrong ? apart / 2 : wrong;
    }
    if (turned) a = transposed(a);
    if (p->kind == LU) {
        struct operand l = part_of(first, LOWER, true), u = part_of(first, UPPER, false);
        return product_error(a, l, u, v, answer->pivots + index * k);
    }
    struct operand b = matrix_of(p->b + index * m * n, m, n, turned);
    if (p->kind == TRIANGULAR) a = part_of(a, turned ? UPPER : LOWER, false);
    return solution_error(a, first, b, v);
}

bool answer_check(const struct problem *p, const struct answer *answer, char *message, size_t size) {
    int64_t most = p->rows > p->columns ? p->rows : p->columns;
    double *memory = malloc((size_t)most * 4 * sizeof *memory), worst = 0,
           tolerance = 4 * (double)FLT_EPSILON * sqrt((double)most);
    if (!memory) return snprintf(message, size, "out of memory") < 0;
    struct vectors v = {memory, memory + most, memory + 2 * most, memory + 3 * most};
    for (int64_t index = 0; index < p->batch; index++)
        for (int vector = 0; vector < VECTORS; vector++) {
            for (int64_t j = 0; j < most; j++)
                v.x[j] = random_real((uint64_t)((index * VECTORS + vector) * most + j));
            double error = error_of(p, answer, index, v);
            if (!(error <= worst)) worst = error;
        }
    free(memory);
    if (worst <= tolerance) return true;
    snprintf(message, size, "the residual is %g, expected at most %g", worst, tolerance);
    return false;
}
