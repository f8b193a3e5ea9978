/* Systems of equations: by LU, by a triangle, by QR for least squares. */
#include "linalg/gradient.h"
#include "linalg/kernels.h"
#include "linalg/reference.h"
#include "linalg/sides.h"
#include "smelt/ops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A call: the factorisation in progress, and b, which becomes x. */
struct job {
    struct dense *d;
    struct lu_job lu;
    smelt_array *b, *x; /* (batch, rows of b or x, k) */
    int64_t k, x_rows;
    double tolerance;
};

/* x = b, in x's rows. */
static smelt_status copy_b(const struct dense *d, const struct job *job, int64_t rows) {
    return dense_copy(d, job->b, job->x,
                      &(struct copy_size){.rows = (uint32_t)rows,
                                          .columns = (uint32_t)job->k,
                                          .from_matrix = job->b->shape.size[1] * job->k,
                                          .from_row = job->k,
                                          .to_matrix = job->x->shape.size[1] * job->k,
                                          .to_row = job->k});
}

/* ---- A x = b by LU. */

static smelt_status solve_compute(struct dense *d, void *context) {
    struct job *job = context;
    int64_t n = d->rows, k = job->k;
    TRY(lu_compute(d, &job->lu));
    TRY(copy_b(d, job, n));
    TRY(dense_exchange(d, job->x, job->lu.pivots,
                       &(struct exchange_size){.count = (uint32_t)n,
                                               .columns = (uint32_t)k,
                                               .skip = (uint32_t)k,
                                               .w_matrix = n * k,
                                               .w_row = k,
                                               .pivots_matrix = n}));
    TRY(dense_triangular(d, job->lu.lu, n, n, false, false, true, job->x, k));
    return dense_triangular(d, job->lu.lu, n, n, true, false, false, job->x, k);
}

/* The columns of one matrix of b, in float64. */
static smelt_status read_b(const struct dense *d, const struct job *job, int64_t matrix, double **values) {
    smelt_array *part = NULL, *here = NULL, *wide = NULL;
    smelt_shape shape = {.ndim = 2, .size = {job->b->shape.size[1], job->k}};
    int64_t elements = shape_product(&shape);
    smelt_status status = smelt_array_view(job->b, shape, NULL, matrix * elements, &part);
    if (status == SMELT_OK) status = smelt_array_to(part, "cpu", d->desc.stream, &here);
    if (status == SMELT_OK) status = smelt_array_convert(here, SMELT_FLOAT64, &wide);
    /* Room for an x that is longer. */
    size_t bytes =
        (size_t)((elements > job->x_rows * job->k ? elements : job->x_rows * job->k) + 1) * sizeof(double);
    *values = status == SMELT_OK ? calloc(1, bytes) : NULL;
    if (*values)
        memcpy(*values, wide->data, (size_t)elements * sizeof(double));
    else if (status == SMELT_OK)
        status = fail_out_of_memory(bytes);
    smelt_array_release(part);
    smelt_array_release(here);
    smelt_array_release(wide);
    return status;
}

static smelt_status solve_repair(struct dense *d, void *context, int64_t matrix, double *a, int64_t *failed,
                                 double *value) {
    struct job *job = context;
    int64_t n = d->rows, k = job->k;
    double *x;
    int32_t *pivots = malloc((size_t)(n + 1) * sizeof *pivots);
    if (!pivots) return fail_out_of_memory((size_t)(n + 1) * sizeof *pivots);
    if (d->dtype == SMELT_FLOAT64 || !lapack_lu(a, n, n, pivots, 0, failed, value))
        reference_lu_factor(a, n, n, pivots, 0, failed, value);
    smelt_status status = read_b(d, job, matrix, &x);
    if (status == SMELT_OK) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < k && pivots[i] != i; c++) {
                double moved = x[i * k + c];
                x[i * k + c] = x[pivots[i] * k + c];
                x[pivots[i] * k + c] = moved;
            }
        reference_triangular(a, n, false, false, true, x, k);
        reference_triangular(a, n, true, false, false, x, k);
        status = dense_store(d, job->x, matrix, x);
        free(x);
    }
    free(pivots);
    return status;
}

/* ---- Least squares by QR. */

