/* Derivatives of softmax, its logarithm, norms and rotary positions, by operations of their own: kernels
 * unless an outer tape records them. */
#include "autodiff/rules.h"

static smelt_array *softmax_gradient(struct expression *e, const struct node *node, smelt_operation operation,
                                     smelt_array *g) {
    smelt_apply_desc desc = node->desc;
    desc.operation = operation;
    desc.inputs[0] = node->outputs[0];
    desc.inputs[1] = g;
    desc.inputs[2] = NULL;
    return expr_apply(e, &desc);
}

smelt_array *vjp_softmax(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    return softmax_gradient(e, node, SMELT_OPERATION_SOFTMAX_VJP, g);
}

smelt_array *vjp_log_softmax(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    return softmax_gradient(e, node, SMELT_OPERATION_LOG_SOFTMAX_VJP, g);
}

/* By x; by weight the cotangent times the normalised rows; by bias the cotangent. The caller sums over rows.
 */
smelt_array *vjp_norm(struct expression *e, const struct node *node, int input, smelt_array *g) {
    bool layer = node->desc.operation == SMELT_OPERATION_LAYER_NORM;
    const double *numbers = node->desc.numbers;
    if (input == 2) return g;
    smelt_apply_desc desc = {.operation = layer ? SMELT_OPERATION_LAYER_NORM : SMELT_OPERATION_RMS_NORM,
                             .inputs = {expr_astype(e, node->inputs[0], SMELT_FLOAT32)},
                             .numbers = {numbers[0]}};
    if (input == 1)
        return expr_binary(e, SMELT_OPERATION_MULTIPLY, expr_astype(e, g, SMELT_FLOAT32),
                           expr_apply(e, &desc));
    desc.operation = layer ? SMELT_OPERATION_LAYER_NORM_VJP : SMELT_OPERATION_RMS_NORM_VJP;
    desc.inputs[0] = node->inputs[0];
    desc.inputs[1] = g;
    if (node->input_count > 1) desc.inputs[2] = node->inputs[1];
    return expr_apply(e, &desc);
}

/* The rotation back. */
smelt_array *vjp_rope(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    smelt_apply_desc desc = node->desc;
    desc.inputs[0] = g;
    for (int i = 1; i < node->input_count; i++) desc.inputs[i] = node->inputs[i];
    desc.reverse = !desc.reverse;
    return expr_apply(e, &desc);
}

/* Elements are code * scale + bias: of a group's cotangents the sum, for scales each times its code. */
smelt_array *vjp_dequantize(struct expression *e, const struct node *node, int input, smelt_array *g) {
    smelt_array *scales = node->inputs[input];
    smelt_apply_desc desc = node->desc;
    desc.dtype = g ? g->dtype : SMELT_NO_DTYPE;
    smelt_dtype wide = desc.dtype == SMELT_FLOAT64 ? SMELT_FLOAT64 : SMELT_FLOAT32;
    if (input == 1) { /* scales 1 and biases 0 give the codes */
        desc.inputs[0] = node->inputs[0];
        desc.inputs[2] = expr_astype(e, expr_zeros(e, scales), wide);
        desc.inputs[1] = expr_with(e, SMELT_OPERATION_ADD, desc.inputs[2], 1);
        desc.dtype = wide;
        g = expr_binary(e, SMELT_OPERATION_MULTIPLY, expr_astype(e, g, wide), expr_apply(e, &desc));
    }
    smelt_shape shape = scales->shape;
    if (shape.ndim == SMELT_MAX_DIMENSIONS && e->status == SMELT_OK)
        e->status =
            fail(SMELT_ERROR_LIMIT, "the gradient of dequantize takes fewer than %d dimensions", shape.ndim);
    if (e->status != SMELT_OK) return NULL;
    shape.size[shape.ndim++] = node->desc.starts[1];
    return expr_reduce(e, SMELT_OPERATION_SUM, expr_reshape(e, g, &shape), UINT32_C(1) << (shape.ndim - 1),
                       false);
}
