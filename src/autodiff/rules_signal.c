/* Derivatives of transforms of signals. */
#include "autodiff/rules.h"

smelt_array *vjp_hadamard(struct expression *e, const struct node *node, int input, smelt_array *g) {
    smelt_apply_desc desc = node->desc;
    (void)input;
    desc.inputs[0] = g;
    desc.reverse = !desc.reverse;
    return expr_apply(e, &desc);
}

/* The adjoint of the transform is the other one without its scale; then elements that were left out are 0,
 * and those that were added are dropped. Of a real input the caller takes the real part. */
smelt_array *vjp_fourier(struct expression *e, const struct node *node, int input, smelt_array *g) {
    const struct call call = {.desc = &node->desc, .name = "gradient"};
    const smelt_shape *shape = &node->inputs[input]->shape;
    smelt_apply_desc desc = {
        .operation = SMELT_OPERATION_FFT, .inputs = {g}, .axis_count = 1, .reverse = !node->desc.reverse};
    bool flat;
    int axis = 0;
    if (e->status == SMELT_OK) e->status = call_axis(&call, shape->ndim, &axis, &flat);
    if (e->status != SMELT_OK) return NULL;
    desc.axes[0] = axis;
    double n = (double)node->outputs[0]->shape.size[axis];
    smelt_array *h = expr_with(e, SMELT_OPERATION_MULTIPLY, expr_apply(e, &desc), desc.reverse ? n : 1 / n);
    return expr_sized(e, h, axis, shape->size[axis]);
}
