#include "ops/expression.h"

#include <stdlib.h>
#include <string.h>

smelt_array *expr_keep(struct expression *e, smelt_array *array) {
    if (e->status == SMELT_OK && e->count == e->capacity) {
        int capacity = e->capacity ? 2 * e->capacity : 16;
        smelt_array **more = realloc(e->made, (size_t)capacity * sizeof(smelt_array *));
        if (more) {
            e->made = more;
            e->capacity = capacity;
        } else {
            e->status = fail_out_of_memory((size_t)capacity * sizeof(smelt_array *));
        }
    }
    if (e->status == SMELT_OK) return e->made[e->count++] = array;
    smelt_array_release(array);
    return NULL;
}

smelt_status expr_close(struct expression *e, smelt_array *value, smelt_array **result) {
    if (e->status == SMELT_OK && !value)
        e->status = fail(SMELT_ERROR_INTERNAL, "a composite operation has no result");
    if (e->status == SMELT_OK) *result = smelt_array_retain(value);
    for (int i = 0; i < e->count; i++) smelt_array_release(e->made[i]);
    free(e->made);
    e->made = NULL;
    e->count = e->capacity = 0;
    return e->status;
}

smelt_array *expr_apply(struct expression *e, const smelt_apply_desc *desc) {
    smelt_apply_desc complete = *desc;
    smelt_array *made;
    if (e->status != SMELT_OK) return NULL;
    if (!complete.device) complete.device = e->device;
    if (!complete.stream) complete.stream = e->stream;
    e->status = smelt_apply(&complete, &made);
    return e->status == SMELT_OK ? expr_keep(e, made) : NULL;
}

smelt_array *expr_unary(struct expression *e, smelt_operation operation, smelt_array *x) {
    return expr_apply(e, &(smelt_apply_desc){.operation = operation, .inputs = {x}});
}

smelt_array *expr_binary(struct expression *e, smelt_operation operation, smelt_array *x, smelt_array *y) {
    return expr_apply(e, &(smelt_apply_desc){.operation = operation, .inputs = {x, y}});
}

smelt_array *expr_number(struct expression *e, double value) {
    smelt_array *made;
    if (e->status != SMELT_OK) return NULL;
    e->status = smelt_array_from_values(SMELT_FLOAT64, (smelt_shape){.ndim = 0}, &value, &made);
    return e->status == SMELT_OK ? expr_keep(e, made) : NULL;
}

smelt_array *expr_with(struct expression *e, smelt_operation operation, smelt_array *x, double y) {
    return expr_apply(
        e, &(smelt_apply_desc){.operation = operation, .inputs = {x, expr_number(e, y)}, .weak = 2});
}

smelt_array *expr_from(struct expression *e, smelt_operation operation, double x, smelt_array *y) {
    return expr_apply(
        e, &(smelt_apply_desc){.operation = operation, .inputs = {expr_number(e, x), y}, .weak = 1});
}

smelt_array *expr_where(struct expression *e, smelt_array *condition, smelt_array *x, smelt_array *y) {
    return expr_apply(e,
                      &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE, .inputs = {condition, x, y}});
}

smelt_array *expr_astype(struct expression *e, smelt_array *x, smelt_dtype dtype) {
    if (x && x->dtype == dtype) return x;
    return expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ASTYPE, .inputs = {x}, .dtype = dtype});
}

smelt_array *expr_as(struct expression *e, smelt_array *x, const smelt_array *like) {
    if (like->dtype != SMELT_FLOAT64) return expr_astype(e, x, like->dtype);
    if (x && x->dtype == SMELT_FLOAT64) return x;
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ASTYPE,
                                             .inputs = {x},
                                             .dtype = SMELT_FLOAT64,
                                             .device = smelt_array_device(like)});
}

