/* Jacobian-vector products: forwards over a tape's nodes with tangents. */
#include "autodiff/rules.h"
#include "autodiff/sweep.h"

#include <stdlib.h>
#include <string.h>

static smelt_array *tangent_of(const struct sweep *sweep, const struct node *node, int input) {
    return sweep_follows(sweep, node, input) ? *sweep_value(sweep, node->inputs[input]) : NULL;
}

/* ---- By rules. */

static smelt_array *elementwise(struct expression *e, const struct sweep *sweep, const struct node *node) {
    smelt_array *sum = NULL;
    struct node seen;
    node_for_rules(e, node, &seen);
    for (int i = 0; i < node->input_count; i++) {
        smelt_array *tangent = tangent_of(sweep, node, i);
        if (!tangent) continue;
        smelt_array *part = rule_find(node->desc.operation)->vjp(e, &seen, i, tangent);
        sum = sum ? expr_binary(e, SMELT_OPERATION_ADD, sum, part) : part;
    }
    return sum;
}

static smelt_array *jointly(struct expression *e, const struct sweep *sweep, const struct node *node) {
    struct node seen;
    node_for_rules(e, node, &seen);
    smelt_apply_desc desc = seen.desc;
    for (int i = 0; i < node->input_count; i++) {
        smelt_array *tangent = tangent_of(sweep, node, i);
        if (tangent)
            desc.inputs[i] = tangent;
        else if (node_differentiates(node, i))
            desc.inputs[i] = expr_zeros(e, seen.inputs[i]);
    }
    return expr_apply(e, &desc);
}

static smelt_array *each(struct expression *e, const struct sweep *sweep, const struct node *node) {
    smelt_array *sum = NULL;
    struct node seen;
    node_for_rules(e, node, &seen);
    for (int i = 0; i < node->input_count; i++) {
        smelt_apply_desc desc = seen.desc;
        desc.inputs[i] = tangent_of(sweep, node, i);
        if (!desc.inputs[i]) continue;
        smelt_array *part = expr_apply(e, &desc);
        sum = sum ? expr_binary(e, SMELT_OPERATION_ADD, sum, part) : part;
    }
    return sum;
}

/* ---- As the VJP of the VJP, which is linear in its cotangents u: its gradient by u, for the tangents as
 * cotangents, is the tangent of the output. */

struct twice {
    smelt_tape *tape;
    int output_count, input_count;
    smelt_array **cotangents; /* u, one an output */
    smelt_array **gradients;  /* by the inputs, NULL where 0 */
    smelt_array **results;    /* one an output */
};

static smelt_status make_gradients(const struct sweep *sweep, const struct node *node, struct twice *twice) {
    for (int o = 0; o < node->output_count; o++) {
        struct expression e = {0};
        TRY(expr_close(&e, expr_zeros(&e, node->outputs[o]), &twice->cotangents[o]));
        TRY(smelt_tape_watch(twice->tape, twice->cotangents[o]));
    }
    if (node->custom) return node_custom_gradients(node, twice->cotangents, twice->gradients);
    for (int i = 0; i < node->input_count; i++)
        if (tangent_of(sweep, node, i))
            TRY(node_gradient(node, i, twice->cotangents[0], &twice->gradients[i]));
    return SMELT_OK;
}

/* The gradients that meet a tangent, with it. */
static smelt_status pull_back(const struct sweep *sweep, const struct node *node, struct twice *twice) {
    smelt_array **lists = calloc(2 * (size_t)node->input_count, sizeof(smelt_array *));
    if (!lists) return fail_out_of_memory(2 * (size_t)node->input_count * sizeof(smelt_array *));
    smelt_array **outputs = lists, **tangents = lists + node->input_count;
    int count = 0;
    for (int i = 0; i < node->input_count; i++) {
        smelt_array *tangent = tangent_of(sweep, node, i);
        if (!tangent || !twice->gradients[i]) continue;
        outputs[count] = twice->gradients[i];
        tangents[count++] = tangent;
    }
    smelt_status status = smelt_tape_vjp(twice->tape, outputs, count, tangents, twice->cotangents,
                                         node->output_count, twice->results);
    free(lists);
    return status;
}

static smelt_status by_vjp_of_vjp(const struct sweep *sweep, const struct node *node,
                                  smelt_array **tangents) {
    size_t count = 2 * (size_t)node->output_count + (size_t)node->input_count;
    smelt_array **block = calloc(count, sizeof(smelt_array *));
    struct twice twice = {.output_count = node->output_count, .input_count = node->input_count};
    if (!block) return fail_out_of_memory(count * sizeof(smelt_array *));
    twice.cotangents = block;
    twice.results = block + node->output_count;
    twice.gradients = block + 2 * node->output_count;
    smelt_status status = smelt_tape_begin(&twice.tape);
    if (status == SMELT_OK) status = make_gradients(sweep, node, &twice);
    if (status == SMELT_OK) status = smelt_tape_end(twice.tape);
    if (status == SMELT_OK) status = pull_back(sweep, node, &twice);
    if (status == SMELT_OK) {
        memcpy(tangents, twice.results, (size_t)node->output_count * sizeof *tangents);
        memset(twice.results, 0, (size_t)node->output_count * sizeof *tangents);
    }
    smelt_tape_release(twice.tape);
    for (size_t i = 0; i < count; i++) smelt_array_release(block[i]);
    free(block);
    return status;
}

