/* Products with the derivative of what a tape recorded: backwards over its nodes with cotangents, forwards
 * with tangents. What a sweep knows of an array lies at the array's slot in the tape's table of handles,
 * which does not change while the tape is busy. */
#include "array/dtype.h"
#include "autodiff/rules.h"
#include "autodiff/sweep.h"

#include <stdlib.h>
#include <string.h>

/* ---- Sums of contributions. */

static smelt_status add_to(smelt_array **sum, smelt_array *more) {
    smelt_array *both;
    if (!*sum) {
        *sum = smelt_array_retain(more);
        return SMELT_OK;
    }
    TRY(smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_ADD, .inputs = {*sum, more}}, &both));
    smelt_array_release(*sum);
    *sum = both;
    return SMELT_OK;
}

static smelt_status zeros_like(smelt_array *array, smelt_array **zeros) {
    return smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_ZEROS,
                                           .dtype = array->dtype,
                                           .shape = array->shape,
                                           .device = smelt_array_device(array)},
                       zeros);
}

/* What a caller gives for an array: of its shape; NULL: ones. */
static smelt_status seed(const char *what, int index, smelt_array *array, smelt_array *given,
                         smelt_array **out) {
    if (!given)
        return smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_ONES,
                                               .dtype = array->dtype,
                                               .shape = array->shape,
                                               .device = smelt_array_device(array)},
                           out);
    if (!shape_equal(&given->shape, &array->shape))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s %d has shape %s, expected %s", what, index,
                    shape_print(&given->shape).text, shape_print(&array->shape).text);
    struct expression e = {0};
    return expression_close(&e, e_as(&e, given, array), out);
}

/* ---- Sweeps. */

static bool is_float(const smelt_array *array) {
    return dtype_is_float(array->dtype) || array->dtype == SMELT_COMPLEX64;
}

bool tape_input_is_differentiable(const struct node *node, int input) {
    if (!is_float(node->inputs[input])) return false;
    if (node->custom) return true;
    if (!rule_of(node->desc.operation) || !is_float(node->outputs[0])) return false;
    return node->desc.operation != SMELT_OPERATION_WHERE || input > 0;
}

static smelt_status sweep_open(smelt_tape *tape, struct sweep *sweep) {
    *sweep = (struct sweep){.tape = tape};
    sweep->values = calloc(tape->capacity + 1, sizeof(smelt_array *));
    sweep->reached = calloc(tape->capacity + 1, 2);
    sweep->wanted = sweep->reached ? sweep->reached + tape->capacity : NULL;
    if (!sweep->values || !sweep->reached) {
        free(sweep->values);
        free(sweep->reached);
        return fail_out_of_memory(tape->capacity * sizeof(smelt_array *));
    }
    tape->busy++;
    return SMELT_OK;
}

static void sweep_close(struct sweep *sweep) {
    for (size_t i = 0; i < sweep->tape->capacity; i++) smelt_array_release(sweep->values[i]);
    free(sweep->values);
    free(sweep->reached);
    sweep->tape->busy--;
}

/* Marks what depends on `from`, and what `to` depends on: only nodes in between matter. */
static void sweep_mark(struct sweep *sweep, smelt_array *const *from, int from_count, smelt_array *const *to,
                       int to_count) {
    const smelt_tape *tape = sweep->tape;
    for (int i = 0; i < from_count; i++)
        if (smelt_tape_tracks(tape, from[i])) sweep->reached[tape_slot(tape, from[i])] = 1;
    for (int i = 0; i < to_count; i++)
        if (smelt_tape_tracks(tape, to[i])) sweep->wanted[tape_slot(tape, to[i])] = 1;
    for (int n = 0; n < tape->node_count; n++) {
        const struct node *node = &tape->nodes[n];
        bool reached = false;
        for (int i = 0; i < node->input_count; i++)
            reached |= smelt_tape_tracks(tape, node->inputs[i]) &&
                       sweep->reached[tape_slot(tape, node->inputs[i])] &&
                       tape_input_is_differentiable(node, i);
        for (int o = 0; o < node->output_count && reached; o++)
            sweep->reached[tape_slot(tape, node->outputs[o])] = 1;
    }
    for (int n = tape->node_count - 1; n >= 0; n--) {
        const struct node *node = &tape->nodes[n];
        bool wanted = false;
        for (int o = 0; o < node->output_count; o++)
            wanted |= sweep->wanted[tape_slot(tape, node->outputs[o])];
        for (int i = 0; i < node->input_count && wanted; i++)
            if (smelt_tape_tracks(tape, node->inputs[i]) && tape_input_is_differentiable(node, i))
                sweep->wanted[tape_slot(tape, node->inputs[i])] = 1;
    }
}

smelt_array **sweep_value(const struct sweep *sweep, const smelt_array *array) {
    return &sweep->values[tape_slot(sweep->tape, array)];
}

bool sweep_follows(const struct sweep *sweep, const struct node *node, int input) {
    if (!smelt_tape_tracks(sweep->tape, node->inputs[input]) || !tape_input_is_differentiable(node, input))
        return false;
    size_t slot = tape_slot(sweep->tape, node->inputs[input]);
    return sweep->reached[slot] && sweep->wanted[slot];
}