smelt_array *expr_reduce(struct expression *e, smelt_operation operation, smelt_array *x, uint32_t axes,
                         bool keepdims) {
    smelt_apply_desc desc = {.operation = operation, .inputs = {x}, .keepdims = keepdims};
    for (int d = 0; d < SMELT_MAX_DIMENSIONS; d++)
        if (axes >> d & 1) desc.axes[desc.axis_count++] = d;
    desc.no_axes = !desc.axis_count;
    return expr_apply(e, &desc);
}

smelt_array *expr_reshape(struct expression *e, smelt_array *x, const smelt_shape *shape) {
    if (x && shape_equal(&x->shape, shape)) return x;
    return expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_RESHAPE, .inputs = {x}, .shape = *shape});
}

smelt_array *expr_broadcast(struct expression *e, smelt_array *x, const smelt_shape *shape) {
    if (x && shape_equal(&x->shape, shape)) return x;
    return expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_BROADCAST_TO, .inputs = {x}, .shape = *shape});
}

smelt_array *expr_transpose(struct expression *e, smelt_array *x, const int *axes) {
    if (!x) return NULL;
    smelt_apply_desc desc = {
        .operation = SMELT_OPERATION_TRANSPOSE, .inputs = {x}, .axis_count = x->shape.ndim};
    memcpy(desc.axes, axes, (size_t)x->shape.ndim * sizeof *axes);
    return expr_apply(e, &desc);
}

smelt_array *expr_cumulate(struct expression *e, smelt_operation operation, smelt_array *x, int axis,
                           bool reverse, bool exclusive) {
    return expr_apply(e, &(smelt_apply_desc){.operation = operation,
                                             .inputs = {x},
                                             .axes = {axis},
                                             .axis_count = 1,
                                             .reverse = reverse,
                                             .exclusive = exclusive});
}

smelt_array *expr_zeros(struct expression *e, smelt_array *x) {
    if (!x || e->status != SMELT_OK) return NULL;
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ZEROS,
                                             .dtype = x->dtype,
                                             .shape = x->shape,
                                             .device = smelt_array_device(x)});
}

smelt_array *expr_sum_to(struct expression *e, smelt_array *x, const smelt_shape *shape) {
    if (!x || shape_equal(&x->shape, shape)) return x;
    uint32_t axes = 0;
    int lead = x->shape.ndim - shape->ndim;
    for (int d = 0; d < x->shape.ndim; d++)
        if (d < lead || (shape->size[d - lead] == 1 && x->shape.size[d] != 1)) axes |= UINT32_C(1) << d;
    return expr_reshape(e, expr_reduce(e, SMELT_OPERATION_SUM, x, axes, true), shape);
}

smelt_array *expr_sized(struct expression *e, smelt_array *x, int axis, int64_t n) {
    if (!x || x->shape.size[axis] == n) return x;
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_SLICE, .inputs = {x}};
    for (int d = 0; d < x->shape.ndim; d++) desc.stops[d] = x->shape.size[d], desc.steps[d] = 1;
    desc.stops[axis] = n;
    if (x->shape.size[axis] > n) return expr_apply(e, &desc);
    desc = (smelt_apply_desc){.operation = SMELT_OPERATION_PAD, .inputs = {x, expr_number(e, 0)}, .weak = 2};
    desc.stops[axis] = n - x->shape.size[axis];
    return expr_apply(e, &desc);
}

smelt_array *expr_row(struct expression *e, smelt_array *x, int64_t i) {
    if (!x) return NULL;
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_SLICE, .inputs = {x}};
    for (int d = 0; d < x->shape.ndim; d++) desc.stops[d] = x->shape.size[d], desc.steps[d] = 1;
    desc.starts[0] = i;
    desc.stops[0] = i + 1;
    smelt_array *part = expr_apply(e, &desc);
    return expr_apply(
        e, &(smelt_apply_desc){
               .operation = SMELT_OPERATION_SQUEEZE, .inputs = {part}, .axes = {0}, .axis_count = 1});
}
