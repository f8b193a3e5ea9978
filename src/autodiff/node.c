/* One recorded node: which of its inputs have derivatives, and their gradients by its rule or its custom
 * function. */
#include "array/dtype.h"
#include "autodiff/rules.h"
#include "autodiff/sweep.h"

#include <stdlib.h>

bool node_differentiates(const struct node *node, int input) {
    if (!dtype_is_inexact(node->inputs[input]->dtype)) return false;
    if (node->custom) return true;
    if (!rule_find(node->desc.operation) || !dtype_is_inexact(node->outputs[0]->dtype)) return false;
    if (node->desc.operation == SMELT_OPERATION_ROPE) return input == 0;
    return node->desc.operation != SMELT_OPERATION_WHERE || input > 0;
}

smelt_status node_zeros_like(smelt_array *array, smelt_array **zeros) {
    return smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_ZEROS,
                                           .dtype = array->dtype,
                                           .shape = array->shape,
                                           .device = smelt_array_device(array)},
                       zeros);
}

void node_for_rules(struct expression *e, const struct node *node, struct node *seen) {
    *seen = *node;
    seen->inputs = seen->desc.inputs;
    seen->desc.weak = 0;
    for (int i = 0; i < node->input_count; i++) {
        if (!(node->desc.weak >> i & 1) || !node_differentiates(node, i)) continue;
        smelt_array *converted = expr_as(e, node->inputs[i], node->outputs[0]);
        if (converted) seen->inputs[i] = converted;
    }
}

smelt_status node_gradient(const struct node *node, int input, smelt_array *g, smelt_array **gradient) {
    struct expression e = {0};
    smelt_array *x = node->inputs[input];
    struct node seen;
    node_for_rules(&e, node, &seen);
    smelt_array *raw = node_is_complex(&seen) ? vjp_of_complex(&e, &seen, input, g)
                                              : rule_find(node->desc.operation)->vjp(&e, &seen, input, g);
    return expr_close(&e, expr_as(&e, expr_sum_to(&e, raw, &x->shape), x), gradient);
}

/* A custom function's gradients by all its inputs; NULL where they are 0. cotangents: one an output, NULL for
 * zeros. */
smelt_status node_custom_gradients(const struct node *node, smelt_array *const *cotangents,
                                   smelt_array **gradients) {
    const struct custom *custom = node->custom;
    if (!custom->desc.vjp)
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "the gradient goes through '%s', which has no VJP: give it one with a custom function, "
                    "or block the gradient with stop_gradient",
                    custom->name);
    smelt_array **full = calloc((size_t)node->output_count, sizeof(smelt_array *));
    if (!full) return fail_out_of_memory((size_t)node->output_count * sizeof(smelt_array *));
    smelt_status status = SMELT_OK;
    for (int o = 0; o < node->output_count && status == SMELT_OK; o++) {
        if (cotangents[o])
            full[o] = smelt_array_retain(cotangents[o]);
        else
            status = node_zeros_like(node->outputs[o], &full[o]);
    }
    if (status == SMELT_OK)
        status = custom->desc.vjp(custom->desc.context, node->inputs, node->outputs, full, gradients);
    for (int o = 0; o < node->output_count; o++) smelt_array_release(full[o]);
    free(full);
    for (int i = 0; i < node->input_count && status == SMELT_OK; i++)
        if (gradients[i] && !shape_equal(&gradients[i]->shape, &node->inputs[i]->shape))
            status = fail(SMELT_ERROR_INVALID_ARGUMENT,
                          "the VJP of '%s' returned a gradient of shape %s for input %d, expected %s",
                          custom->name, shape_print(&gradients[i]->shape).text, i,
                          shape_print(&node->inputs[i]->shape).text);
    return status;
}
