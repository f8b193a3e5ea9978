/* Operations whose results are views: other shapes over the same elements. */
#include "ops/map.h"
#include "ops/operation.h"

#include <string.h>

/* The strides of `shape` over an array's elements, if there are any: each new dimension must lie within old
 * ones that follow each other without a gap. */
static bool reshaped_strides(const smelt_array *array, const smelt_shape *shape, int64_t *strides) {
    const smelt_shape *old = &array->shape;
    int from = 0, to = 0;
    while (to < shape->ndim) {
        if (shape->size[to] == 1) {
            strides[to++] = 1;
            continue;
        }
        while (from < old->ndim && old->size[from] == 1) from++;
        int first_from = from, first_to = to;
        int64_t have = from < old->ndim ? old->size[from] : 1, want = shape->size[to];
        while (have != want) {
            if (have < want) {
                if (++from >= old->ndim) return false;
                have *= old->size[from];
            } else {
                if (++to >= shape->ndim) return false;
                want *= shape->size[to];
            }
        }
        int inner = from; /* of the group the innermost dimension that has more than one element */
        while (inner > first_from && old->size[inner] == 1) inner--;
        int64_t step = array->strides[inner], reach = step * old->size[inner];
        for (int d = inner - 1; d >= first_from; d--) {
            if (old->size[d] == 1) continue;
            if (array->strides[d] != reach) return false;
            reach *= old->size[d];
        }
        for (int d = to; d >= first_to; d--) {
            strides[d] = step;
            step *= shape->size[d];
        }
        from++;
        to++;
    }
    return true;
}

static smelt_status fill_in(const struct call *call, smelt_shape *shape) {
    const smelt_shape given = *shape;
    int64_t size = call->inputs[0]->size, known = 1;
    int open = -1;
    if (shape->ndim < 0 || shape->ndim > SMELT_MAX_DIMENSIONS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "reshape: ndim is %d, expected 0 to %d", shape->ndim,
                    SMELT_MAX_DIMENSIONS);
    bool fits = true;
    for (int d = 0; d < shape->ndim; d++) {
        if (shape->size[d] == -1 && open < 0)
            open = d;
        else
            fits &= shape->size[d] >= 0 && !__builtin_mul_overflow(known, shape->size[d], &known);
    }
    if (fits && open >= 0 && known > 0) shape->size[open] = size / known;
    if (fits && open >= 0 && known > 0) known *= shape->size[open];
    if (fits && known == size && (open < 0 || shape->size[open] >= 0)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "reshape: an array of shape %s with %lld elements cannot have shape %s",
                shape_print(&call->inputs[0]->shape).text, (long long)size, shape_print(&given).text);
}

smelt_status evaluate_reshape(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0], *dense;
    smelt_shape shape = call->desc->shape;
    int64_t strides[SMELT_MAX_DIMENSIONS];
    TRY(fill_in(call, &shape));
    if (!input->size) return smelt_array_view(input, shape, NULL, 0, result);
    if (reshaped_strides(input, &shape, strides)) return smelt_array_view(input, shape, strides, 0, result);
    TRY(call_contiguous(call, input, &dense));
    smelt_status status = smelt_array_view(dense, shape, NULL, 0, result);
    smelt_array_release(dense);
    return status;
}

smelt_status evaluate_transpose(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0];
    int ndim = input->shape.ndim, axes[2 * SMELT_MAX_DIMENSIONS];
    int64_t strides[SMELT_MAX_DIMENSIONS];
    smelt_shape shape = {.ndim = ndim};
    if (call->desc->axis_count) {
        if (call->desc->axis_count != ndim)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "transpose: %d axes are given for %d dimensions",
                        call->desc->axis_count, ndim);
        TRY(call_check_axes("transpose", call->desc->axes, ndim, ndim, axes));
    } else {
        for (int d = 0; d < ndim; d++) axes[d] = ndim - 1 - d;
    }
    for (int d = 0; d < ndim; d++) {
        shape.size[d] = input->shape.size[axes[d]];
        strides[d] = input->strides[axes[d]];
    }
    return smelt_array_view(input, shape, strides, 0, result);
}

smelt_status evaluate_broadcast_to(const struct call *call, smelt_array **result) {
    smelt_array *input = call->inputs[0];
    int64_t strides[SMELT_MAX_DIMENSIONS], size;
    smelt_shape shape = call->desc->shape, joined = input->shape;
    TRY(shape_check("broadcast_to", input->dtype, &shape, &size));
    TRY(call_join_shapes("broadcast_to", &shape, &joined));
    if (!shape_equal(&joined, &shape))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "broadcast_to: shape %s cannot be broadcast to %s",
                    shape_print(&input->shape).text, shape_print(&shape).text);
    map_broadcast(input, &shape, strides);
    return smelt_array_view(input, shape, strides, 0, result);
}

/* The elements a slice has; each must exist. */
smelt_status call_slice(const struct call *call, const smelt_array *array, smelt_shape *shape,
                        int64_t strides[SMELT_MAX_DIMENSIONS], int64_t *offset) {
    const smelt_apply_desc *desc = call->desc;
    *shape = (smelt_shape){.ndim = array->shape.ndim};
    *offset = 0;
    for (int d = 0; d < shape->ndim; d++) {
        int64_t start = desc->starts[d], stop = desc->stops[d], step = desc->steps[d] ? desc->steps[d] : 1;
        int64_t size = array->shape.size[d], count = 0;
        bool sane = start >= -1 && start <= size && stop >= -1 && stop <= size && step != INT64_MIN;
        if (sane && step > 0 && stop > start) count = (stop - start - 1) / step + 1;
        if (sane && step < 0 && stop < start) count = (start - stop - 1) / -step + 1;
        if (!sane || (count && (start < 0 || start >= size)))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "%s: slice %lld:%lld:%lld of dimension %d reaches outside its %lld elements",
                        call->name, (long long)start, (long long)stop, (long long)step, d, (long long)size);
        shape->size[d] = count;
        strides[d] = count > 1 ? array->strides[d] * step : array->strides[d];
        if (count) *offset += start * array->strides[d];
    }
    return SMELT_OK;
}

smelt_status evaluate_slice(const struct call *call, smelt_array **result) {
    smelt_shape shape;
    int64_t strides[SMELT_MAX_DIMENSIONS], offset;
    TRY(call_slice(call, call->inputs[0], &shape, strides, &offset));
    return smelt_array_view(call->inputs[0], shape, strides, offset, result);
}
