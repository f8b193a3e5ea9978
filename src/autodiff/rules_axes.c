/* Derivatives of reductions and cumulative operations. */
#include "autodiff/rules.h"

#include <string.h>

/* The axes of a recorded operation, as bits: its call was checked. */
static uint32_t axes_of(const struct node *node) {
    const struct call call = {.desc = &node->desc, .name = "gradient"};
    uint32_t axes = 0;
    (void)call_axes(&call, node->inputs[0]->shape.ndim, &axes);
    return axes;
}

/* A result's or cotangent's dimensions with those that were reduced kept, of size 1. */
static smelt_array *with_kept(struct expression *e, const struct node *node, smelt_array *y, uint32_t axes) {
    smelt_shape shape = node->inputs[0]->shape;
    for (int d = 0; d < shape.ndim; d++)
        if (axes >> d & 1) shape.size[d] = 1;
    return expr_reshape(e, y, &shape);
}

static smelt_array *zero_unless(struct expression *e, smelt_array *condition, smelt_array *x) {
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                             .inputs = {condition, x, expr_number(e, 0)},
                                             .weak = 4});
}

smelt_array *vjp_sum(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    return expr_broadcast(e, with_kept(e, node, g, axes_of(node)), &node->inputs[0]->shape);
}

/* Equal extremes share. */
smelt_array *vjp_extreme(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    uint32_t axes = axes_of(node);
    smelt_array *x = node->inputs[0];
    smelt_array *wins = expr_binary(e, SMELT_OPERATION_EQUAL, x, with_kept(e, node, node->outputs[0], axes));
    smelt_array *count = expr_astype(e, expr_reduce(e, SMELT_OPERATION_SUM, wins, axes, true), SMELT_FLOAT32);
    smelt_array *share = expr_binary(e, SMELT_OPERATION_DIVIDE, with_kept(e, node, g, axes), count);
    return zero_unless(e, wins, share);
}

/* By each element the product of the others: of those before it and those behind. Zeros need no care. */
smelt_array *vjp_prod(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    uint32_t axes = axes_of(node);
    smelt_array *x = node->inputs[0];
    int order[SMELT_MAX_DIMENSIONS], back[SMELT_MAX_DIMENSIONS], ndim = 0;
    smelt_shape turned_shape = {.ndim = x->shape.ndim}, lines = {.ndim = 0};
    int64_t count = 1;
    if (!x->shape.ndim || !x->size) return expr_broadcast(e, with_kept(e, node, g, axes), &x->shape);
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < x->shape.ndim; d++)
            if ((int)(axes >> d & 1) == pass) {
                turned_shape.size[ndim] = x->shape.size[d];
                if (pass)
                    count *= x->shape.size[d];
                else
                    lines.size[lines.ndim++] = x->shape.size[d];
                back[d] = ndim;
                order[ndim++] = d;
            }
    lines.size[lines.ndim++] = count;
    if (lines.ndim > SMELT_MAX_DIMENSIONS) lines.ndim = SMELT_MAX_DIMENSIONS; /* no axes: nothing to join */
    int axis = lines.ndim - 1;
    smelt_array *line = expr_reshape(e, expr_transpose(e, x, order), &lines);
    smelt_array *before = expr_cumulate(e, SMELT_OPERATION_CUMPROD, line, axis, false, true);
    smelt_array *behind = expr_cumulate(e, SMELT_OPERATION_CUMPROD, line, axis, true, true);
    smelt_array *others = expr_binary(e, SMELT_OPERATION_MULTIPLY, before, behind);
    smelt_array *turned = expr_transpose(e, expr_reshape(e, others, &turned_shape), back);
    return expr_binary(e, SMELT_OPERATION_MULTIPLY, with_kept(e, node, g, axes), turned);
}

/* ---- Along an axis. */

/* The recorded operation's axis, of arrays of the result's shape; `x` of that shape, too. */
static int axis_of(const struct node *node) {
    int axis = node->desc.axis_count ? node->desc.axes[0] : 0;
    return axis < 0 ? axis + node->outputs[0]->shape.ndim : axis;
}

smelt_array *vjp_cumsum(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    smelt_array *sum =
        expr_cumulate(e, SMELT_OPERATION_CUMSUM, g, axis_of(node), !node->desc.reverse, node->desc.exclusive);
    return expr_reshape(e, sum, &node->inputs[0]->shape);
}

smelt_array *vjp_cumprod(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    smelt_array *terms = expr_binary(e, SMELT_OPERATION_MULTIPLY, g, node->outputs[0]);
    smelt_array *sum = expr_cumulate(e, SMELT_OPERATION_CUMSUM, terms, axis_of(node), !node->desc.reverse,
                                     node->desc.exclusive);
    sum = expr_reshape(e, sum, &node->inputs[0]->shape);
    return expr_binary(e, SMELT_OPERATION_DIVIDE, sum, node->inputs[0]);
}

/* Each result is the element where its extreme was last met: positions are cumulative extremes, too. */
smelt_array *vjp_cumulative_extreme(struct expression *e, const struct node *node, int input,
                                    smelt_array *g) {
    (void)input;
    smelt_array *y = node->outputs[0], *x = expr_reshape(e, node->inputs[0], &y->shape);
    int axis = axis_of(node), ndim = y->shape.ndim;
    bool reverse = node->desc.reverse;
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_SCATTER_SUM, .inputs = {g}, .shape = y->shape};
    for (int d = 0; d < ndim; d++) {
        smelt_shape line = {.ndim = ndim};
        for (int i = 0; i < ndim; i++) line.size[i] = i == d ? y->shape.size[d] : 1;
        desc.inputs[1 + d] =
            expr_reshape(e,
                         expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ARANGE,
                                                           .dtype = SMELT_INT32,
                                                           .device = smelt_array_device(y),
                                                           .numbers = {0, (double)y->shape.size[d], 1}}),
                         &line);
    }
    smelt_array *met = expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                               .inputs = {expr_binary(e, SMELT_OPERATION_EQUAL, x, y), desc.inputs[1 + axis],
                                          expr_number(e, reverse ? (double)y->shape.size[axis] : -1)},
                               .weak = 4});
    met = expr_astype(e, met, SMELT_INT32);
    desc.inputs[1 + axis] = expr_cumulate(e, reverse ? SMELT_OPERATION_CUMMIN : SMELT_OPERATION_CUMMAX, met,
                                          axis, reverse, false);
    return expr_reshape(e, expr_apply(e, &desc), &node->inputs[0]->shape);
}
