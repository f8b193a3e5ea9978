/* Derivatives of grid_sample and of the inverses of chunks. */
#include "autodiff/rules.h"

/* ---- grid_sample: by kernels, unless an outer tape records. */

smelt_array *vjp_sample(struct expression *e, const struct node *node, int input, smelt_array *g) {
    smelt_apply_desc desc = node->desc;
    desc.operation = input ? SMELT_OPERATION_GRID_SAMPLE_VJP_GRID : SMELT_OPERATION_GRID_SAMPLE_VJP_X;
    desc.inputs[0] = g;
    desc.inputs[1] = node->inputs[1];
    desc.inputs[2] = input ? node->inputs[0] : NULL;
    desc.shape = node->inputs[0]->shape;
    return expr_apply(e, &desc);
}

/* ---- The inverse Y of I + S, S strictly lower: the gradient by S is the strictly lower part of -Yᵀ G Yᵀ. */

/* (batches, length, heads, width) as (batches, chunks, heads, width, width), filled up with zeros. */
static smelt_array *as_squares(struct expression *e, smelt_array *x, int64_t chunks) {
    int64_t width = x->shape.size[3], rest = chunks * width - x->shape.size[1];
    if (rest)
        x = expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_PAD,
                                              .inputs = {x, expr_number(e, 0)},
                                              .weak = 2,
                                              .stops = {0, rest}});
    if (!x) return NULL;
    smelt_shape parts = {5, {x->shape.size[0], chunks, width, x->shape.size[2], width}};
    return expr_transpose(e, expr_reshape(e, x, &parts), (int[]){0, 1, 3, 2, 4});
}

smelt_array *vjp_chunk_inverse(struct expression *e, const struct node *node, int input, smelt_array *g) {
    const smelt_shape *shape = &node->inputs[0]->shape;
    int64_t width = shape->size[3], chunks = (shape->size[1] + width - 1) / width;
    (void)input;
    if (!g->size) return g;
    smelt_array *y = node->outputs[0];
    if (y->dtype != SMELT_FLOAT64) {
        y = expr_astype(e, y, SMELT_FLOAT32);
        g = expr_astype(e, g, SMELT_FLOAT32);
    }
    smelt_array *turned = expr_transpose(e, as_squares(e, y, chunks), (int[]){0, 1, 2, 4, 3});
    smelt_array *product =
        expr_binary(e, SMELT_OPERATION_MATMUL, turned,
                    expr_binary(e, SMELT_OPERATION_MATMUL, as_squares(e, g, chunks), turned));
    product = expr_apply(
        e, &(smelt_apply_desc){.operation = SMELT_OPERATION_TRIL, .inputs = {product}, .offset = -1});
    product = expr_transpose(e, expr_unary(e, SMELT_OPERATION_NEGATIVE, product), (int[]){0, 1, 3, 2, 4});
    smelt_shape rows = *shape;
    rows.size[1] = chunks * width;
    product = expr_reshape(e, product, &rows);
    if (rows.size[1] == shape->size[1]) return product;
    smelt_apply_desc slice = {.operation = SMELT_OPERATION_SLICE, .inputs = {product}};
    for (int d = 0; d < 4; d++) slice.stops[d] = shape->size[d], slice.steps[d] = 1;
    return expr_apply(e, &slice);
}
