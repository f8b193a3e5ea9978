/* Operations that put arrays into parts of a new one. */
#include "ops/map.h"
#include "ops/operation.h"

#include <string.h>

/* Returns `made`, or releases it. */
static smelt_status finish(smelt_status status, smelt_array *made, smelt_array **result) {
    if (status == SMELT_OK)
        *result = made;
    else
        smelt_array_release(made);
    return status;
}

smelt_status evaluate_concatenate(const struct call *call, smelt_array **result) {
    smelt_shape shape = call->inputs[0]->shape;
    int ndim = shape.ndim, axis = 0;
    bool flat;
    smelt_dtype dtype;
    smelt_array *made;
    TRY(call_dtype(call, 0, call->count, &dtype));
    TRY(call_axis(call, ndim, &axis, &flat));
    if (!ndim) return fail(SMELT_ERROR_INVALID_ARGUMENT, "concatenate: input 0 has no dimensions");
    for (int i = 1; i < call->count; i++) {
        const smelt_shape *more = &call->inputs[i]->shape;
        bool fits = more->ndim == ndim;
        for (int d = 0; fits && d < ndim; d++) fits = d == axis || more->size[d] == shape.size[d];
        if (!fits)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "concatenate: input %d has shape %s, which does not match %s along axis %d", i,
                        shape_print(more).text, shape_print(&call->inputs[0]->shape).text, axis);
        shape.size[axis] += more->size[axis];
    }
    TRY(call_output(call, dtype, &shape, &made));
    smelt_status status = SMELT_OK;
    int64_t before = 0;
    for (int i = 0; i < call->count && status == SMELT_OK; i++) {
        smelt_array *input = call->inputs[i];
        status = call_place(call, input, made, &input->shape, made->strides, before * made->strides[axis]);
        before += input->shape.size[axis];
    }
    return finish(status, made, result);
}

smelt_status evaluate_slice_update(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0], *updates = call->inputs[1], *made;
    smelt_shape slice;
    int64_t strides[SMELT_MAX_DIMENSIONS], offset;
    TRY(call_output(call, input->dtype, &input->shape, &made));
    smelt_status status = call_slice(call, made, &slice, strides, &offset);
    if (status == SMELT_OK && !shape_broadcasts(&updates->shape, &slice))
        status = fail(SMELT_ERROR_INVALID_ARGUMENT,
                      "slice_update: updates of shape %s cannot be broadcast to the slice's %s",
                      shape_print(&updates->shape).text, shape_print(&slice).text);
    if (status == SMELT_OK) status = call_place(call, input, made, &input->shape, made->strides, 0);
    if (status == SMELT_OK) status = call_place(call, updates, made, &slice, strides, offset);
    return finish(status, made, result);
}

smelt_status evaluate_pad(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0], *value = call->inputs[1], *made;
    smelt_shape shape = input->shape;
    int64_t offset = 0, size;
    for (int d = 0; d < shape.ndim; d++) {
        int64_t before = call->desc->starts[d], after = call->desc->stops[d];
        if (before < 0 || after < 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "pad: %lld before and %lld after dimension %d, expected >= 0", (long long)before,
                        (long long)after, d);
        if (__builtin_add_overflow(shape.size[d], before, &size) ||
            __builtin_add_overflow(size, after, &size))
            size = INT64_MAX;
        shape.size[d] = size;
    }
    if (value->size != 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "pad: the value has shape %s, expected a scalar",
                    shape_print(&value->shape).text);
    TRY(call_output(call, input->dtype, &shape, &made));
    for (int d = 0; d < shape.ndim; d++) offset += call->desc->starts[d] * made->strides[d];
    smelt_array *scalar;
    smelt_status status = smelt_array_view(value, (smelt_shape){.ndim = 0}, NULL, 0, &scalar);
    if (status == SMELT_OK) {
        status = call_place(call, scalar, made, &shape, made->strides, 0);
        smelt_array_release(scalar);
    }
    if (status == SMELT_OK) status = call_place(call, input, made, &input->shape, made->strides, offset);
    return finish(status, made, result);
}
