/* Residuals of factorisations, in float64 on the host. */
#include "array/array.h"
#include "array/dtype.h"
#include "smelt/linalg.h"

#include <math.h>
#include <stdlib.h>

/* Matrices as doubles, one after the other. */
struct matrices {
    smelt_array *array;
    const double *values;
    int64_t batch, rows, columns;
};

static smelt_status read_matrices(const char *name, const char *argument, smelt_array *given,
                                  struct matrices *m) {
    smelt_array *here = NULL;
    *m = (struct matrices){0};
    if (!given) return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %s is NULL", name, argument);
    if (given->dtype == SMELT_COMPLEX64 || given->shape.ndim < 2)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: %s has dtype %s and shape %s, expected matrices of real numbers", name, argument,
                    smelt_dtype_name(given->dtype), shape_print(&given->shape).text);
    TRY(smelt_array_to(given, "cpu", NULL, &here));
    smelt_status status = smelt_array_convert(here, SMELT_FLOAT64, &m->array);
    smelt_array_release(here);
    if (status != SMELT_OK) return status;
    int last = given->shape.ndim - 1;
    m->values = (const double *)m->array->data;
    m->rows = given->shape.size[last - 1];
    m->columns = given->shape.size[last];
    m->batch = 1;
    for (int i = 0; i < last - 1; i++) m->batch *= given->shape.size[i];
    return SMELT_OK;
}

/* The larger; NaN wins. */
static double worse(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}

static double ratio(double part, double whole) {
    return part == 0 ? 0 : sqrt(part) / sqrt(whole);
}

/* ‖a - x y‖ / ‖a‖, of elements (i, j) with i >= j if `lower`, i <= j if `upper`. x (m, k), y (k, n), with
 * strides. */
struct factor {
    const double *values;
    int64_t row, column;
};

static double residual_of(const double *a, int64_t m, int64_t n, int64_t k, struct factor x, struct factor y,
                          bool lower, bool upper) {
    double part = 0, whole = 0, *sums = calloc((size_t)n + 1, sizeof *sums);
    if (!sums) return NAN;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) sums[j] = a[i * n + j];
        for (int64_t t = 0; t < k; t++) {
            double value = x.values[i * x.row + t * x.column];
            for (int64_t j = 0; j < n && value != 0; j++)
                sums[j] -= value * y.values[t * y.row + j * y.column];
        }
        for (int64_t j = 0; j < n; j++) {
            if ((lower && j > i) || (upper && j < i)) continue;
            part += sums[j] * sums[j];
            whole += a[i * n + j] * a[i * n + j];
        }
    }
    free(sums);
    return ratio(part, whole);
}

static smelt_status shapes_differ(const char *name, const smelt_array *a, const smelt_array *b) {
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: shapes %s and %s do not match", name,
                shape_print(&a->shape).text, shape_print(&b->shape).text);
}

smelt_status smelt_cholesky_residual(smelt_array *a, smelt_array *l, bool upper, double *residual) {
    struct matrices ma = {0}, ml = {0};
    if (!residual) return fail(SMELT_ERROR_INVALID_ARGUMENT, "cholesky_residual: residual is NULL");
    smelt_status status = read_matrices("cholesky_residual", "a", a, &ma);
    if (status == SMELT_OK) status = read_matrices("cholesky_residual", "l", l, &ml);
    if (status == SMELT_OK && (!shape_equal(&a->shape, &l->shape) || ma.rows != ma.columns))
        status = shapes_differ("cholesky_residual", a, l);
    double worst = 0;
    int64_t n = ma.rows;
    for (int64_t b = 0; b < ma.batch && status == SMELT_OK; b++) {
        const double *factor = ml.values + b * n * n;
        struct factor plain = {factor, n, 1}, flipped = {factor, 1, n};
        worst = worse(worst, residual_of(ma.values + b * n * n, n, n, n, upper ? flipped : plain,
                                         upper ? plain : flipped, !upper, upper));
    }
    smelt_array_release(ma.array);
    smelt_array_release(ml.array);
    if (status == SMELT_OK) *residual = worst;
    return status;
}

smelt_status smelt_qr_residual(smelt_array *a, smelt_array *q, smelt_array *r, double *residual) {
    struct matrices ma = {0}, mq = {0}, mr = {0};
    if (!residual) return fail(SMELT_ERROR_INVALID_ARGUMENT, "qr_residual: residual is NULL");
    smelt_status status = read_matrices("qr_residual", "a", a, &ma);
    if (status == SMELT_OK) status = read_matrices("qr_residual", "q", q, &mq);
    if (status == SMELT_OK) status = read_matrices("qr_residual", "r", r, &mr);
    if (status == SMELT_OK &&
        (ma.batch != mq.batch || ma.batch != mr.batch || ma.rows != mq.rows || mq.columns != mr.rows))
        status = shapes_differ("qr_residual", q, r);
    if (status == SMELT_OK && ma.columns != mr.columns) status = shapes_differ("qr_residual", a, r);
    double worst = 0;
    int64_t m = ma.rows, n = ma.columns, k = mq.columns;
    for (int64_t b = 0; b < ma.batch && status == SMELT_OK; b++)
        worst = worse(worst, residual_of(ma.values + b * m * n, m, n, k,
                                         (struct factor){mq.values + b * m * k, k, 1},
                                         (struct factor){mr.values + b * k * n, n, 1}, false, false));
    smelt_array_release(ma.array);
    smelt_array_release(mq.array);
    smelt_array_release(mr.array);
    if (status == SMELT_OK) *residual = worst;
    return status;
}

smelt_status smelt_orthogonality(smelt_array *q, double *residual) {
    struct matrices m;
    if (!residual) return fail(SMELT_ERROR_INVALID_ARGUMENT, "orthogonality: residual is NULL");
    TRY(read_matrices("orthogonality", "q", q, &m));
    double worst = 0;
    for (int64_t b = 0; b < m.batch; b++) {
        const double *values = m.values + b * m.rows * m.columns;
        double squares = 0;
        for (int64_t i = 0; i < m.columns; i++)
            for (int64_t j = i; j < m.columns; j++) {
                double sum = i == j ? -1 : 0;
                for (int64_t t = 0; t < m.rows; t++)
                    sum += values[t * m.columns + i] * values[t * m.columns + j];
                squares += (i == j ? 1 : 2) * sum * sum;
            }
        worst = worse(worst, sqrt(squares));
    }
    smelt_array_release(m.array);
    *residual = worst;
    return SMELT_OK;
}

smelt_status smelt_lower_residual(smelt_array *r, double *residual) {
    struct matrices m;
    if (!residual) return fail(SMELT_ERROR_INVALID_ARGUMENT, "lower_residual: residual is NULL");
    TRY(read_matrices("lower_residual", "r", r, &m));
    double worst = 0;
    for (int64_t b = 0; b < m.batch; b++) {
        double part = 0, whole = 0;
        for (int64_t i = 0; i < m.rows; i++)
            for (int64_t j = 0; j < m.columns; j++) {
                double value = m.values[(b * m.rows + i) * m.columns + j];
                whole += value * value;
                if (j < i) part += value * value;
            }
        worst = worse(worst, ratio(part, whole));
    }
    smelt_array_release(m.array);
    *residual = worst;
    return SMELT_OK;
}
