/* Operations composed of others: tapes record the parts. */
#include "array/dtype.h"
#include "ops/expression.h"

#include <string.h>

static struct expression open(const struct call *call) {
    return (struct expression){.device = call->desc->device, .stream = call->desc->stream};
}

/* ---- Elementwise. */

smelt_status compose_clip(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    uint64_t weak = call->desc->weak;
    smelt_array *low = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_MAXIMUM,
                                                          .inputs = {call->inputs[0], call->inputs[1]},
                                                          .weak = weak & 3});
    smelt_array *both = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_MINIMUM,
                                                           .inputs = {low, call->inputs[2]},
                                                           .weak = weak >> 1 & 2});
    return expr_close(&e, both, result);
}

static smelt_array *is_close(struct expression *e, const struct call *call) {
    smelt_array *x = call->inputs[0], *y = call->inputs[1];
    const double *numbers = call->desc->numbers;
    uint64_t weak = call->desc->weak;
    smelt_array *difference = expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_SUBTRACT, .inputs = {x, y}, .weak = weak});
    /* In float32 where it would be integers, whose differences wrap, or halfs, too coarse for tolerances. */
    if (difference && difference->dtype != SMELT_FLOAT64 && difference->dtype != SMELT_COMPLEX64) {
        x = expr_astype(e, x, SMELT_FLOAT32);
        y = expr_astype(e, y, SMELT_FLOAT32);
        difference = expr_binary(e, SMELT_OPERATION_SUBTRACT, x, y);
    }
    smelt_array *allowed =
        expr_with(e, SMELT_OPERATION_ADD,
                  expr_with(e, SMELT_OPERATION_MULTIPLY, expr_unary(e, SMELT_OPERATION_ABS, y), numbers[0]),
                  numbers[1]);
    smelt_array *near =
        expr_binary(e, SMELT_OPERATION_LESS_EQUAL, expr_unary(e, SMELT_OPERATION_ABS, difference), allowed);
    /* Infinities are close only to themselves, however large the tolerance they imply. */
    near =
        expr_binary(e, SMELT_OPERATION_LOGICAL_AND, near, expr_unary(e, SMELT_OPERATION_ISFINITE, allowed));
    near = expr_binary(e, SMELT_OPERATION_LOGICAL_OR, near, expr_binary(e, SMELT_OPERATION_EQUAL, x, y));
    if (!call->desc->equal_nan) return near;
    smelt_array *nan = expr_binary(e, SMELT_OPERATION_LOGICAL_AND, expr_unary(e, SMELT_OPERATION_ISNAN, x),
                                   expr_unary(e, SMELT_OPERATION_ISNAN, y));
    return expr_binary(e, SMELT_OPERATION_LOGICAL_OR, near, nan);
}

smelt_status compose_close(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_array *near = is_close(&e, call);
    if (call->desc->operation == SMELT_OPERATION_ALL_CLOSE && near)
        near = expr_reduce(&e, SMELT_OPERATION_ALL, near, (UINT32_C(1) << near->shape.ndim) - 1, false);
    return expr_close(&e, near, result);
}

smelt_status compose_array_equal(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_array *x = call->inputs[0], *y = call->inputs[1];
    if (!shape_equal(&x->shape, &y->shape))
        return smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_ZEROS,
                                               .dtype = SMELT_BOOL,
                                               .device = call->device,
                                               .stream = call->desc->stream},
                           result);
    smelt_array *equal = expr_apply(
        &e,
        &(smelt_apply_desc){.operation = SMELT_OPERATION_EQUAL, .inputs = {x, y}, .weak = call->desc->weak});
    if (call->desc->equal_nan)
        equal =
            expr_binary(&e, SMELT_OPERATION_LOGICAL_OR, equal,
                        expr_binary(&e, SMELT_OPERATION_LOGICAL_AND, expr_unary(&e, SMELT_OPERATION_ISNAN, x),
                                    expr_unary(&e, SMELT_OPERATION_ISNAN, y)));
    return expr_close(
        &e, expr_reduce(&e, SMELT_OPERATION_ALL, equal, (UINT32_C(1) << x->shape.ndim) - 1, false), result);
}

/* ---- Over axes. Integers become float32; sums of halfs are computed in float32, and rounded at the end. */

struct reduction {
    struct expression e;
    smelt_array *x; /* the input, in the dtype to sum in */
    uint32_t axes;
    int64_t count;     /* elements that become one */
    smelt_dtype dtype; /* of the result */
};

