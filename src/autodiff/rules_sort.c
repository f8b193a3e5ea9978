/* The derivative of sorting: each element's cotangent is that of the place it was moved to. */
#include "autodiff/rules.h"

smelt_array *vjp_sort(struct expression *e, const struct node *node, int input, smelt_array *g) {
    (void)input;
    smelt_apply_desc desc = node->desc;
    int axis = desc.axis_count ? desc.axes[0] : 0;
    desc.operation = SMELT_OPERATION_ARGSORT;
    desc.inputs[0] = node->inputs[0];
    smelt_array *places = expr_apply(e, &desc);
    smelt_array *back = expr_apply(
        e, &(smelt_apply_desc){
               .operation = SMELT_OPERATION_ARGSORT, .inputs = {places}, .axes = {axis}, .axis_count = 1});
    smelt_array *moved = expr_apply(e, &(smelt_apply_desc){.operation = SMELT_OPERATION_TAKE_ALONG_AXIS,
                                                           .inputs = {g, back},
                                                           .axes = {axis},
                                                           .axis_count = 1});
    return expr_reshape(e, moved, &node->inputs[0]->shape);
}