/* ---- A node. */

static smelt_status by_function(const struct sweep *sweep, const struct node *node, smelt_array **tangents) {
    const struct custom *custom = node->custom;
    struct expression e = {0};
    smelt_array **inputs = calloc((size_t)node->input_count, sizeof(smelt_array *));
    if (!inputs) return fail_out_of_memory((size_t)node->input_count * sizeof(smelt_array *));
    for (int i = 0; i < node->input_count; i++) {
        inputs[i] = tangent_of(sweep, node, i);
        if (!inputs[i]) inputs[i] = expr_zeros(&e, node->inputs[i]);
    }
    smelt_status status = e.status;
    if (status == SMELT_OK)
        status = custom->desc.jvp(custom->desc.context, node->inputs, node->outputs, inputs, tangents);
    for (int o = 0; o < node->output_count && status == SMELT_OK; o++)
        if (tangents[o] && !shape_equal(&tangents[o]->shape, &node->outputs[o]->shape))
            status = fail(SMELT_ERROR_INVALID_ARGUMENT,
                          "the JVP of '%s' returned a tangent of shape %s for output %d, expected %s",
                          custom->name, shape_print(&tangents[o]->shape).text, o,
                          shape_print(&node->outputs[o]->shape).text);
    smelt_array *none;
    if (e.status == SMELT_OK) e.status = SMELT_ERROR_INTERNAL; /* only its arrays are given back */
    (void)expr_close(&e, NULL, &none);
    free(inputs);
    return status;
}

static smelt_status by_rule(const struct sweep *sweep, const struct node *node, enum linearity linearity,
                            smelt_array **tangent) {
    struct expression e = {0};
    smelt_array *output = node->outputs[0];
    smelt_array *raw = linearity == LINEAR_ELEMENTWISE ? elementwise(&e, sweep, node)
                       : linearity == LINEAR_JOINTLY   ? jointly(&e, sweep, node)
                                                       : each(&e, sweep, node);
    return expr_close(&e, expr_as(&e, expr_broadcast(&e, raw, &output->shape), output), tangent);
}

/* Of the dtypes of the outputs. */
static smelt_status give(struct sweep *sweep, const struct node *node, smelt_array **tangents) {
    for (int o = 0; o < node->output_count; o++) {
        smelt_array **value = sweep_value(sweep, node->outputs[o]);
        if (!tangents[o]) continue;
        struct expression e = {0};
        smelt_array *converted;
        TRY(expr_close(&e, expr_as(&e, tangents[o], node->outputs[o]), &converted));
        smelt_array_release(*value);
        *value = converted;
    }
    return SMELT_OK;
}

static smelt_status forward_through(struct sweep *sweep, const struct node *node) {
    enum linearity linearity = node->custom ? LINEAR_NOT : rule_find(node->desc.operation)->linearity;
    /* A rule that multiplies by a conjugate does not serve tangents. */
    if (linearity == LINEAR_ELEMENTWISE && node_is_complex(node)) linearity = LINEAR_NOT;
    smelt_array **tangents = calloc((size_t)node->output_count, sizeof(smelt_array *));
    if (!tangents) return fail_out_of_memory((size_t)node->output_count * sizeof(smelt_array *));
    smelt_status status = node->custom && node->custom->desc.jvp ? by_function(sweep, node, tangents)
                          : linearity == LINEAR_NOT              ? by_vjp_of_vjp(sweep, node, tangents)
                                                                 : by_rule(sweep, node, linearity, tangents);
    if (status == SMELT_OK) status = give(sweep, node, tangents);
    for (int o = 0; o < node->output_count; o++) smelt_array_release(tangents[o]);
    free(tangents);
    return status;
}

/* ---- All nodes. */

smelt_status smelt_tape_jvp(smelt_tape *tape, smelt_array *const *inputs, int input_count,
                            smelt_array *const *tangents, smelt_array *const *outputs, int output_count,
                            smelt_array **output_tangents) {
    struct sweep sweep;
    TRY(sweep_begin(&sweep, "jvp", tape, outputs, output_count, inputs, input_count));
    smelt_status status = sweep_seed(&sweep, "jvp: tangent", inputs, input_count, tangents);
    for (int n = 0; n < tape->node_count && status == SMELT_OK; n++) {
        const struct node *node = &tape->nodes[n];
        if (!sweep_meets(&sweep, node, false)) continue;
        bool any = false;
        for (int i = 0; i < node->input_count; i++) any |= sweep_follows(&sweep, node, i);
        if (any) status = node_refuse_complex(node);
        if (any && status == SMELT_OK) status = forward_through(&sweep, node);
    }
    return sweep_end(&sweep, status, outputs, output_count, output_tangents);
}