static bool node_has_value(const struct sweep *sweep, const struct node *node, bool outputs) {
    for (int i = 0; i < (outputs ? node->output_count : node->input_count); i++) {
        const smelt_array *array = (outputs ? node->outputs : node->inputs)[i];
        if (smelt_tape_tracks(sweep->tape, array) && *sweep_value(sweep, array)) return true;
    }
    return false;
}

static smelt_status refuse_complex(const struct node *node) {
    for (int i = 0; i < node->input_count + node->output_count; i++)
        if (node->inputs[i]->dtype == SMELT_COMPLEX64)
            return fail(SMELT_ERROR_UNSUPPORTED, "derivatives of complex64 arrays are not supported (in %s)",
                        node->custom ? node->custom->name : smelt_operation_name(node->desc.operation));
    return SMELT_OK;
}

/* ---- Backwards. */

void node_for_rules(struct expression *e, const struct node *node, struct node *seen) {
    *seen = *node;
    seen->inputs = seen->desc.inputs;
    seen->desc.weak = 0;
    for (int i = 0; i < node->input_count; i++) {
        if (!(node->desc.weak >> i & 1) || !tape_input_is_differentiable(node, i)) continue;
        smelt_array *converted = e_as(e, node->inputs[i], node->outputs[0]);
        if (converted) seen->inputs[i] = converted;
    }
}

smelt_status node_gradient(const struct node *node, int input, smelt_array *g, smelt_array **gradient) {
    struct expression e = {0};
    smelt_array *x = node->inputs[input];
    struct node seen;
    node_for_rules(&e, node, &seen);
    smelt_array *raw = rule_of(node->desc.operation)->vjp(&e, &seen, input, g);
    return expression_close(&e, e_as(&e, e_sum_to(&e, raw, &x->shape), x), gradient);
}

/* A custom function's gradients by all its inputs; NULL where they are 0. cotangents: one an output, NULL for
 * zeros. */
smelt_status custom_gradients(const struct node *node, smelt_array *const *cotangents,
                              smelt_array **gradients) {
    const struct custom *custom = node->custom;
    if (!custom->desc.vjp)
        return fail(
            SMELT_ERROR_UNSUPPORTED,
            "the gradient goes through '%s', which has no VJP: give it one with a custom function, or cut "
            "the way with stop_gradient",
            custom->name);
    smelt_array **full = calloc((size_t)node->output_count, sizeof(smelt_array *));
    if (!full) return fail_out_of_memory((size_t)node->output_count * sizeof(smelt_array *));
    smelt_status status = SMELT_OK;
    for (int o = 0; o < node->output_count && status == SMELT_OK; o++) {
        if (cotangents[o])
            full[o] = smelt_array_retain(cotangents[o]);
        else
            status = zeros_like(node->outputs[o], &full[o]);
    }
    if (status == SMELT_OK)
        status = custom->desc.vjp(custom->desc.context, node->inputs, node->outputs, full, gradients);
    for (int o = 0; o < node->output_count; o++) smelt_array_release(full[o]);
    free(full);
    for (int i = 0; i < node->input_count && status == SMELT_OK; i++)
        if (gradients[i] && !shape_equal(&gradients[i]->shape, &node->inputs[i]->shape))
            status =
                fail(SMELT_ERROR_INVALID_ARGUMENT,
                     "the VJP of '%s' gave a gradient of shape %s for input %d, expected %s", custom->name,
                     shape_print(&gradients[i]->shape).text, i, shape_print(&node->inputs[i]->shape).text);
    return status;
}

