/* Shared by the two sweeps over a tape. A sweep's data about an array is at the array's slot in the tape's
 * table of handles, which does not change while the tape is busy. */
#include "array/dtype.h"
#include "autodiff/sweep.h"

#include <stdlib.h>

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
        if (!dtype_is_inexact(array->dtype))
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "%s: %s %d is %s, expected a float dtype or complex64",
                        what, input ? "input" : "output", at, smelt_dtype_name(array->dtype));
    }
    return SMELT_OK;
}

static smelt_status open_tables(smelt_tape *tape, struct sweep *sweep) {
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

static void close_tables(struct sweep *sweep) {
    for (size_t i = 0; i < sweep->tape->capacity; i++) smelt_array_release(sweep->values[i]);
    free(sweep->values);
    free(sweep->reached);
    sweep->tape->busy--;
}

/* Marks what depends on `from`, and what `to` depends on: only nodes in between matter. */
static void mark(struct sweep *sweep, smelt_array *const *from, int from_count, smelt_array *const *to,
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
                       sweep->reached[tape_slot(tape, node->inputs[i])] && node_differentiates(node, i);
        for (int o = 0; o < node->output_count && reached; o++)
            sweep->reached[tape_slot(tape, node->outputs[o])] = 1;
    }
    for (int n = tape->node_count - 1; n >= 0; n--) {
        const struct node *node = &tape->nodes[n];
        bool wanted = false;
        for (int o = 0; o < node->output_count; o++)
            wanted |= sweep->wanted[tape_slot(tape, node->outputs[o])];
        for (int i = 0; i < node->input_count && wanted; i++)
            if (smelt_tape_tracks(tape, node->inputs[i]) && node_differentiates(node, i))
                sweep->wanted[tape_slot(tape, node->inputs[i])] = 1;
    }
}

smelt_array **sweep_value(const struct sweep *sweep, const smelt_array *array) {
    return &sweep->values[tape_slot(sweep->tape, array)];
}

bool sweep_follows(const struct sweep *sweep, const struct node *node, int input) {
    if (!smelt_tape_tracks(sweep->tape, node->inputs[input]) || !node_differentiates(node, input))
        return false;
    size_t slot = tape_slot(sweep->tape, node->inputs[input]);
    return sweep->reached[slot] && sweep->wanted[slot];
}

bool sweep_meets(const struct sweep *sweep, const struct node *node, bool outputs) {
    for (int i = 0; i < (outputs ? node->output_count : node->input_count); i++) {
        const smelt_array *array = (outputs ? node->outputs : node->inputs)[i];
        if (smelt_tape_tracks(sweep->tape, array) && *sweep_value(sweep, array)) return true;
    }
    return false;
}

smelt_status sweep_begin(struct sweep *sweep, const char *what, smelt_tape *tape, smelt_array *const *outputs,
                         int output_count, smelt_array *const *inputs, int input_count) {
    TRY(check_lists(what, tape, outputs, output_count, inputs, input_count));
    TRY(open_tables(tape, sweep));
    mark(sweep, inputs, input_count, outputs, output_count);
    return SMELT_OK;
}

/* ---- Sums of contributions. */

smelt_status sweep_add(smelt_array **sum, smelt_array *more) {
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

/* A caller's value for an array: of its shape; NULL: ones. */
static smelt_status seed_of(const char *what, int index, smelt_array *array, smelt_array *given,
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
    return expr_close(&e, expr_as(&e, given, array), out);
}

smelt_status sweep_seed(struct sweep *sweep, const char *what, smelt_array *const *arrays, int count,
                        smelt_array *const *given) {
    for (int i = 0; i < count; i++) {
        smelt_array *seed;
        TRY(seed_of(what, i, arrays[i], given ? given[i] : NULL, &seed));
        smelt_status status = SMELT_OK;
        if (smelt_tape_tracks(sweep->tape, arrays[i]))
            status = sweep_add(sweep_value(sweep, arrays[i]), seed);
        smelt_array_release(seed);
        TRY(status);
    }
    return SMELT_OK;
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
                  : node_zeros_like(arrays[done], &results[done]);
    }
    if (status == SMELT_OK) return SMELT_OK;
    for (int i = 0; i < done - 1; i++) {
        smelt_array_release(results[i]);
        results[i] = NULL;
    }
    return status;
}

smelt_status sweep_end(struct sweep *sweep, smelt_status status, smelt_array *const *arrays, int count,
                       smelt_array **results) {
    if (status == SMELT_OK) status = take_results(sweep, arrays, count, results);
    close_tables(sweep);
    return status;
}
