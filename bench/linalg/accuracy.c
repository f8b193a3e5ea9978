/* Extended precision: what it costs beside native sums, and how accurate both are on ill-conditioned
 * matrices. */
#include "bench/linalg/linalg.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NATIVE "native"
#define EXTENDED "extended"
#define SIDE 64

/* ---- Matrices. */

/* In [-1, 1). */
static double next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(int64_t)*state * 0x1p-63;
}

/* a = H a H for n random reflections H: every orthogonal matrix is their product. */
void fill_with_condition(double *a, int64_t n, double condition, uint64_t seed) {
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    double *v = malloc((size_t)(2 * n) * sizeof *v), *w = v + n;
    memset(a, 0, (size_t)(n * n) * sizeof *a);
    for (int64_t i = 0; i < n; i++) a[i * (n + 1)] = pow(condition, n > 1 ? -(double)i / (double)(n - 1) : 0);
    for (int64_t r = 0; v && r < n; r++) {
        double squares = 0, cross = 0;
        for (int64_t i = 0; i < n; i++) v[i] = next(&state), squares += v[i] * v[i];
        for (int64_t i = 0; i < n; i++) {
            w[i] = 0;
            for (int64_t j = 0; j < n; j++) w[i] += 2 / squares * a[i * n + j] * v[j];
            cross += w[i] * v[i] / squares;
        }
        /* a - v wᵀ - w vᵀ + 2 (vᵀ w / vᵀ v) v vᵀ */
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++)
                a[i * n + j] = a[j * n + i] =
                    a[i * n + j] - v[i] * w[j] - w[i] * v[j] + 2 * cross * v[i] * v[j];
    }
    free(v);
}

static void fill_hilbert(double *a, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) a[i * n + j] = 1 / (double)(i + j + 1);
}

/* ---- Accuracy: a row without times for each matrix and factorisation. */

static const struct matrix {
    const char *name;
    int64_t n;
    double condition; /* 0: Hilbert's */
} matrices[] = {
    {"Hilbert, n = 6", 6, 0},
    {"Hilbert, n = 9", 9, 0},
    {"Hilbert, n = 12", 12, 0},
    {"condition 10^3, n = 64", SIDE, 1e3},
    {"condition 10^6, n = 64", SIDE, 1e6},
    {"condition 10^9, n = 64", SIDE, 1e9},
    {"condition 10^12, n = 64", SIDE, 1e12},
};

static void measure_cholesky(smelt_array *a, smelt_linalg_precision precision, char *text, size_t size) {
    smelt_array *l;
    double residual = 0;
    if (smelt_cholesky(a, &(smelt_linalg_desc){.precision = precision}, &l) != SMELT_OK) {
        snprintf(text, size, "a pivot fails");
        return;
    }
    if (smelt_cholesky_residual(a, l, false, &residual) == SMELT_OK) snprintf(text, size, "%.1e", residual);
    smelt_array_release(l);
}

static void measure_qr(smelt_array *a, smelt_linalg_precision precision, char *text, size_t size) {
    smelt_array *q, *r;
    double residual = 0, apart = 0;
    if (smelt_qr(a, &(smelt_linalg_desc){.precision = precision}, &q, &r) != SMELT_OK) {
        snprintf(text, size, "fails");
        return;
    }
    if (smelt_qr_residual(a, q, r, &residual) == SMELT_OK && smelt_orthogonality(q, &apart) == SMELT_OK)
        snprintf(text, size, "%.1e and %.1e", residual, apart);
    smelt_array_release(q);
    smelt_array_release(r);
}