static struct reduction open_reduction(const struct call *call) {
    struct reduction r = {.e = open(call), .count = 1};
    smelt_array *input = call->inputs[0];
    r.e.status = call_axes(call, input->shape.ndim, &r.axes);
    if (r.e.status != SMELT_OK) return r;
    for (int d = 0; d < input->shape.ndim; d++)
        if (r.axes >> d & 1) r.count *= input->shape.size[d];
    r.dtype = dtype_is_inexact(input->dtype) ? input->dtype : SMELT_FLOAT32;
    bool small = r.dtype == SMELT_FLOAT16 || r.dtype == SMELT_BFLOAT16;
    r.x = expr_astype(&r.e, input, small ? SMELT_FLOAT32 : r.dtype);
    return r;
}

/* The result of a reduction with kept dimensions, in the caller's shape. */
static smelt_array *drop_kept(struct expression *e, const struct call *call, smelt_array *x, uint32_t axes) {
    if (!x || call->desc->keepdims) return x;
    smelt_shape shape = {.ndim = 0};
    for (int d = 0; d < x->shape.ndim; d++)
        if (!(axes >> d & 1)) shape.size[shape.ndim++] = x->shape.size[d];
    return expr_reshape(e, x, &shape);
}

static smelt_array *mean_of(struct expression *e, smelt_array *x, uint32_t axes, double count) {
    return expr_with(e, SMELT_OPERATION_DIVIDE, expr_reduce(e, SMELT_OPERATION_SUM, x, axes, true), count);
}

smelt_status compose_mean(const struct call *call, smelt_array **result) {
    struct reduction r = open_reduction(call);
    smelt_array *mean = NULL;
    if (r.e.status == SMELT_OK)
        mean = expr_astype(&r.e, drop_kept(&r.e, call, mean_of(&r.e, r.x, r.axes, (double)r.count), r.axes),
                           r.dtype);
    return expr_close(&r.e, mean, result);
}

smelt_status compose_variance(const struct call *call, smelt_array **result) {
    struct reduction r = open_reduction(call);
    smelt_array *variance = NULL;
    if (r.e.status == SMELT_OK) {
        smelt_array *apart =
            expr_binary(&r.e, SMELT_OPERATION_SUBTRACT, r.x, mean_of(&r.e, r.x, r.axes, (double)r.count));
        double degrees = (double)r.count - (double)call->desc->offset;
        variance =
            mean_of(&r.e, expr_unary(&r.e, SMELT_OPERATION_SQUARE, apart), r.axes, degrees > 0 ? degrees : 0);
        if (call->desc->operation == SMELT_OPERATION_STD)
            variance = expr_unary(&r.e, SMELT_OPERATION_SQRT, variance);
        variance = expr_astype(&r.e, drop_kept(&r.e, call, variance, r.axes), r.dtype);
    }
    return expr_close(&r.e, variance, result);
}

/* The largest element, taken as a constant: it cancels in the derivative. Infinite ones are taken as 0. */
static smelt_array *shift_of(struct expression *e, smelt_array *x, uint32_t axes) {
    smelt_array *largest =
        expr_reduce(e, SMELT_OPERATION_MAX, expr_unary(e, SMELT_OPERATION_STOP_GRADIENT, x), axes, true);
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                             .inputs = {expr_unary(e, SMELT_OPERATION_ISFINITE, largest),
                                                        largest, expr_number(e, 0)},
                                             .weak = 4});
}

smelt_status compose_logsumexp(const struct call *call, smelt_array **result) {
    struct reduction r = open_reduction(call);
    smelt_array *value = NULL;
    if (r.e.status == SMELT_OK) {
        smelt_array *shift = shift_of(&r.e, r.x, r.axes);
        smelt_array *exps =
            expr_unary(&r.e, SMELT_OPERATION_EXP, expr_binary(&r.e, SMELT_OPERATION_SUBTRACT, r.x, shift));
        value =
            expr_unary(&r.e, SMELT_OPERATION_LOG, expr_reduce(&r.e, SMELT_OPERATION_SUM, exps, r.axes, true));
        value = expr_binary(&r.e, SMELT_OPERATION_ADD, value, shift);
        value = expr_astype(&r.e, drop_kept(&r.e, call, value, r.axes), r.dtype);
    }
    return expr_close(&r.e, value, result);
}

