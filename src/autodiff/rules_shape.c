/* Derivatives of operations that move elements (they move back), and of the product of matrices. */
#include "autodiff/rules.h"

#include <string.h>

static smelt_array *scalar_like(struct expression *e, smelt_array *x) {
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ZEROS,
                                             .dtype = x->dtype,
                                             .device = smelt_array_device(x)});
}

/* The recorded attributes under another operation, with other inputs. */
static smelt_array *with_inputs(struct expression *e, const struct node *node, smelt_operation operation,
                                smelt_array *x, smelt_array *y) {
    smelt_apply_desc desc = node->desc;
    desc.operation = operation;
    desc.weak = 0;
    memset(desc.inputs, 0, sizeof desc.inputs);
    desc.inputs[0] = x;
    desc.inputs[1] = y;
    return expr_apply(e, &desc);
}

smelt_array *vjp_reshape(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    return expr_reshape(e, g, &node->inputs[0]->shape);
}

smelt_array *vjp_transpose(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    int ndim = node->inputs[0]->shape.ndim, back[SMELT_MAX_DIMENSIONS];
    for (int d = 0; d < ndim; d++) {
        int axis = node->desc.axis_count ? node->desc.axes[d] : ndim - 1 - d;
        back[axis < 0 ? axis + ndim : axis] = d;
    }
    return ndim ? expr_transpose(e, g, back) : g;
}

/* Broadcast inputs are summed for every operation. */
smelt_array *vjp_broadcast_to(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)e;
    (void)node;
    (void)input;
    return g;
}

smelt_array *vjp_slice(struct expression *e, const struct node *node, int input, smelt_array *g) {
    return with_inputs(e, node, SMELT_OPERATION_SLICE_UPDATE, expr_zeros(e, node->inputs[input]), g);
}

smelt_array *vjp_slice_update(struct expression *e, const struct node *node, int input, smelt_array *g) {
    if (input == 1) return with_inputs(e, node, SMELT_OPERATION_SLICE, g, NULL);
    return with_inputs(e, node, SMELT_OPERATION_SLICE_UPDATE, g, scalar_like(e, g));
}

/* `count` elements of dimension `axis` from `start` on, all of the others. */
static smelt_array *part(struct expression *e, smelt_array *x, const int64_t *start,
                         const smelt_shape *shape) {
    smelt_apply_desc desc = {.operation = SMELT_OPERATION_SLICE, .inputs = {x}};
    for (int d = 0; d < shape->ndim; d++) {
        desc.starts[d] = start[d];
        desc.stops[d] = start[d] + shape->size[d];
    }
    return expr_apply(e, &desc);
}

smelt_array *vjp_concatenate(struct expression *e, const struct node *node, int input, smelt_array *g) {
    int64_t start[SMELT_MAX_DIMENSIONS] = {0};
    int axis = node->desc.axis_count ? node->desc.axes[0] : 0;
    if (axis < 0) axis += node->inputs[0]->shape.ndim;
    for (int i = 0; i < input; i++) start[axis] += node->inputs[i]->shape.size[axis];
    return part(e, g, start, &node->inputs[input]->shape);
}

smelt_array *vjp_pad(struct expression *e, const struct node *node, int input, smelt_array *g) {
    smelt_array *inside = part(e, g, node->desc.starts, &node->inputs[0]->shape);
    if (input == 0) return inside;
    uint32_t all = (UINT32_C(1) << node->inputs[0]->shape.ndim) - 1;
    smelt_array *rest = with_inputs(e, node, SMELT_OPERATION_PAD, expr_zeros(e, inside),
                                    expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_ONES,
                                                                      .dtype = g->dtype,
                                                                      .device = smelt_array_device(g)}));
    smelt_array *sum =
        expr_reduce(e, SMELT_OPERATION_SUM, expr_binary(e, SMELT_OPERATION_MULTIPLY, g, rest), all, false);
    return expr_reshape(e, sum, &node->inputs[1]->shape);
}

/* ---- By indices. */

/* The recorded indices, inputs `first` …, behind other inputs. */
static smelt_array *with_indices(struct expression *e, const struct node *node, int first,
                                 smelt_operation operation, smelt_array *x, smelt_array *y,
                                 const smelt_shape *shape) {
    smelt_apply_desc desc = node->desc;
    int at = 0;
    desc.operation = operation;
    desc.weak = 0;
    desc.shape = *shape;
    memset(desc.inputs, 0, sizeof desc.inputs);
    desc.inputs[at++] = x;
    if (y) desc.inputs[at++] = y;
    for (int i = first; i < node->input_count; i++) desc.inputs[at++] = node->inputs[i];
    return expr_apply(e, &desc);
}