/* a for m >= n, aᵀ else: its reflections are of the longer side. */
static smelt_status transposed(const struct dense *d, smelt_array **result) {
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, d->columns, d->rows, result));
    return dense_copy(d, d->a, *result,
                      &(struct copy_size){.rows = (uint32_t)d->rows,
                                          .columns = (uint32_t)d->columns,
                                          .transpose = 1,
                                          .from_matrix = d->rows * d->columns,
                                          .from_row = d->columns,
                                          .to_matrix = d->rows * d->columns,
                                          .to_row = d->rows});
}

/* The first `rows` rows of `from` (batch, …, k) to `to`, the others of which become 0. */
static smelt_status move_rows(const struct dense *d, smelt_array *from, smelt_array *to, int64_t rows,
                              int64_t k) {
    if (to->shape.size[1] > rows) TRY(array_fill_on(to, d->desc.stream, 0));
    return dense_copy(d, from, to,
                      &(struct copy_size){.rows = (uint32_t)rows,
                                          .columns = (uint32_t)k,
                                          .from_matrix = from->shape.size[1] * k,
                                          .from_row = k,
                                          .to_matrix = to->shape.size[1] * k,
                                          .to_row = k});
}

static smelt_status least_tall(struct dense *d, struct job *job, struct panels *p) {
    int64_t m = d->rows, n = d->columns, k = job->k;
    smelt_array *c = NULL;
    TRY(panels_factor(d, d->a, m, n, job->tolerance, p));
    TRY(dense_create(d, SMELT_FLOAT32, d->batch, m, k, &c));
    smelt_status status = move_rows(d, job->b, c, m, k);
    /* reflect() needs room for k columns. */
    if (status == SMELT_OK) status = panels_apply(d, p, true, false, c, k);
    if (status == SMELT_OK) status = move_rows(d, c, job->x, n, k);
    if (status == SMELT_OK) {
        /* R is the top of w. */
        status = dense_triangular(d, p->w, n, n, true, false, false, job->x, k);
    }
    smelt_array_release(c);
    return status;
}

static smelt_status least_wide(struct dense *d, struct job *job, struct panels *p) {
    int64_t m = d->rows, n = d->columns, k = job->k;
    smelt_array *flipped = NULL, *y = NULL;
    smelt_status status = transposed(d, &flipped);
    if (status == SMELT_OK) status = panels_factor(d, flipped, n, m, job->tolerance, p);
    if (status == SMELT_OK) status = dense_create(d, SMELT_FLOAT32, d->batch, m, k, &y);
    if (status == SMELT_OK) status = move_rows(d, job->b, y, m, k);
    if (status == SMELT_OK) status = dense_triangular(d, p->w, m, m, true, true, false, y, k);
    if (status == SMELT_OK) status = move_rows(d, y, job->x, m, k);
    if (status == SMELT_OK) status = panels_apply(d, p, false, false, job->x, k);
    smelt_array_release(flipped);
    smelt_array_release(y);
    return status;
}

static smelt_status least_compute(struct dense *d, void *context) {
    struct job *job = context;
    struct panels p = {.most = job->k};
    TRY(dense_clear(d));
    d->measured = false;
    TRY(dense_measure(d, TRIANGLE_ALL));
    smelt_status status = d->rows >= d->columns ? least_tall(d, job, &p) : least_wide(d, job, &p);
    panels_release(&p);
    return status;
}

