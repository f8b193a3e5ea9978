/* QR factorisation: small matrices by one kernel, others by panels. */
#include "linalg/gradient.h"
#include "linalg/health.h"
#include "linalg/kernels.h"
#include "linalg/limbs.h"
#include "linalg/reference.h"
#include "ops/program.h"
#include "smelt/ops.h"

#include <math.h>
#include <stdlib.h>

#define SMALL 64

struct job {
    smelt_array *q, *r; /* q NULL: it is not wanted */
    bool wants_q;
    int64_t middle; /* columns of q, rows of r */
    double tolerance;
};

static smelt_status factor_small(struct dense *d, const struct job *job) {
    struct {
        uint32_t rows, columns, rank, wants_q, q_columns;
        float tolerance;
    } size = {
        (uint32_t)d->rows, (uint32_t)d->columns,  (uint32_t)(d->rows < d->columns ? d->rows : d->columns),
        job->wants_q,      (uint32_t)job->middle, (float)job->tolerance};
    smelt_dispatch_desc dispatch = {.buffers = {{.array = d->a},
                                                {.array = job->wants_q ? job->q : job->r},
                                                {.array = job->r},
                                                {.array = d->flags},
                                                {.array = d->stats},
                                                {.bytes = &size, .size = sizeof size}},
                                    .groups = {d->batch, 1, 1},
                                    .threadgroup = {256, 1, 1}};
    d->measured = true;
    return dense_launch(d, KERNEL_QR_SMALL, 0, &dispatch);
}

/* q = I, of which the columns are then reflected. */
static smelt_status form_q(struct dense *d, const struct job *job, const struct panels *p) {
    TRY(dense_identity(d, job->q));
    return panels_apply(d, p, false, true, job->q, job->middle);
}

static smelt_status factor_panels(struct dense *d, struct job *job) {
    struct panels p = {0};
    int64_t m = d->rows, n = d->columns;
    TRY(dense_measure(d, TRIANGLE_ALL));
    smelt_status status = panels_factor(d, d->a, m, n, job->tolerance, &p);
    if (status == SMELT_OK)
        status = dense_copy(d, p.w, job->r,
                            &(struct copy_size){.rows = (uint32_t)job->middle,
                                                .columns = (uint32_t)n,
                                                .triangle = TRIANGLE_UPPER,
                                                .clear = CLEARS,
                                                .from_matrix = m * n,
                                                .from_row = n,
                                                .to_matrix = job->middle * n,
                                                .to_row = n});
    if (status == SMELT_OK && job->wants_q) status = form_q(d, job, &p);
    panels_release(&p);
    return status;
}

static smelt_status compute(struct dense *d, void *context) {
    struct job *job = context;
    TRY(dense_clear(d));
    d->measured = false;
    return d->rows <= SMALL && d->columns <= SMALL ? factor_small(d, job) : factor_panels(d, job);
}

static smelt_status repair(struct dense *d, void *context, int64_t matrix, double *a, int64_t *failed,
                           double *value) {
    struct job *job = context;
    int64_t m = d->rows, n = d->columns, rank = m < n ? m : n, k = job->middle;
    size_t bytes = (size_t)(rank + m * k + k * n + 1) * sizeof(double);
    double *tau = calloc(1, bytes);
    if (!tau) return fail_out_of_memory(bytes);
    double *q = tau + rank, *r = q + m * k;
    smelt_status status = SMELT_OK;
    if (d->dtype == SMELT_FLOAT64 || !lapack_qr(a, m, n, tau)) reference_qr_factor(a, m, n, tau);
    double largest = 0;
    for (int64_t i = 0; i < rank; i++) largest = fabs(a[i * n + i]) > largest ? fabs(a[i * n + i]) : largest;
    for (int64_t i = rank - 1; i >= 0; i--) {
        double size = fabs(a[i * n + i]);
        if (isfinite(size) &&
            !(job->tolerance >= 0 && d->dtype == SMELT_FLOAT64 && size <= job->tolerance * largest))
            continue;
        *failed = i;
        *value = a[i * n + i];
    }
    reference_qr_form(a, m, n, tau, rank, q, k);
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = i; j < n; j++) r[i * n + j] = a[i * n + j];
    if (job->wants_q) status = dense_store(d, job->q, matrix, q);
    if (status == SMELT_OK) status = dense_store(d, job->r, matrix, r);
    free(tau);
    return status;
}

static smelt_status factor(struct dense *d, struct job *job) {
    static const struct dense_method method = {
        compute,
        repair,
        "the diagonal element of r in column",
        "a magnitude above the tolerance: the column depends on those before it",
        CODE_TINY,
        TRIANGLE_ALL};
    smelt_dtype dtype = d->dtype == SMELT_FLOAT64 ? SMELT_FLOAT64 : SMELT_FLOAT32;
    if (job->wants_q) TRY(dense_create(d, dtype, d->batch, d->rows, job->middle, &job->q));
    TRY(dense_create(d, dtype, d->batch, job->middle, d->columns, &job->r));
    if (d->a->size)
        return d->desc.precision == SMELT_LINALG_EXTENDED
                   ? limbs_qr(d, &method, job, job->tolerance, job->q, job->r)
                   : dense_run(d, &method, job);
    /* Nothing to reflect: q is that of I. */
    double *eye = calloc((size_t)(d->rows * job->middle) + 1, sizeof *eye);
    smelt_status status = eye ? SMELT_OK : fail_out_of_memory(1);
    for (int64_t i = 0; eye && i < d->rows && i < job->middle; i++) eye[i * (job->middle + 1)] = 1;
    for (int64_t b = 0; b < d->batch && job->q && job->q->size && status == SMELT_OK; b++)
        status = dense_store(d, job->q, b, eye);
    free(eye);
    return status;
}

smelt_status smelt_qr(smelt_array *a, const smelt_linalg_desc *desc, smelt_array **q, smelt_array **r) {
    struct dense d = {0};
    struct job job = {.wants_q = q != NULL};
    smelt_array *made[2] = {0};
    if (!r) return fail(SMELT_ERROR_INVALID_ARGUMENT, "qr: r is NULL");
    smelt_tape_pause();
    smelt_status status = dense_begin("qr", a, desc, &d);
    if (status == SMELT_OK) {
        job.middle = d.desc.complete || d.rows < d.columns ? d.rows : d.columns;
        job.tolerance = d.desc.tolerance > 0 ? d.desc.tolerance : -1;
        status = factor(&d, &job);
    }
    if (status == SMELT_OK && q) {
        status = dense_finish(&d, job.q, d.rows, job.middle, d.dtype, &made[0]);
        job.q = NULL;
    }
    if (status == SMELT_OK) {
        status = dense_finish(&d, job.r, job.middle, d.columns, d.dtype, &made[1]);
        job.r = NULL;
    }
    smelt_array_release(job.q);
    smelt_array_release(job.r);
    dense_end(&d);
    smelt_tape_resume();
    if (status == SMELT_OK) status = gradient_record_qr(&d.desc, a, made[0], made[1]);
    if (status != SMELT_OK) {
        smelt_array_release(made[0]);
        smelt_array_release(made[1]);
        return status;
    }
    if (q) *q = made[0];
    *r = made[1];
    return SMELT_OK;
}
