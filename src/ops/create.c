/* Arrays from numbers. Filled on the host, unless one number fills them. */
#include "array/dtype.h"
#include "ops/operation.h"
#include "ops/program.h"

#include <math.h>

/* The host's array on the call's device. */
static smelt_status deliver(const struct call *call, smelt_array *made, smelt_array **result) {
    if (program_is_host(call->device)) {
        *result = made;
        return SMELT_OK;
    }
    smelt_status status = smelt_array_to(made, call->device, call->desc->stream, result);
    smelt_array_release(made);
    return status;
}

static smelt_status fill(const struct call *call, double value, smelt_array **result) {
    smelt_dtype dtype = call->desc->dtype ? call->desc->dtype : SMELT_FLOAT32;
    int64_t size;
    TRY(shape_check(call->name, dtype, &call->desc->shape, &size));
    return program_filled(call->device, call->desc->stream, dtype, &call->desc->shape, value, result);
}

static smelt_status arange(const struct call *call, smelt_array **result) {
    const double *numbers = call->desc->numbers;
    double start = numbers[0], stop = numbers[1], step = numbers[2] == 0 ? 1 : numbers[2];
    double count = ceil((stop - start) / step);
    bool whole = start == floor(start) && stop == floor(stop) && step == floor(step);
    smelt_dtype dtype = call->desc->dtype ? call->desc->dtype : whole ? SMELT_INT32 : SMELT_FLOAT32;
    smelt_array *made;
    if (!isfinite(count) || count >= 9e15)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "arange: the range from %g to %g by %g has too many elements", start, stop, step);
    TRY(smelt_array_create(dtype, (smelt_shape){1, {count > 0 ? (int64_t)count : 0}}, &made));
    size_t bytes = smelt_dtype_bytes(dtype);
    for (int64_t i = 0; i < made->size; i++)
        element_store(dtype, made->data + (size_t)i * bytes, element_of_real(start + (double)i * step));
    return deliver(call, made, result);
}

static smelt_status eye(const struct call *call, smelt_array **result) {
    const smelt_shape *shape = &call->desc->shape;
    smelt_dtype dtype = call->desc->dtype ? call->desc->dtype : SMELT_FLOAT32;
    smelt_array *made;
    if (shape->ndim != 2)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "eye: shape has %d dimensions, expected 2", shape->ndim);
    TRY(smelt_array_create(dtype, *shape, &made));
    smelt_status status = smelt_array_fill(made, 0);
    if (status != SMELT_OK) {
        smelt_array_release(made);
        return status;
    }
    size_t bytes = smelt_dtype_bytes(dtype);
    int64_t columns = shape->size[1], offset = call_diagonal(call, shape->size[0], columns);
    for (int64_t row = offset < 0 ? -offset : 0; row < shape->size[0] && row + offset < columns; row++)
        element_store(dtype, made->data + (size_t)(row * columns + row + offset) * bytes, element_of_real(1));
    return deliver(call, made, result);
}

smelt_status evaluate_create(const struct call *call, smelt_array **result) {
    switch (call->desc->operation) {
    case SMELT_OPERATION_ARANGE:
        return arange(call, result);
    case SMELT_OPERATION_EYE:
        return eye(call, result);
    case SMELT_OPERATION_ZEROS:
        return fill(call, 0, result);
    case SMELT_OPERATION_ONES:
        return fill(call, 1, result);
    default:
        return fill(call, call->desc->numbers[0], result);
    }
}