static smelt_status least_repair(struct dense *d, void *context, int64_t matrix, double *a, int64_t *failed,
                                 double *value) {
    struct job *job = context;
    int64_t m = d->rows, n = d->columns, k = job->k, rank = m < n ? m : n;
    size_t bytes = (size_t)(m * n + rank + 1) * sizeof(double);
    double *own = malloc(bytes), *x = NULL, largest = 0;
    if (!own) return fail_out_of_memory(bytes);
    double *tau = own + m * n;
    bool tall = m >= n;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) own[tall ? i * n + j : j * m + i] = a[i * n + j];
    int64_t rows = tall ? m : n;
    if (d->dtype == SMELT_FLOAT64 || !lapack_qr(own, rows, rank, tau))
        reference_qr_factor(own, rows, rank, tau);
    for (int64_t i = 0; i < rank; i++) largest = fmax(largest, fabs(own[i * (rank + 1)]));
    for (int64_t i = rank - 1; i >= 0; i--) {
        double size = fabs(own[i * (rank + 1)]);
        double least = d->dtype == SMELT_FLOAT64 ? job->tolerance : 1e-14;
        if (size > least * largest && isfinite(size)) continue;
        *failed = i;
        *value = own[i * (rank + 1)];
    }
    smelt_status status = read_b(d, job, matrix, &x);
    if (status == SMELT_OK && tall) {
        reference_qr_apply(own, rows, rank, tau, rank, x, k);
        reference_triangular(own, rank, true, false, false, x, k);
    } else if (status == SMELT_OK) {
        reference_triangular(own, rank, true, true, false, x, k);
        double *q = calloc((size_t)(n * rank) + 1, sizeof *q), *y = calloc((size_t)(n * k) + 1, sizeof *y);
        if (!q || !y || !x) {
            status = fail_out_of_memory((size_t)(n * rank) * sizeof *q);
        } else {
            reference_qr_form(own, rows, rank, tau, rank, q, rank);
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < rank; j++)
                    for (int64_t c = 0; c < k; c++) y[i * k + c] += q[i * rank + j] * x[j * k + c];
            memcpy(x, y, (size_t)(n * k) * sizeof *x);
        }
        free(q);
        free(y);
    }
    if (status == SMELT_OK) status = dense_store(d, job->x, matrix, x);
    free(x);
    free(own);
    return status;
}

/* ---- Calls. */

/* The result of a call: x, of b's dtype joined with a's; a vector if b was. */
static smelt_status finish(struct dense *d, struct job *job, const struct sides *s, smelt_array **x) {
    smelt_array *made = job->x;
    job->x = NULL;
    if (s->vector) return dense_finish(d, made, job->x_rows, -1, d->dtype, x);
    return dense_finish(d, made, job->x_rows, job->k, d->dtype, x);
}

/* Opens a call: sides, matrices; x (batch, x_rows, k) is created. */
static smelt_status begin(const char *name, smelt_array *a, smelt_array *b, const smelt_linalg_desc *desc,
                          struct sides *s, struct dense *d, struct job *job) {
    smelt_dtype dtypes[2], dtype;
    smelt_array *joined = NULL;
    TRY(sides_begin(name, a, b, false, s));
    dtypes[0] = a->dtype, dtypes[1] = b->dtype;
    TRY(smelt_result_dtype(dtypes, 0, 2, &dtype));
    smelt_linalg_desc own = desc ? *desc : (smelt_linalg_desc){0};
    if (!own.device && !a->memory->space && b->memory->space && dtype != SMELT_FLOAT64)
        own.device = b->memory->space->device;
    TRY(smelt_apply(
        &(smelt_apply_desc){.operation = SMELT_OPERATION_ASTYPE, .inputs = {s->a}, .dtype = dtype}, &joined));
    smelt_status status = dense_begin(name, joined, &own, d);
    smelt_array_release(joined);
    if (status != SMELT_OK) return status;
    TRY(dense_place(d, s->b, &job->b));
    /* One batch dimension. */
    smelt_array *flat = NULL;
    job->k = s->b->shape.size[s->b->shape.ndim - 1];
    job->x_rows = d->columns;
    int64_t rows = s->b->shape.size[s->b->shape.ndim - 2];
    TRY(smelt_array_view(job->b, (smelt_shape){.ndim = 3, .size = {d->batch, rows, job->k}}, NULL, 0, &flat));
    smelt_array_release(job->b);
    job->b = flat;
    smelt_dtype kept = d->dtype == SMELT_FLOAT64 ? SMELT_FLOAT64 : SMELT_FLOAT32;
    return dense_create(d, kept, d->batch, job->x_rows, job->k, &job->x);
}

static void end(struct sides *s, struct dense *d, struct job *job) {
    lu_release(&job->lu);
    smelt_array_release(job->b);
    smelt_array_release(job->x);
    dense_end(d);
    sides_end(s);
}

