#include "linalg/limbs.h"
#include "base/reserved.h"
#include "linalg/kernels.h"
#include "ops/expression.h"
#include "ops/program.h"
#include "smelt/autodiff.h"

#include <stdlib.h>

/* ---- Planes: the nearest floats of matrices (batch, rows, columns), then what remains of each. */

struct job {
    const struct dense_method *method; /* whose repair is used */
    void *context;
    smelt_array *planes, *q_planes, *tau;
    smelt_array *results[2];
    double tolerance;
};

struct limb_size {
    uint32_t rows, columns, rank, middle, jitter, upper, wants_q;
    float tolerance;
    int64_t plane;
};

static smelt_status create_planes(const struct dense *d, int64_t rows, int64_t columns,
                                  smelt_array **planes) {
    return dense_create(d, SMELT_FLOAT32, 2 * d->batch, rows, columns, planes);
}

/* One plane as matrices. */
static smelt_status plane_of(const struct dense *d, smelt_array *planes, int which, smelt_array **plane) {
    smelt_shape shape = planes->shape;
    shape.size[0] = d->batch;
    return smelt_array_view(planes, shape, planes->strides, which * planes->size / 2, plane);
}

/* a, or aᵀ, as planes. What remains of float64 is kept in d->rest. */
static smelt_status fill_planes(const struct dense *d, smelt_array *planes, bool transpose) {
    smelt_array *plane = NULL;
    struct copy_size size = {.rows = (uint32_t)d->rows,
                             .columns = (uint32_t)d->columns,
                             .transpose = transpose,
                             .from_matrix = d->rows * d->columns,
                             .from_row = d->columns,
                             .to_matrix = d->rows * d->columns,
                             .to_row = transpose ? d->rows : d->columns};
    TRY(dense_copy(d, d->a, planes, &size));
    if (d->rest) {
        size.to_first = planes->size / 2;
        return dense_copy(d, d->rest, planes, &size);
    }
    TRY(plane_of(d, planes, 1, &plane));
    smelt_status status = array_fill_on(plane, d->desc.stream, 0);
    smelt_array_release(plane);
    return status;
}

/* Splits a float64 a, on the host, in two floats for each element; flags and statistics as for float32. */
static smelt_status split(struct dense *d) {
    if (d->dtype != SMELT_FLOAT64) return SMELT_OK;
    smelt_array *nearest = NULL;
    d->wide = d->a;
    d->a = NULL;
    TRY(smelt_array_convert(d->wide, SMELT_FLOAT32, &nearest));
    d->a = nearest;
    TRY(smelt_array_create(SMELT_FLOAT32, nearest->shape, &d->rest));
    for (int64_t i = 0; i < nearest->size; i++)
        ((float *)d->rest->data)[i] =
            (float)(((double *)d->wide->data)[i] - (double)((float *)nearest->data)[i]);
    return dense_create_flags(d);
}

/* A result (batch, rows, columns) from planes of its shape, or of its transpose. */
static smelt_status join(const struct dense *d, smelt_array *planes, bool transpose, uint32_t triangle,
                         smelt_array *to) {
    int64_t rows = planes->shape.size[1], columns = planes->shape.size[2], out = to->shape.size[1],
            across = to->shape.size[2];
    if (to->dtype == SMELT_FLOAT32) /* of the first rows or columns */
        return dense_copy(d, planes, to,
                          &(struct copy_size){.rows = (uint32_t)(transpose ? across : out),
                                              .columns = (uint32_t)(transpose ? out : across),
                                              .transpose = transpose,
                                              .triangle = triangle,
                                              .clear = CLEARS,
                                              .from_matrix = rows * columns,
                                              .from_row = columns,
                                              .to_matrix = out * across,
                                              .to_row = across});
    const float *values = (const float *)planes->data;
    for (int64_t b = 0; b < d->batch; b++)
        for (int64_t i = 0; i < out; i++)
            for (int64_t j = 0; j < across; j++) {
                int64_t at = b * rows * columns + (transpose ? j * columns + i : i * columns + j);
                bool kept = triangle != TRIANGLE_UPPER || i <= j;
                ((double *)to->data)[(b * out + i) * across + j] =
                    kept ? (double)values[at] + (double)values[at + planes->size / 2] : 0;
            }
    return SMELT_OK;
}

static void release(struct job *job) {
    smelt_array_release(job->planes);
    smelt_array_release(job->q_planes);
    smelt_array_release(job->tau);
}

static smelt_status repair(struct dense *d, void *context, int64_t matrix, double *a, int64_t *failed,
                           double *value) {
    struct job *job = context;
    return job->method->repair(d, job->context, matrix, a, failed, value);
}

/* Runs it with compute() in place of the method's own. */
static smelt_status run(struct dense *d, struct job *job, smelt_status (*compute)(struct dense *, void *)) {
    struct dense_method own = *job->method;
    own.compute = compute;
    own.repair = repair;
    return dense_run(d, &own, job);
}

/* ---- Cholesky. */