smelt_status compose_softmax(const struct call *call, smelt_array **result) {
    struct reduction r = open_reduction(call);
    smelt_array *value = NULL;
    if (r.e.status == SMELT_OK && !r.x->size) {
        value = expr_unary(&r.e, SMELT_OPERATION_EXP, r.x);
    } else if (r.e.status == SMELT_OK) {
        smelt_array *exps =
            expr_unary(&r.e, SMELT_OPERATION_EXP,
                       expr_binary(&r.e, SMELT_OPERATION_SUBTRACT, r.x, shift_of(&r.e, r.x, r.axes)));
        value = expr_binary(&r.e, SMELT_OPERATION_DIVIDE, exps,
                            expr_reduce(&r.e, SMELT_OPERATION_SUM, exps, r.axes, true));
    }
    if (value) value = expr_astype(&r.e, value, r.dtype);
    return expr_close(&r.e, value, result);
}

/* ---- Shapes: reshapes by other names. */

static smelt_status reshaped(const struct call *call, const smelt_shape *shape, smelt_array **result) {
    return smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_RESHAPE,
                                           .inputs = {call->inputs[0]},
                                           .shape = *shape,
                                           .device = call->desc->device,
                                           .stream = call->desc->stream},
                       result);
}

smelt_status compose_flatten(const struct call *call, smelt_array **result) {
    const smelt_shape *old = &call->inputs[0]->shape;
    smelt_shape shape = {.ndim = 0};
    int first = 0, last = old->ndim - 1;
    if (call->desc->axis_count) {
        if (call->desc->axis_count != 2)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "flatten: %d axes are given, expected the first and the last",
                        call->desc->axis_count);
        TRY(call_check_axes("flatten", call->desc->axes, 1, old->ndim, &first));
        TRY(call_check_axes("flatten", call->desc->axes + 1, 1, old->ndim, &last));
        if (first > last)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "flatten: axis %d comes after axis %d", first, last);
    }
    if (!old->ndim) shape = (smelt_shape){1, {1}};
    for (int d = 0; d < old->ndim; d++) {
        if (d > first && d <= last)
            shape.size[shape.ndim - 1] *= old->size[d];
        else
            shape.size[shape.ndim++] = old->size[d];
    }
    return reshaped(call, &shape, result);
}

smelt_status compose_expand_dims(const struct call *call, smelt_array **result) {
    const smelt_shape *old = &call->inputs[0]->shape;
    int count = call->desc->axis_count, axes[2 * SMELT_MAX_DIMENSIONS];
    smelt_shape shape = {.ndim = old->ndim + count};
    if (shape.ndim > SMELT_MAX_DIMENSIONS)
        return fail(SMELT_ERROR_LIMIT, "expand_dims: %d dimensions; at most %d are allowed", shape.ndim,
                    SMELT_MAX_DIMENSIONS);
    TRY(call_check_axes("expand_dims", call->desc->axes, count, shape.ndim, axes));
    for (int i = 0; i < count; i++) shape.size[axes[i]] = -1;
    for (int d = 0, from = 0; d < shape.ndim; d++)
        shape.size[d] = shape.size[d] == -1 ? 1 : old->size[from++];
    return reshaped(call, &shape, result);
}

smelt_status compose_squeeze(const struct call *call, smelt_array **result) {
    const smelt_shape *old = &call->inputs[0]->shape;
    smelt_shape shape = {.ndim = 0};
    uint32_t axes;
    bool all = !call->desc->axis_count && !call->desc->no_axes;
    TRY(call_axes(call, old->ndim, &axes));
    for (int d = 0; d < old->ndim; d++) {
        bool named = axes >> d & 1;
        if (named && !all && old->size[d] != 1)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "squeeze: dimension %d has size %lld, expected 1", d,
                        (long long)old->size[d]);
        if (!named || old->size[d] != 1) shape.size[shape.ndim++] = old->size[d];
    }
    return reshaped(call, &shape, result);
}

smelt_status compose_stack(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_apply_desc desc = {
        .operation = SMELT_OPERATION_CONCATENATE, .axis_count = 1, .axes = {call->desc->axes[0]}};
    const smelt_shape *first = &call->inputs[0]->shape;
    if (!call->desc->axis_count) desc.axes[0] = 0;
    TRY(call_check_axes("stack", desc.axes, 1, first->ndim + 1, desc.axes));
    for (int i = 0; i < call->count; i++) {
        if (!shape_equal(&call->inputs[i]->shape, first)) {
            e.status = fail(SMELT_ERROR_INVALID_ARGUMENT, "stack: input %d has shape %s, input 0 %s", i,
                            shape_print(&call->inputs[i]->shape).text, shape_print(first).text);
            break;
        }
        desc.inputs[i] = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_EXPAND_DIMS,
                                                            .inputs = {call->inputs[i]},
                                                            .axis_count = 1,
                                                            .axes = {desc.axes[0]}});
    }
    return expr_close(&e, expr_apply(&e, &desc), result);
}