smelt_status smelt_solve(smelt_array *a, smelt_array *b, const smelt_linalg_desc *desc, smelt_array **x) {
    static const struct dense_method method = {
        solve_compute, solve_repair, "pivot", "a magnitude above the tolerance: the matrix is singular",
        CODE_TINY,     TRIANGLE_ALL};
    struct dense d = {0};
    struct sides s = {0};
    struct job job = {0};
    smelt_array *made = NULL;
    if (!x) return fail(SMELT_ERROR_INVALID_ARGUMENT, "solve: x is NULL");
    smelt_tape_pause();
    smelt_status status = begin("solve", a, b, desc, &s, &d, &job);
    if (status == SMELT_OK && d.rows != d.columns)
        status = fail(SMELT_ERROR_INVALID_ARGUMENT, "solve: a has shape %s, expected square matrices",
                      shape_print(&d.shape).text);
    job.lu.tolerance = d.desc.tolerance;
    if (status == SMELT_OK) status = lu_create(&d, &job.lu);
    if (status == SMELT_OK && job.x->size) status = dense_run(&d, &method, &job);
    if (status == SMELT_OK) status = finish(&d, &job, &s, &made);
    smelt_linalg_desc kept = d.desc;
    end(&s, &d, &job);
    smelt_tape_resume();
    if (status == SMELT_OK) status = gradient_record_solve(&kept, a, b, made);
    if (status == SMELT_OK)
        *x = made;
    else
        smelt_array_release(made);
    return status;
}

smelt_status smelt_lstsq(smelt_array *a, smelt_array *b, const smelt_linalg_desc *desc, smelt_array **x) {
    static const struct dense_method method = {least_compute,
                                               least_repair,
                                               "the diagonal element of r in column",
                                               "a magnitude above the tolerance: the columns are dependent",
                                               CODE_TINY,
                                               TRIANGLE_ALL};
    struct dense d = {0};
    struct sides s = {0};
    struct job job = {0};
    smelt_array *made = NULL;
    if (!x) return fail(SMELT_ERROR_INVALID_ARGUMENT, "lstsq: x is NULL");
    if (desc && desc->on_failure == SMELT_LINALG_JITTER)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "lstsq: on_failure is jitter, which only square matrices take; "
                    "expected error, fallback or ignore");
    smelt_tape_pause();
    smelt_status status = begin("lstsq", a, b, desc, &s, &d, &job);
    job.tolerance = d.desc.tolerance;
    if (status == SMELT_OK && job.x->size && job.b->size)
        status = dense_run(&d, &method, &job);
    else if (status == SMELT_OK && job.x->size)
        status = array_fill_on(job.x, d.desc.stream, 0);
    if (status == SMELT_OK) status = finish(&d, &job, &s, &made);
    smelt_linalg_desc kept = d.desc;
    end(&s, &d, &job);
    smelt_tape_resume();
    if (status == SMELT_OK) status = gradient_record_lstsq(&kept, a, b, made);
    if (status == SMELT_OK)
        *x = made;
    else
        smelt_array_release(made);
    return status;
}

/* ---- Triangles. */

static smelt_status swap_last(smelt_array *x, smelt_array **result) {
    int64_t strides[SMELT_MAX_DIMENSIONS];
    smelt_shape shape = x->shape;
    int last = shape.ndim - 1;
    memcpy(strides, x->strides, sizeof strides);
    shape.size[last] = x->shape.size[last - 1], shape.size[last - 1] = x->shape.size[last];
    strides[last] = x->strides[last - 1], strides[last - 1] = x->strides[last];
    return smelt_array_view(x, shape, strides, 0, result);
}

static smelt_status solve_triangle(struct dense *d, struct job *job, const smelt_linalg_desc *desc,
                                   bool transpose) {
    int64_t n = d->rows;
    if (d->dtype != SMELT_FLOAT64) {
        TRY(dense_clear(d));
        TRY(copy_b(d, job, n));
        return dense_triangular(d, d->a, n, n, desc->upper, transpose, desc->unit, job->x, job->k);
    }
    for (int64_t b = 0; b < d->batch; b++) {
        double *x;
        TRY(read_b(d, job, b, &x));
        reference_triangular((const double *)d->a->data + b * n * n, n, desc->upper, transpose, desc->unit, x,
                             job->k);
        smelt_status status = dense_store(d, job->x, b, x);
        free(x);
        if (status != SMELT_OK) return status;
    }
    return SMELT_OK;
}