smelt_array *vjp_gather(struct expression *e, const struct node *node, int input, smelt_array *g) {
    return with_indices(e, node, 1, SMELT_OPERATION_SCATTER_SUM, g, NULL, &node->inputs[input]->shape);
}

smelt_array *vjp_scatter_sum(struct expression *e, const struct node *node, int input, smelt_array *g) {
    return with_indices(e, node, 1, SMELT_OPERATION_GATHER, g, NULL, &node->inputs[input]->shape);
}

/* By the updates: what is read where each was written, if it was the last there. Their numbers, scattered and
 * gathered the same way, tell. */
smelt_array *vjp_scatter(struct expression *e, const struct node *node, int input, smelt_array *g) {
    const smelt_shape *shape = &node->inputs[0]->shape;
    if (input == 0) {
        smelt_array *zero = scalar_like(e, g);
        return zero ? with_indices(e, node, 2, SMELT_OPERATION_SCATTER, g, zero, shape) : NULL;
    }
    smelt_array *there = with_indices(e, node, 2, SMELT_OPERATION_GATHER, g, NULL, shape);
    if (!there) return NULL;
    smelt_apply_desc count = {.operation = SMELT_OPERATION_ARANGE,
                              .dtype = SMELT_INT32,
                              .device = smelt_array_device(g),
                              .numbers = {0, (double)there->size, 1}};
    smelt_array *numbers = expr_reshape(e, expr_apply(e, &count), &there->shape);
    smelt_apply_desc none = {.operation = SMELT_OPERATION_ZEROS,
                             .dtype = SMELT_INT32,
                             .shape = *shape,
                             .device = smelt_array_device(g)};
    smelt_array *empty = expr_apply(e, &none);
    if (!numbers) return NULL;
    smelt_array *kept = with_indices(e, node, 2, SMELT_OPERATION_SCATTER, empty, numbers, shape);
    smelt_array *read = with_indices(e, node, 2, SMELT_OPERATION_GATHER, kept, NULL, shape);
    smelt_array *last = expr_binary(e, SMELT_OPERATION_EQUAL, read, numbers);
    return expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_WHERE,
                                             .inputs = {last, there, expr_number(e, 0)},
                                             .weak = 4});
}

/* ---- Matrices. */

static smelt_array *swapped(struct expression *e, smelt_array *x) {
    int order[SMELT_MAX_DIMENSIONS];
    if (!x) return NULL;
    for (int d = 0; d < x->shape.ndim; d++) order[d] = d;
    order[x->shape.ndim - 2] = x->shape.ndim - 1;
    order[x->shape.ndim - 1] = x->shape.ndim - 2;
    return expr_transpose(e, x, order);
}

/* A vector as a matrix of one row or one column. */
static smelt_array *as_matrix(struct expression *e, smelt_array *x, bool row) {
    if (x->shape.ndim > 1) return x;
    return expr_reshape(e, x, &(smelt_shape){2, {row ? 1 : x->size, row ? x->size : 1}});
}

smelt_array *vjp_matmul(struct expression *e, const struct node *node, int input, smelt_array *g) {
    smelt_array *a = as_matrix(e, node->inputs[0], true), *b = as_matrix(e, node->inputs[1], false);
    smelt_shape shape = {.ndim = 0};
    bool row = node->inputs[0]->shape.ndim == 1, column = node->inputs[1]->shape.ndim == 1;
    int batch = node->outputs[0]->shape.ndim - !row - !column;
    for (int d = 0; d < batch; d++) shape.size[shape.ndim++] = g->shape.size[d];
    shape.size[shape.ndim++] = row ? 1 : g->shape.size[batch];
    shape.size[shape.ndim++] = column ? 1 : g->shape.size[g->shape.ndim - 1];
    g = expr_reshape(e, g, &shape);
    if (input == 0) return expr_binary(e, SMELT_OPERATION_MATMUL, g, swapped(e, b));
    smelt_array *by_b = expr_binary(e, SMELT_OPERATION_MATMUL, swapped(e, a), g);
    if (!by_b || !column) return by_b;
    smelt_shape flat = by_b->shape;
    flat.ndim--;
    return expr_reshape(e, by_b, &flat);
}

smelt_array *vjp_view(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    if (node->desc.dtype == smelt_array_dtype(node->inputs[0])) return g;
    if (e->status == SMELT_OK)
        e->status =
            fail(SMELT_ERROR_UNSUPPORTED, "the gradient goes through 'view', which has no derivative: "
                                          "block the gradient with stop_gradient");
    return NULL;
}

smelt_array *vjp_contiguous(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)e, (void)node, (void)input;
    return g;
}