smelt_status compose_triangle(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_array *x = call->inputs[0];
    int ndim = x->shape.ndim;
    if (ndim < 2)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: an array of %d dimensions, expected at least 2",
                    call->name, ndim);
    int64_t rows = x->shape.size[ndim - 2], columns = x->shape.size[ndim - 1];
    int64_t offset = call_diagonal(call, rows, columns);
    smelt_apply_desc range = {.operation = SMELT_OPERATION_ARANGE,
                              .dtype = SMELT_INT32,
                              .device = call->device,
                              .numbers = {(double)offset, (double)(rows + offset), 1}};
    smelt_array *row = expr_reshape(&e, expr_apply(&e, &range), &(smelt_shape){2, {rows, 1}});
    range.numbers[0] = 0;
    range.numbers[1] = (double)columns;
    smelt_array *column = expr_apply(&e, &range);
    bool lower = call->desc->operation == SMELT_OPERATION_TRIL;
    smelt_array *inside =
        expr_binary(&e, lower ? SMELT_OPERATION_GREATER_EQUAL : SMELT_OPERATION_LESS_EQUAL, row, column);
    smelt_array *value = expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                                            .inputs = {inside, x, expr_number(&e, 0)},
                                                            .weak = 4});
    return expr_close(&e, value ? expr_astype(&e, value, x->dtype) : NULL, result);
}

/* ---- By indices. */

smelt_status compose_take(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_array *x = call->inputs[0];
    int axis;
    bool flat;
    TRY(call_axis(call, x->shape.ndim, &axis, &flat));
    if (flat) x = expr_reshape(&e, x, &(smelt_shape){1, {x->size}});
    return expr_close(&e,
                      expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_GATHER,
                                                         .inputs = {x, call->inputs[1]},
                                                         .axis_count = 1,
                                                         .axes = {axis},
                                                         .offset = axis}),
                      result);
}

/* All dimensions are indexed: the axis by the indices, every other one by its own positions. */
smelt_status compose_take_along_axis(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_array *x = call->inputs[0], *indices = call->inputs[1];
    int ndim = x->shape.ndim, axis;
    bool flat;
    TRY(call_axis(call, ndim, &axis, &flat));
    if (flat) return fail(SMELT_ERROR_INVALID_ARGUMENT, "take_along_axis: no axis is given");
    if (indices->shape.ndim != ndim)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "take_along_axis: indices of %d dimensions for an array of %d", indices->shape.ndim,
                    ndim);
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_GATHER, .inputs = {x}};
    smelt_shape shape = indices->shape;
    for (int d = 0; d < ndim; d++)
        if (d != axis && shape.size[d] == 1) shape.size[d] = x->shape.size[d];
    indices = expr_broadcast(&e, indices, &shape);
    for (int d = 0; d < ndim; d++) {
        smelt_shape line = {.ndim = ndim};
        for (int i = 0; i < ndim; i++) line.size[i] = i == d ? shape.size[d] : 1;
        if (d != axis && shape.size[d] != x->shape.size[d] && x->shape.size[d] != 1) {
            e.status = fail(SMELT_ERROR_INVALID_ARGUMENT,
                            "take_along_axis: indices of shape %s do not match shape %s along axis %d",
                            shape_print(&call->inputs[1]->shape).text, shape_print(&x->shape).text, axis);
            break;
        }
        desc.inputs[1 + d] =
            d == axis
                ? indices
                : expr_reshape(&e,
                               expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ARANGE,
                                                                  .dtype = SMELT_INT32,
                                                                  .device = call->device,
                                                                  .numbers = {0, (double)shape.size[d], 1}}),
                               &line);
    }
    return expr_close(&e, expr_apply(&e, &desc), result);
}

smelt_status compose_scatter_add(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_apply_desc desc = *call->desc;
    smelt_array *x = call->inputs[0];
    desc.operation = SMELT_OPERATION_SCATTER_SUM;
    desc.shape = x->shape;
    desc.weak = 0;
    if (call->count < 3)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "scatter_add: %d inputs are given, expected an array, updates, indices", call->count);
    memmove(desc.inputs, desc.inputs + 1, sizeof desc.inputs - sizeof *desc.inputs);
    desc.inputs[SMELT_MAX_ARGUMENTS - 1] = NULL;
    desc.inputs[0] = expr_astype(&e, desc.inputs[0], x->dtype);
    smelt_array *sum = expr_apply(&e, &desc);
    return expr_close(&e, expr_binary(&e, SMELT_OPERATION_ADD, x, sum), result);
}