/* Native results are of the matrix rounded to float32, and compared with that. */
static smelt_status compare(struct bench *bench, const char *job, const struct matrix *matrix) {
    int64_t n = matrix->n;
    double values[SIDE * SIDE];
    smelt_array *wide, *narrow;
    char native[64], extended[64], text[256];
    if (matrix->condition > 0)
        fill_with_condition(values, n, matrix->condition, 5);
    else
        fill_hilbert(values, n);
    smelt_status status = smelt_array_from_values(SMELT_FLOAT64, SHAPE_OF(n, n), values, &wide);
    if (status != SMELT_OK) return status;
    status = smelt_array_convert(wide, SMELT_FLOAT32, &narrow);
    if (status == SMELT_OK) {
        measure_cholesky(narrow, SMELT_LINALG_NATIVE, native, sizeof native);
        measure_cholesky(wide, SMELT_LINALG_EXTENDED, extended, sizeof extended);
        snprintf(text, sizeof text, "cholesky, |a - l l'| / |a|: %s %s, %s %s", NATIVE, native, EXTENDED,
                 extended);
        bench_note(bench, job, matrix->name, text);
        measure_qr(narrow, SMELT_LINALG_NATIVE, native, sizeof native);
        measure_qr(wide, SMELT_LINALG_EXTENDED, extended, sizeof extended);
        snprintf(text, sizeof text, "qr, |a - q r| / |a| and |I - q' q|: %s %s, %s %s", NATIVE, native,
                 EXTENDED, extended);
        bench_note(bench, job, matrix->name, text);
        smelt_array_release(narrow);
    }
    smelt_array_release(wide);
    return status;
}

smelt_status bench_linalg_accuracy(struct bench *bench, const char *name) {
    if (bench_is_gpu(bench->shared)) return SMELT_OK;
    smelt_status status = SMELT_OK;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices && status == SMELT_OK; i++)
        status = compare(bench, name, &matrices[i]);
    return status;
}

/* ---- Costs. */

struct cost {
    const char *job;
    smelt_array *x;
    smelt_linalg_precision precision;
};

static smelt_status run_cost(const struct cost *cost) {
    smelt_linalg_desc desc = {.precision = cost->precision};
    smelt_array *made[2] = {0};
    smelt_status status =
        strcmp(cost->job, "cholesky-extended") == 0 ? smelt_cholesky(cost->x, &desc, &made[0])
        : strcmp(cost->job, "qr-extended") == 0     ? smelt_qr(cost->x, &desc, &made[0], &made[1])
                                                    : smelt_dot(cost->x, cost->x, &desc, &made[0]);
    smelt_array_release(made[0]);
    smelt_array_release(made[1]);
    return status;
}

static smelt_status measure_cost(void *context, double *seconds) {
    double start = linalg_now();
    smelt_status status = run_cost(context);
    *seconds = linalg_now() - start;
    return status;
}

smelt_status bench_linalg_extended(struct bench *bench, const char *name) {
    if (bench_is_gpu(bench->shared)) return SMELT_OK;
    bool dots = strcmp(name, "dot-extended") == 0;
    int64_t n = bench->quick ? 24 : dots ? 1000 : 128;
    double *values = malloc((size_t)(n * n) * sizeof *values);
    smelt_array *wide = NULL, *x = NULL;
    if (!values) return SMELT_ERROR_OUT_OF_MEMORY;
    fill_with_condition(values, n, 1e3, 7);
    smelt_status status = smelt_array_from_values(SMELT_FLOAT64, SHAPE_OF(n, n), values, &wide);
    if (status == SMELT_OK) status = smelt_array_convert(wide, SMELT_FLOAT32, &x);
    if (status == SMELT_OK) {
        struct cost costs[2] = {{name, x, SMELT_LINALG_NATIVE}, {name, x, SMELT_LINALG_EXTENDED}};
        struct bench_case cases[2] = {
            {.job = name, .variant = NATIVE, .measure = measure_cost, .context = &costs[0]},
            {.job = name,
             .variant = EXTENDED,
             .anchor = NATIVE,
             .measure = measure_cost,
             .context = &costs[1]}};
        status = bench_measure(bench, cases, 2, bench_repeats(bench, 9));
    }
    free(values);
    smelt_array_release(wide);
    smelt_array_release(x);
    return status;
}
