/* Shapes, axes, and the operations that are views. */
#include "ops/map.h"
#include "ops/operation.h"

#include <string.h>

/* ---- Shapes. */

bool shape_equal(const smelt_shape *a, const smelt_shape *b) {
    bool equal = a->ndim == b->ndim;
    for (int d = 0; equal && d < a->ndim; d++) equal = a->size[d] == b->size[d];
    return equal;
}

bool shape_broadcasts(const smelt_shape *from, const smelt_shape *to) {
    int lead = to->ndim - from->ndim;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < from->ndim; d++)
        fits = from->size[d] == 1 || from->size[d] == to->size[d + lead];
    return fits;
}

int64_t shape_product(const smelt_shape *shape) {
    int64_t product = 1;
    for (int d = 0; d < shape->ndim; d++) product *= shape->size[d];
    return product;
}

static smelt_status join_shapes(const char *name, const smelt_shape *more, smelt_shape *shape) {
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
        TRY(join_shapes("result shape", &shapes[i], &joined));
    }
    *shape = joined;
    return SMELT_OK;
}

smelt_status call_shape(const struct call *call, int first, int count, smelt_shape *shape) {
    *shape = call->inputs[first]->shape;
    for (int i = 1; i < count; i++) TRY(join_shapes(call->name, &call->inputs[first + i]->shape, shape));
    return SMELT_OK;
}

smelt_status axes_check(const char *name, const int *axes, int count, int ndim, int *checked) {
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
    TRY(axes_check(call->name, desc->axes, desc->axis_count, ndim, checked));
    *axes = 0;
    for (int i = 0; i < desc->axis_count; i++) *axes |= UINT32_C(1) << checked[i];
    return SMELT_OK;
}

smelt_status call_axis(const struct call *call, int ndim, int *axis, bool *flat) {
    *flat = call->desc->axis_count == 0;
    *axis = 0;
    if (*flat) return SMELT_OK;
    if (call->desc->axis_count != 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %d axes are given, expected one", call->name,
                    call->desc->axis_count);
    return axes_check(call->name, call->desc->axes, 1, ndim, axis);
}

smelt_status call_output(const struct call *call, smelt_dtype dtype, const smelt_shape *shape,
                         smelt_array **array) {
    smelt_status status = program_output(call->device, call->desc->stream, dtype, shape, array);
    return status == SMELT_OK ? status : fail_within(status, "%s", call->name);
}

/* ---- Views. */

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
                "reshape: an array of shape %s with %lld elements has no shape %s",
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
        TRY(axes_check("transpose", call->desc->axes, ndim, ndim, axes));
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
    TRY(join_shapes("broadcast_to", &shape, &joined));
    if (!shape_equal(&joined, &shape))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "broadcast_to: shape %s cannot be broadcast to %s",
                    shape_print(&input->shape).text, shape_print(&shape).text);
    map_broadcast(input, &shape, strides);
    return smelt_array_view(input, shape, strides, 0, result);
}

/* The elements a slice has; each must exist. */
smelt_status slice_check(const struct call *call, const smelt_array *array, smelt_shape *shape,
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
    TRY(slice_check(call, call->inputs[0], &shape, strides, &offset));
    return smelt_array_view(call->inputs[0], shape, strides, offset, result);
}