static smelt_status compute_cholesky(struct dense *d, void *context) {
    struct job *job = context;
    struct limb_size size = {.rows = (uint32_t)d->rows,
                             .columns = (uint32_t)d->rows,
                             .jitter = d->jitter != NULL,
                             .upper = d->desc.upper,
                             .plane = job->planes->size / 2};
    smelt_dispatch_desc dispatch = {.buffers = {{.array = job->planes},
                                                {.array = d->flags},
                                                {.array = d->jitter ? d->jitter : d->flags},
                                                {.bytes = &size, .size = sizeof size}},
                                    .groups = {d->batch, 1, 1},
                                    .threadgroup = {256, 1, 1}};
    d->measured = false;
    TRY(dense_clear(d));
    if (d->desc.symmetric) {
        TRY(dense_measure(d, TRIANGLE_ALL));
        TRY(dense_symmetry(d));
    }
    TRY(fill_planes(d, job->planes, false));
    TRY(dense_launch(d, KERNEL_LIMB_CHOLESKY, 0, &dispatch));
    return join(d, job->planes, false, TRIANGLE_ALL, job->results[0]);
}

smelt_status limbs_cholesky(struct dense *d, const struct dense_method *method, void *context,
                            smelt_array *l) {
    struct job job = {.method = method, .context = context, .results = {l}};
    smelt_status status = split(d);
    if (status == SMELT_OK) status = create_planes(d, d->rows, d->rows, &job.planes);
    if (status == SMELT_OK) status = run(d, &job, compute_cholesky);
    release(&job);
    return status;
}

/* ---- QR. */

static smelt_status compute_qr(struct dense *d, void *context) {
    struct job *job = context;
    int64_t m = d->rows, n = d->columns, middle = job->results[1]->shape.size[1];
    struct limb_size size = {.rows = (uint32_t)m,
                             .columns = (uint32_t)n,
                             .rank = (uint32_t)(m < n ? m : n),
                             .middle = (uint32_t)middle,
                             .wants_q = job->results[0] != NULL,
                             .tolerance = (float)job->tolerance,
                             .plane = job->planes->size / 2};
    /* Both planes are as far apart: q's are padded. */
    smelt_dispatch_desc dispatch = {.buffers = {{.array = job->planes},
                                                {.array = job->q_planes ? job->q_planes : job->planes},
                                                {.array = d->flags},
                                                {.array = job->tau},
                                                {.bytes = &size, .size = sizeof size},
                                                {.array = d->stats}},
                                    .groups = {d->batch, 1, 1},
                                    .threadgroup = {256, 1, 1}};
    d->measured = false;
    TRY(dense_clear(d));
    TRY(dense_measure(d, TRIANGLE_ALL));
    TRY(fill_planes(d, job->planes, true));
    TRY(dense_launch(d, KERNEL_LIMB_QR, 0, &dispatch));
    TRY(join(d, job->planes, true, TRIANGLE_UPPER, job->results[1]));
    return job->results[0] ? join(d, job->q_planes, true, TRIANGLE_ALL, job->results[0]) : SMELT_OK;
}

smelt_status limbs_qr(struct dense *d, const struct dense_method *method, void *context, double tolerance,
                      smelt_array *q, smelt_array *r) {
    struct job job = {.method = method, .context = context, .tolerance = tolerance, .results = {q, r}};
    int64_t m = d->rows, n = d->columns, middle = r->shape.size[1], widest = n > middle ? n : middle;
    smelt_status status = split(d);
    if (status == SMELT_OK) status = create_planes(d, widest, m, &job.planes);
    if (status == SMELT_OK && q) status = create_planes(d, widest, m, &job.q_planes);
    if (status == SMELT_OK) status = dense_create(d, SMELT_FLOAT32, d->batch, m < n ? m : n, 2, &job.tau);
    if (status == SMELT_OK) status = run(d, &job, compute_qr);
    release(&job);
    return status;
}

/* ---- Dot products. */

static smelt_status dot_vjp(void *context, smelt_array *const *inputs, smelt_array *const *outputs,
                            smelt_array *const *cotangents, smelt_array **gradients) {
    (void)context, (void)outputs;
    for (int i = 0; i < 2; i++) {
        struct expression e = {0};
        smelt_shape shape = cotangents[0]->shape;
        shape.size[shape.ndim++] = 1;
        smelt_array *g =
            expr_binary(&e, SMELT_OPERATION_MULTIPLY, expr_reshape(&e, cotangents[0], &shape), inputs[1 - i]);
        g = g ? expr_sum_to(&e, g, &inputs[i]->shape) : NULL;
        smelt_status status = expr_close(&e, g ? expr_astype(&e, g, inputs[i]->dtype) : NULL, &gradients[i]);
        if (status != SMELT_OK) return status;
    }
    return SMELT_OK;
}