/* ---- Products. */

smelt_status compose_outer(const struct call *call, smelt_array **result) {
    struct expression e = open(call);
    smelt_array *x = call->inputs[0], *y = call->inputs[1];
    x = expr_reshape(&e, x, &(smelt_shape){2, {x->size, 1}});
    y = expr_reshape(&e, y, &(smelt_shape){1, {y->size}});
    return expr_close(&e, expr_binary(&e, SMELT_OPERATION_MULTIPLY, x, y), result);
}

/* The dimensions `first` come first, in their order, the others behind, or the other way round; as a matrix.
 */
static smelt_array *as_matrix(struct expression *e, smelt_array *x, const int *axes, int count, bool behind,
                              smelt_shape *free) {
    int order[SMELT_MAX_DIMENSIONS], rest = 0;
    uint32_t taken = 0;
    int64_t summed = 1, kept = 1;
    int others = x->shape.ndim - count;
    for (int i = 0; i < count; i++) {
        taken |= UINT32_C(1) << axes[i];
        order[behind ? others + i : i] = axes[i];
        summed *= x->shape.size[axes[i]];
    }
    for (int d = 0; d < x->shape.ndim; d++) {
        if (taken >> d & 1) continue;
        order[behind ? rest : count + rest] = d;
        rest++;
        free->size[free->ndim++] = x->shape.size[d];
        kept *= x->shape.size[d];
    }
    smelt_array *turned = x->shape.ndim ? expr_transpose(e, x, order) : x;
    return expr_reshape(e, turned, &(smelt_shape){2, {behind ? kept : summed, behind ? summed : kept}});
}

static smelt_status tensordot(const struct call *call, const int *x_axes, const int *y_axes, int count,
                              smelt_array **result) {
    struct expression e = open(call);
    smelt_shape shape = {.ndim = 0};
    smelt_array *x = call->inputs[0], *y = call->inputs[1];
    if (x->shape.ndim + y->shape.ndim - 2 * count > SMELT_MAX_DIMENSIONS)
        return fail(SMELT_ERROR_LIMIT, "%s: the result has more than %d dimensions", call->name,
                    SMELT_MAX_DIMENSIONS);
    for (int i = 0; i < count; i++)
        if (x->shape.size[x_axes[i]] != y->shape.size[y_axes[i]])
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "%s: dimension %d of shape %s and dimension %d of shape %s differ in size",
                        call->name, x_axes[i], shape_print(&x->shape).text, y_axes[i],
                        shape_print(&y->shape).text);
    smelt_array *a = as_matrix(&e, x, x_axes, count, true, &shape);
    smelt_array *b = as_matrix(&e, y, y_axes, count, false, &shape);
    return expr_close(&e, expr_reshape(&e, expr_binary(&e, SMELT_OPERATION_MATMUL, a, b), &shape), result);
}

smelt_status compose_inner(const struct call *call, smelt_array **result) {
    smelt_array *x = call->inputs[0], *y = call->inputs[1];
    if (!x->shape.ndim || !y->shape.ndim) {
        struct expression e = open(call);
        return expr_close(&e,
                          expr_apply(&e, &(smelt_apply_desc){.operation = SMELT_OPERATION_MULTIPLY,
                                                             .inputs = {x, y},
                                                             .weak = call->desc->weak}),
                          result);
    }
    return tensordot(call, (int[]){x->shape.ndim - 1}, (int[]){y->shape.ndim - 1}, 1, result);
}

smelt_status compose_tensordot(const struct call *call, smelt_array **result) {
    int count = call->desc->axis_count / 2, x_axes[2 * SMELT_MAX_DIMENSIONS],
        y_axes[2 * SMELT_MAX_DIMENSIONS];
    if (call->desc->axis_count % 2)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "tensordot: %d axes are given, expected as many of each input", call->desc->axis_count);
    TRY(call_check_axes("tensordot", call->desc->axes, count, call->inputs[0]->shape.ndim, x_axes));
    TRY(call_check_axes("tensordot", call->desc->axes + count, count, call->inputs[1]->shape.ndim, y_axes));
    return tensordot(call, x_axes, y_axes, count, result);
}
