/* The arguments of a call: the common dtype and shape of its inputs, its axes. */
#include "array/dtype.h"
#include "ops/operation.h"
#include "ops/program.h"

/* ---- Dtypes. */

enum rank { RANK_BOOL, RANK_INTEGER, RANK_FLOAT, RANK_COMPLEX };

static enum rank rank_of(smelt_dtype dtype) {
    if (dtype == SMELT_BOOL) return RANK_BOOL;
    if (dtype_is_integer(dtype)) return RANK_INTEGER;
    return dtype == SMELT_COMPLEX64 ? RANK_COMPLEX : RANK_FLOAT;
}

static smelt_dtype signed_of(size_t bytes) {
    return bytes == 1 ? SMELT_INT8 : bytes == 2 ? SMELT_INT16 : bytes == 4 ? SMELT_INT32 : SMELT_INT64;
}

static smelt_dtype join_integers(smelt_dtype a, smelt_dtype b) {
    size_t a_bytes = smelt_dtype_bytes(a), b_bytes = smelt_dtype_bytes(b);
    if (dtype_is_signed(a) == dtype_is_signed(b)) return a_bytes >= b_bytes ? a : b;
    size_t unsigned_bytes = dtype_is_signed(a) ? b_bytes : a_bytes;
    size_t signed_bytes = dtype_is_signed(a) ? a_bytes : b_bytes;
    if (signed_bytes > unsigned_bytes) return signed_of(signed_bytes);
    return unsigned_bytes < 8 ? signed_of(2 * unsigned_bytes) : SMELT_FLOAT32;
}

static smelt_dtype join(smelt_dtype a, smelt_dtype b) {
    enum rank a_rank = rank_of(a), b_rank = rank_of(b);
    if (a == b) return a;
    if (a_rank != b_rank) return a_rank > b_rank ? a : b;
    if (a_rank == RANK_INTEGER) return join_integers(a, b);
    return a == SMELT_FLOAT64 || b == SMELT_FLOAT64 ? SMELT_FLOAT64 : SMELT_FLOAT32;
}

smelt_status smelt_result_dtype(const smelt_dtype *dtypes, uint64_t weak, int count, smelt_dtype *dtype) {
    if (!dtypes || !dtype || count < 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "result dtype: %s",
                    count < 1 ? "at least one dtype is needed" : "an argument is NULL");
    smelt_dtype strong = SMELT_NO_DTYPE, soft = SMELT_NO_DTYPE;
    for (int i = 0; i < count; i++) {
        if (!smelt_dtype_bytes(dtypes[i]))
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "result dtype: dtype %d is not one of smelt_dtype",
                        (int)dtypes[i]);
        smelt_dtype *into = weak >> i & 1 ? &soft : &strong;
        *into = *into == SMELT_NO_DTYPE ? dtypes[i] : join(*into, dtypes[i]);
    }
    if (strong != SMELT_NO_DTYPE && (soft == SMELT_NO_DTYPE || rank_of(soft) <= rank_of(strong)))
        *dtype = strong;
    else if (rank_of(soft) == RANK_COMPLEX)
        *dtype = soft;
    else
        *dtype = rank_of(soft) == RANK_FLOAT     ? SMELT_FLOAT32
                 : rank_of(soft) == RANK_INTEGER ? SMELT_INT32
                                                 : SMELT_BOOL;
    return SMELT_OK;
}

smelt_status call_dtype(const struct call *call, int first, int count, smelt_dtype *dtype) {
    smelt_dtype dtypes[SMELT_MAX_ARGUMENTS];
    for (int i = 0; i < count; i++) dtypes[i] = call->inputs[first + i]->dtype;
    return smelt_result_dtype(dtypes, call->desc->weak >> first, count, dtype);
}

bool call_has_float64(const struct call *call) {
    bool found = false;
    for (int i = 0; i < call->count; i++) {
        const smelt_array *input = call->inputs[i];
        bool number = call->desc->weak >> i & 1 && input->size == 1 && !input->memory->space;
        found |= input->dtype == SMELT_FLOAT64 && !number;
    }
    return found;
}