static smelt_status check_vectors(const smelt_array *x, const smelt_array *y, smelt_array **result) {
    if (!x || !y || !result)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "dot: %s is NULL", !x ? "x" : !y ? "y" : "result");
    for (int i = 0; i < 2; i++) {
        const smelt_array *array = i ? y : x;
        if (array->dtype != SMELT_FLOAT32 && array->dtype != SMELT_FLOAT16 && array->dtype != SMELT_BFLOAT16)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "dot: %s has dtype %s, expected float32, float16 or bfloat16", i ? "y" : "x",
                        smelt_dtype_name(array->dtype));
        if (!array->shape.ndim)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "dot: %s has no dimensions", i ? "y" : "x");
    }
    int64_t count = x->shape.size[x->shape.ndim - 1], other = y->shape.size[y->shape.ndim - 1];
    if (count != other)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "dot: x has %lld elements in its last dimension, y %lld, expected as many",
                    (long long)count, (long long)other);
    if (count > UINT32_MAX / 64)
        return fail(SMELT_ERROR_LIMIT, "dot: x and y have %lld terms, expected at most %d", (long long)count,
                    (int)(UINT32_MAX / 64));
    return SMELT_OK;
}

static smelt_status native_dot(smelt_array *x, smelt_array *y, const char *device, smelt_stream *stream,
                               smelt_array **result) {
    struct expression e = {.device = device, .stream = stream};
    smelt_array *terms = expr_binary(&e, SMELT_OPERATION_MULTIPLY, expr_astype(&e, x, SMELT_FLOAT32),
                                     expr_astype(&e, y, SMELT_FLOAT32));
    smelt_array *sum = NULL;
    if (terms)
        sum = expr_reduce(&e, SMELT_OPERATION_SUM, terms, UINT32_C(1) << (terms->shape.ndim - 1), false);
    return expr_close(&e, sum, result);
}

/* Of rows that are broadcast and contiguous. */
static smelt_status launch_dot(const struct dense *d, smelt_array *const rows[2], smelt_array *out) {
    uint32_t count = (uint32_t)rows[0]->shape.size[rows[0]->shape.ndim - 1];
    smelt_dispatch_desc dispatch = {.buffers = {{.array = rows[0]},
                                                {.array = rows[1]},
                                                {.array = out},
                                                {.bytes = &count, .size = sizeof count}},
                                    .groups = {out->size, 1, 1},
                                    .threadgroup = {32, 1, 1}};
    if (!out->size) return SMELT_OK;
    return count ? dense_launch(d, KERNEL_LIMB_DOT, 0, &dispatch) : array_fill_on(out, d->desc.stream, 0);
}

static smelt_status extended_dot(smelt_array *x, smelt_array *y, const struct dense *d,
                                 smelt_array **result) {
    smelt_shape shapes[2] = {x->shape, y->shape}, shape;
    smelt_array *wide[2] = {0}, *rows[2] = {0}, *out = NULL;
    smelt_status status = smelt_result_shape(shapes, 2, &shape);
    for (int i = 0; i < 2 && status == SMELT_OK; i++) {
        status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_BROADCAST_TO,
                                                 .inputs = {i ? y : x},
                                                 .shape = shape,
                                                 .device = d->device},
                             &wide[i]);
        if (status == SMELT_OK) status = dense_place(d, wide[i], &rows[i]);
    }
    shape.ndim--;
    if (status == SMELT_OK) status = program_output(d->device, d->desc.stream, SMELT_FLOAT32, &shape, &out);
    if (status == SMELT_OK) status = launch_dot(d, rows, out);
    for (int i = 0; i < 2; i++) {
        smelt_array_release(wide[i]);
        smelt_array_release(rows[i]);
    }
    if (status == SMELT_OK)
        *result = out;
    else
        smelt_array_release(out);
    return status;
}

smelt_status smelt_dot(smelt_array *x, smelt_array *y, const smelt_linalg_desc *desc, smelt_array **result) {
    struct dense d = {.name = "dot", .dtype = SMELT_FLOAT32, .batch = 1};
    smelt_array *made = NULL;
    TRY(check_vectors(x, y, result));
    if (desc) {
        TRY(reserved_check(smelt_linalg_desc, desc));
        d.desc = *desc;
    }
    d.device = program_device(d.desc.device, (smelt_array *[]){x, y}, 2);
    d.host = program_is_host(d.device);
    if (d.desc.report) *d.desc.report = (smelt_linalg_report){.matrix = -1, .index = -1};
    if (d.desc.flags) *d.desc.flags = NULL;
    if (d.desc.precision == SMELT_LINALG_NATIVE)
        return native_dot(x, y, d.desc.device, d.desc.stream, result);
    smelt_tape_pause();
    smelt_status status = extended_dot(x, y, &d, &made);
    smelt_tape_resume();
    if (status == SMELT_OK)
        status = smelt_tape_record(&(smelt_record_desc){.name = "dot",
                                                        .inputs = (smelt_array *[]){x, y},
                                                        .input_count = 2,
                                                        .outputs = &made,
                                                        .output_count = 1,
                                                        .vjp = dot_vjp});
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}
