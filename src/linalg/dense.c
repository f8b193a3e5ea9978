/* The arrays of a call: checks, conversion, results. */
#include "array/dtype.h"
#include "base/reserved.h"
#include "linalg/dense.h"
#include "ops/expression.h"
#include "ops/program.h"

#include <stdlib.h>
#include <string.h>

static bool is_float(smelt_dtype dtype) {
    return dtype == SMELT_FLOAT32 || dtype == SMELT_FLOAT16 || dtype == SMELT_BFLOAT16 ||
           dtype == SMELT_FLOAT64;
}

static smelt_status check_matrix(const char *name, const smelt_array *a) {
    if (!a) return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: a is NULL", name);
    if (!is_float(a->dtype))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: a has dtype %s, expected float32, float16, bfloat16 or float64", name,
                    smelt_dtype_name(a->dtype));
    if (a->shape.ndim < 2)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: a has shape %s, expected at least 2 dimensions", name,
                    shape_print(&a->shape).text);
    for (int i = 1; i <= 2; i++)
        if (a->shape.size[a->shape.ndim - i] > INT32_MAX)
            return fail(SMELT_ERROR_LIMIT, "%s: a has shape %s, expected sides of at most %d", name,
                        shape_print(&a->shape).text, INT32_MAX);
    return SMELT_OK;
}

static smelt_status check_desc(const char *name, const smelt_linalg_desc *desc) {
    TRY(reserved_check(smelt_linalg_desc, desc));
    if ((unsigned)desc->on_failure > SMELT_LINALG_IGNORE)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: on_failure is %d, expected a smelt_linalg_policy",
                    name, (int)desc->on_failure);
    if ((unsigned)desc->precision > SMELT_LINALG_EXTENDED)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: precision is %d, expected a smelt_linalg_precision",
                    name, (int)desc->precision);
    if (!(desc->jitter >= 0) || !(desc->tolerance >= 0) || desc->attempts < 0)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "%s: jitter is %g, tolerance %g and attempts %d, expected numbers of at least 0", name,
                    desc->jitter, desc->tolerance, desc->attempts);
    return SMELT_OK;
}

smelt_status dense_place(const struct dense *d, smelt_array *array, smelt_array **result) {
    struct expression e = {.device = d->device, .stream = d->desc.stream};
    smelt_dtype dtype = d->dtype == SMELT_FLOAT64 ? SMELT_FLOAT64 : SMELT_FLOAT32;
    smelt_array *placed = NULL, *here = NULL;
    TRY(smelt_array_to(array, d->host ? "cpu" : d->device, d->desc.stream, &here));
    smelt_status status = expr_close(&e, expr_astype(&e, here, dtype), &placed);
    smelt_array_release(here);
    if (status != SMELT_OK) return status;
    status = smelt_array_contiguous(placed, result);
    smelt_array_release(placed);
    return status;
}

smelt_status dense_create(const struct dense *d, smelt_dtype dtype, int64_t batch, int64_t rows,
                          int64_t columns, smelt_array **array) {
    return program_output(d->device, d->desc.stream, dtype,
                          &(smelt_shape){.ndim = 3, .size = {batch, rows, columns}}, array);
}

int64_t dense_pitch(const struct dense *d, int64_t columns) {
    return d->host && columns % 128 == 0 ? columns + 16 : columns;
}

smelt_status dense_create_flags(struct dense *d) {
    smelt_shape flags = {.ndim = 2, .size = {d->batch, FLAG_COUNT}},
                stats = {.ndim = 2, .size = {d->batch, STAT_COUNT}};
    TRY(program_output(d->device, d->desc.stream, SMELT_FLOAT32, &flags, &d->flags));
    return program_output(d->device, d->desc.stream, SMELT_UINT32, &stats, &d->stats);
}

smelt_status dense_finish(const struct dense *d, smelt_array *made, int64_t rows, int64_t columns,
                          smelt_dtype dtype, smelt_array **result) {
    struct expression e = {.device = d->device, .stream = d->desc.stream};
    smelt_shape shape = d->shape;
    if (columns >= 0) {
        shape.size[shape.ndim - 2] = rows;
        shape.size[shape.ndim - 1] = columns;
    } else {
        shape.size[shape.ndim - 2] = rows;
        shape.ndim--;
    }
    expr_keep(&e, made);
    smelt_array *value = expr_reshape(&e, made, &shape);
    if (value && value->dtype != dtype) value = expr_astype(&e, value, dtype);
    return expr_close(&e, value, result);
}

smelt_status dense_store(const struct dense *d, smelt_array *to, int64_t matrix, const double *values) {
    smelt_array *wide = NULL, *part = NULL;
    smelt_shape one = to->shape;
    one.size[0] = 1;
    int64_t elements = shape_product(&one);
    smelt_status status = smelt_array_from_values(SMELT_FLOAT64, one, values, &wide);
    if (status == SMELT_OK) status = smelt_array_view(to, one, to->strides, matrix * elements, &part);
    if (status == SMELT_OK) status = smelt_array_copy(part, wide);
    (void)d;
    smelt_array_release(wide);
    smelt_array_release(part);
    return status;
}

smelt_status dense_begin(const char *name, smelt_array *a, const smelt_linalg_desc *desc, struct dense *d) {
    static const smelt_linalg_desc none = {0};
    *d = (struct dense){.name = name, .desc = desc ? *desc : none};
    TRY(check_desc(name, &d->desc));
    if (d->desc.report) *d->desc.report = (smelt_linalg_report){.matrix = -1, .index = -1};
    TRY(check_matrix(name, a));
    d->shape = a->shape;
    d->dtype = a->dtype;
    d->device = a->dtype == SMELT_FLOAT64 ? "cpu" : program_device(d->desc.device, &a, 1);
    d->host = program_is_host(d->device);
    d->rows = a->shape.size[a->shape.ndim - 2];
    d->columns = a->shape.size[a->shape.ndim - 1];
    d->batch = 1;
    for (int i = 0; i < a->shape.ndim - 2; i++) d->batch *= a->shape.size[i];
    if (d->batch >= MOST_MATRICES)
        return fail(SMELT_ERROR_LIMIT, "%s: a has shape %s, expected fewer than %d matrices", name,
                    shape_print(&a->shape).text, MOST_MATRICES);
    if (d->desc.report) d->desc.report->matrices = d->batch;
    TRY(dense_place(d, a, &d->a));
    if (d->dtype == SMELT_FLOAT64 || !d->a->size) return SMELT_OK;
    return dense_create_flags(d);
}

void dense_end(struct dense *d) {
    smelt_array_release(d->a);
    smelt_array_release(d->wide);
    smelt_array_release(d->rest);
    smelt_array_release(d->flags);
    smelt_array_release(d->stats);
    smelt_array_release(d->jitter);
    free(d->shift);
}