/* ---- Shapes and axes. */

smelt_status call_join_shapes(const char *name, const smelt_shape *more, smelt_shape *shape) {
    smelt_shape joined = {.ndim = more->ndim > shape->ndim ? more->ndim : shape->ndim};
    for (int i = 1; i <= joined.ndim; i++) {
        int64_t a = i <= shape->ndim ? shape->size[shape->ndim - i] : 1;
        int64_t b = i <= more->ndim ? more->size[more->ndim - i] : 1;
        if (a != b && a != 1 && b != 1)
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "%s: shapes %s and %s cannot be broadcast: sizes %lld and %lld of dimension -%d differ", name,
                shape_print(shape).text, shape_print(more).text, (long long)a, (long long)b, i);
        joined.size[joined.ndim - i] = a == 1 ? b : a;
    }
    *shape = joined;
    return SMELT_OK;
}

smelt_status smelt_result_shape(const smelt_shape *shapes, int count, smelt_shape *shape) {
    if (!shapes || !shape) return fail(SMELT_ERROR_INVALID_ARGUMENT, "result shape: an argument is NULL");
    smelt_shape joined = {.ndim = 0};
    for (int i = 0; i < count; i++) {
        int64_t size;
        TRY(shape_check("result shape", SMELT_BOOL, &shapes[i], &size));
        TRY(call_join_shapes("result shape", &shapes[i], &joined));
    }
    *shape = joined;
    return SMELT_OK;
}

smelt_status call_shape(const struct call *call, int first, int count, smelt_shape *shape) {
    *shape = call->inputs[first]->shape;
    for (int i = 1; i < count; i++) TRY(call_join_shapes(call->name, &call->inputs[first + i]->shape, shape));
    return SMELT_OK;
}

smelt_status call_check_axes(const char *name, const int *axes, int count, int ndim, int *checked) {
    uint32_t seen = 0;
    for (int i = 0; i < count; i++) {
        int axis = axes[i] < 0 ? axes[i] + ndim : axes[i];
        if (axis < 0 || axis >= ndim)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: axis %d is out of range for %d dimensions", name,
                        axes[i], ndim);
        if (seen >> axis & 1)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: axis %d is given twice", name, axes[i]);
        seen |= UINT32_C(1) << axis;
        checked[i] = axis;
    }
    return SMELT_OK;
}

smelt_status call_axes(const struct call *call, int ndim, uint32_t *axes) {
    const smelt_apply_desc *desc = call->desc;
    int checked[2 * SMELT_MAX_DIMENSIONS];
    if (!desc->axis_count) {
        *axes = desc->no_axes ? 0 : (UINT32_C(1) << ndim) - 1;
        return SMELT_OK;
    }
    TRY(call_check_axes(call->name, desc->axes, desc->axis_count, ndim, checked));
    *axes = 0;
    for (int i = 0; i < desc->axis_count; i++) *axes |= UINT32_C(1) << checked[i];
    return SMELT_OK;
}

int64_t call_diagonal(const struct call *call, int64_t rows, int64_t columns) {
    int64_t offset = call->desc->offset;
    return offset < -rows ? -rows : offset > columns ? columns : offset;
}

smelt_status call_axis(const struct call *call, int ndim, int *axis, bool *flat) {
    *flat = call->desc->axis_count == 0;
    *axis = 0;
    if (*flat) return SMELT_OK;
    if (call->desc->axis_count != 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %d axes are given, expected one", call->name,
                    call->desc->axis_count);
    return call_check_axes(call->name, call->desc->axes, 1, ndim, axis);
}

smelt_status call_output(const struct call *call, smelt_dtype dtype, const smelt_shape *shape,
                         smelt_array **array) {
    if (call->into && call->into->dtype == dtype && shape_equal(&call->into->shape, shape)) {
        /* Once: what is created later is a temporary. */
        *array = smelt_array_retain(call->into);
        ((struct call *)call)->into = NULL;
        return SMELT_OK;
    }
    smelt_status status = program_output(call->device, call->desc->stream, dtype, shape, array);
    return status == SMELT_OK ? status : fail_within(status, "%s", call->name);
}