/* A diagonal element that is 0 or not finite, on the host. */
static smelt_status check_diagonal(struct dense *d, const smelt_linalg_desc *desc) {
    static const struct dense_method method = {.what = "the diagonal element",
                                               .expected =
                                                   "a magnitude above the tolerance: the matrix is singular"};
    smelt_array *diagonal = NULL, *here = NULL, *wide = NULL;
    int64_t n = d->rows;
    smelt_status status = smelt_array_view(d->a, (smelt_shape){.ndim = 2, .size = {d->batch, n}},
                                           (int64_t[]){n * n, n + 1}, 0, &diagonal);
    if (status == SMELT_OK) status = smelt_array_to(diagonal, "cpu", d->desc.stream, &here);
    if (status == SMELT_OK) status = smelt_array_convert(here, SMELT_FLOAT64, &wide);
    for (int64_t i = 0; i < d->batch * n && status == SMELT_OK; i++) {
        double value = ((const double *)wide->data)[i];
        if (isfinite(value) && (desc->unit || value != 0)) continue;
        if (d->desc.report)
            d->desc.report->failed = 1, d->desc.report->matrix = i / n, d->desc.report->index = i % n,
            d->desc.report->value = value;
        status = dense_refuse(d, &method, i / n, CODE_TINY, i % n, value);
    }
    smelt_array_release(diagonal);
    smelt_array_release(here);
    smelt_array_release(wide);
    return status;
}

static smelt_status triangular(smelt_array *a, smelt_array *b, const smelt_linalg_desc *desc, struct sides *s,
                               struct dense *d, struct job *job, smelt_array **made) {
    smelt_array *flipped = NULL, *x = NULL;
    /* x a = b is aᵀ xᵀ = bᵀ. */
    if (desc->right) {
        if (b && b->shape.ndim < 2)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "triangular_solve: b has shape %s, expected at least 2 dimensions with `right`",
                        shape_print(&b->shape).text);
        if (!b) return fail(SMELT_ERROR_INVALID_ARGUMENT, "triangular_solve: b is NULL");
        TRY(swap_last(b, &flipped));
    }
    smelt_status status = begin("triangular_solve", a, desc->right ? flipped : b, desc, s, d, job);
    if (status == SMELT_OK && d->rows != d->columns)
        status =
            fail(SMELT_ERROR_INVALID_ARGUMENT, "triangular_solve: a has shape %s, expected square matrices",
                 shape_print(&d->shape).text);
    if (status == SMELT_OK && job->x->size && desc->on_failure == SMELT_LINALG_ERROR)
        status = check_diagonal(d, desc);
    if (status == SMELT_OK && job->x->size)
        status = solve_triangle(d, job, desc, desc->transpose != desc->right);
    if (status == SMELT_OK) status = finish(d, job, s, desc->right ? &x : made);
    if (status == SMELT_OK && desc->right) {
        smelt_array *view = NULL;
        status = swap_last(x, &view);
        if (status == SMELT_OK) status = smelt_array_contiguous(view, made);
        smelt_array_release(view);
    }
    smelt_array_release(x);
    smelt_array_release(flipped);
    return status;
}

smelt_status smelt_triangular_solve(smelt_array *a, smelt_array *b, const smelt_linalg_desc *desc,
                                    smelt_array **x) {
    struct dense d = {0};
    struct sides s = {0};
    struct job job = {0};
    smelt_array *made = NULL;
    smelt_linalg_desc own = desc ? *desc : (smelt_linalg_desc){0};
    if (!x) return fail(SMELT_ERROR_INVALID_ARGUMENT, "triangular_solve: x is NULL");
    if (own.on_failure == SMELT_LINALG_JITTER || own.on_failure == SMELT_LINALG_FALLBACK)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "triangular_solve: on_failure is %d, expected error or ignore", (int)own.on_failure);
    smelt_tape_pause();
    smelt_status status = triangular(a, b, &own, &s, &d, &job, &made);
    end(&s, &d, &job);
    smelt_tape_resume();
    if (status == SMELT_OK) status = gradient_record_triangular(&own, a, b, made);
    if (status == SMELT_OK)
        *x = made;
    else
        smelt_array_release(made);
    return status;
}
