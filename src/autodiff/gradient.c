/* Vector-Jacobian products: backwards over a tape's nodes with cotangents. */
#include "autodiff/sweep.h"

#include <stdlib.h>

static smelt_status back_through_custom(struct sweep *sweep, const struct node *node) {
    int count = node->input_count + node->output_count;
    smelt_array **gradients = calloc((size_t)count, sizeof(smelt_array *));
    if (!gradients) return fail_out_of_memory((size_t)count * sizeof(smelt_array *));
    for (int o = 0; o < node->output_count; o++)
        gradients[node->input_count + o] = *sweep_value(sweep, node->outputs[o]);
    smelt_status status = node_custom_gradients(node, gradients + node->input_count, gradients);
    for (int i = 0; i < node->input_count; i++) {
        if (gradients[i] && status == SMELT_OK && sweep_follows(sweep, node, i)) {
            struct expression e = {0};
            smelt_array *gradient = NULL;
            status = expr_close(&e, expr_as(&e, gradients[i], node->inputs[i]), &gradient);
            if (status == SMELT_OK) status = sweep_add(sweep_value(sweep, node->inputs[i]), gradient);
            smelt_array_release(gradient);
        }
        smelt_array_release(gradients[i]);
    }
    free(gradients);
    return status;
}

static smelt_status back_through(struct sweep *sweep, const struct node *node) {
    bool any = false;
    for (int i = 0; i < node->input_count; i++) any |= sweep_follows(sweep, node, i);
    if (!any) return SMELT_OK;
    TRY(node_refuse_complex(node));
    if (node->custom) return back_through_custom(sweep, node);
    for (int i = 0; i < node->input_count; i++) {
        smelt_array *gradient;
        if (!sweep_follows(sweep, node, i)) continue;
        TRY(node_gradient(node, i, *sweep_value(sweep, node->outputs[0]), &gradient));
        smelt_status status = sweep_add(sweep_value(sweep, node->inputs[i]), gradient);
        smelt_array_release(gradient);
        TRY(status);
    }
    return SMELT_OK;
}

static bool is_among(const smelt_array *array, smelt_array *const *list, int count) {
    for (int i = 0; i < count; i++)
        if (list[i] == array) return true;
    return false;
}

smelt_status smelt_tape_vjp(smelt_tape *tape, smelt_array *const *outputs, int output_count,
                            smelt_array *const *cotangents, smelt_array *const *inputs, int input_count,
                            smelt_array **gradients) {
    struct sweep sweep;
    TRY(sweep_begin(&sweep, "vjp", tape, outputs, output_count, inputs, input_count));
    smelt_status status = sweep_seed(&sweep, "vjp: cotangent", outputs, output_count, cotangents);
    for (int n = tape->node_count - 1; n >= 0 && status == SMELT_OK; n--) {
        const struct node *node = &tape->nodes[n];
        if (!sweep_meets(&sweep, node, true)) continue;
        status = back_through(&sweep, node);
        for (int o = 0; o < node->output_count; o++) {
            smelt_array **value = sweep_value(&sweep, node->outputs[o]);
            if (!*value || is_among(node->outputs[o], inputs, input_count)) continue;
            smelt_array_release(*value);
            *value = NULL;
        }
    }
    return sweep_end(&sweep, status, inputs, input_count, gradients);
}