static smelt_status back_through_custom(struct sweep *sweep, const struct node *node) {
    int count = node->input_count + node->output_count;
    smelt_array **gradients = calloc((size_t)count, sizeof(smelt_array *));
    if (!gradients) return fail_out_of_memory((size_t)count * sizeof(smelt_array *));
    for (int o = 0; o < node->output_count; o++)
        gradients[node->input_count + o] = *sweep_value(sweep, node->outputs[o]);
    smelt_status status = custom_gradients(node, gradients + node->input_count, gradients);
    for (int i = 0; i < node->input_count; i++) {
        if (gradients[i] && status == SMELT_OK && sweep_follows(sweep, node, i)) {
            struct expression e = {0};
            smelt_array *gradient = NULL;
            status = expression_close(&e, e_as(&e, gradients[i], node->inputs[i]), &gradient);
            if (status == SMELT_OK) status = add_to(sweep_value(sweep, node->inputs[i]), gradient);
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
    TRY(refuse_complex(node));
    if (node->custom) return back_through_custom(sweep, node);
    for (int i = 0; i < node->input_count; i++) {
        smelt_array *gradient;
        if (!sweep_follows(sweep, node, i)) continue;
        TRY(node_gradient(node, i, *sweep_value(sweep, node->outputs[0]), &gradient));
        smelt_status status = add_to(sweep_value(sweep, node->inputs[i]), gradient);
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

/* The results: handles of their own, zeros where nothing was found. */
static smelt_status take_results(const struct sweep *sweep, smelt_array *const *arrays, int count,
                                 smelt_array **results) {
    smelt_status status = SMELT_OK;
    int done = 0;
    for (; done < count && status == SMELT_OK; done++) {
        smelt_array *value =
            smelt_tape_tracks(sweep->tape, arrays[done]) ? *sweep_value(sweep, arrays[done]) : NULL;
        status =
            value ? smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_IDENTITY, .inputs = {value}},
                                &results[done])
                  : zeros_like(arrays[done], &results[done]);
    }
    if (status == SMELT_OK) return SMELT_OK;
    for (int i = 0; i < done - 1; i++) {
        smelt_array_release(results[i]);
        results[i] = NULL;
    }
    return status;
}

static smelt_status check_lists(const char *what, const smelt_tape *tape, smelt_array *const *outputs,
                                int output_count, smelt_array *const *inputs, int input_count) {
    if (!tape) return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: tape is NULL", what);
    if (output_count < 0 || input_count < 0 || (output_count && !outputs) || (input_count && !inputs))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: a list is NULL or has a negative length", what);
    for (int i = 0; i < input_count + output_count; i++) {
        bool input = i < input_count;
        const smelt_array *array = input ? inputs[i] : outputs[i - input_count];
        int at = input ? i : i - input_count;
        if (!array)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %s %d is NULL", what, input ? "input" : "output",
                        at);
        if (!dtype_is_float(array->dtype))
            return fail(array->dtype == SMELT_COMPLEX64 ? SMELT_ERROR_UNSUPPORTED
                                                        : SMELT_ERROR_INVALID_ARGUMENT,
                        "%s: %s %d is %s, expected a float dtype", what, input ? "input" : "output", at,
                        smelt_dtype_name(array->dtype));
    }
    return SMELT_OK;
}

smelt_status smelt_tape_vjp(smelt_tape *tape, smelt_array *const *outputs, int output_count,
                            smelt_array *const *cotangents, smelt_array *const *inputs, int input_count,
                            smelt_array **gradients) {
    struct sweep sweep;
    TRY(check_lists("vjp", tape, outputs, output_count, inputs, input_count));
    TRY(sweep_open(tape, &sweep));
    sweep_mark(&sweep, inputs, input_count, outputs, output_count);
    smelt_status status = SMELT_OK;
    for (int i = 0; i < output_count && status == SMELT_OK; i++) {
        smelt_array *given;
        status = seed("vjp: cotangent", i, outputs[i], cotangents ? cotangents[i] : NULL, &given);
        if (status != SMELT_OK) break;
        if (smelt_tape_tracks(tape, outputs[i])) status = add_to(sweep_value(&sweep, outputs[i]), given);
        smelt_array_release(given);
    }
    for (int n = tape->node_count - 1; n >= 0 && status == SMELT_OK; n--) {
        const struct node *node = &tape->nodes[n];
        if (!node_has_value(&sweep, node, true)) continue;
        status = back_through(&sweep, node);
        for (int o = 0; o < node->output_count; o++) {
            smelt_array **value = sweep_value(&sweep, node->outputs[o]);
            if (!*value || is_among(node->outputs[o], inputs, input_count)) continue;
            smelt_array_release(*value);
            *value = NULL;
        }
    }
    if (status == SMELT_OK) status = take_results(&sweep, inputs, input_count, gradients);
    sweep_close(&sweep);
    return status;
}

/* ---- Forwards. */

smelt_status smelt_tape_jvp(smelt_tape *tape, smelt_array *const *inputs, int input_count,
                            smelt_array *const *tangents, smelt_array *const *outputs, int output_count,
                            smelt_array **output_tangents) {
    struct sweep sweep;
    TRY(check_lists("jvp", tape, outputs, output_count, inputs, input_count));
    TRY(sweep_open(tape, &sweep));
    sweep_mark(&sweep, inputs, input_count, outputs, output_count);
    smelt_status status = SMELT_OK;
    for (int i = 0; i < input_count && status == SMELT_OK; i++) {
        smelt_array *given;
        status = seed("jvp: tangent", i, inputs[i], tangents ? tangents[i] : NULL, &given);
        if (status != SMELT_OK) break;
        if (smelt_tape_tracks(tape, inputs[i])) status = add_to(sweep_value(&sweep, inputs[i]), given);
        smelt_array_release(given);
    }
    for (int n = 0; n < tape->node_count && status == SMELT_OK; n++) {
        const struct node *node = &tape->nodes[n];
        if (!node_has_value(&sweep, node, false)) continue;
        bool any = false;
        for (int i = 0; i < node->input_count; i++) any |= sweep_follows(&sweep, node, i);
        if (any) status = refuse_complex(node);
        if (any && status == SMELT_OK) status = forward_through(&sweep, node);
    }
    if (status == SMELT_OK) status = take_results(&sweep, outputs, output_count, output_tangents);
    sweep_close(&sweep);
    return status;
}
