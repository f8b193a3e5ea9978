/* Executes a session once: checks and binds the caller's arrays, runs the steps and copies outputs. */
#include "graph/execution.h"
#include "graph/branches.h"
#include "graph/crew.h"
#include "ops/program.h"

#include <stdlib.h>
#include <string.h>

struct execution {
    const smelt_session *session;
    const smelt_compiled *compiled;
    smelt_stream *stream;
    smelt_array **arrays; /* by value: fixed ones, and references to those of this execution */
    smelt_array **outputs;
    bool records; /* the stream is recording */
};

/* An array of the caller as the device reads it: there, without gaps. */
static smelt_status bind_input(struct execution *x, int index, smelt_array *given) {
    const smelt_graph *graph = x->compiled->graph;
    int value = graph->inputs[index].value;
    const struct graph_value *type = &graph->values[value];
    smelt_array *there, *dense;
    if (given->dtype != type->dtype || !shape_equal(&given->shape, &type->shape))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph '%s': input '%s' is %s %s, expected %s %s",
                    graph->name, graph->inputs[index].name, smelt_dtype_name(given->dtype),
                    shape_print(&given->shape).text, smelt_dtype_name(type->dtype),
                    shape_print(&type->shape).text);
    TRY(smelt_array_to(given, x->compiled->device, x->stream, &there));
    if (smelt_array_is_contiguous(there)) {
        x->arrays[value] = there;
        return SMELT_OK;
    }
    smelt_status status = program_output(x->compiled->device, x->stream, type->dtype, &type->shape, &dense);
    if (status == SMELT_OK) {
        smelt_apply_desc copy = {.operation = SMELT_OPERATION_IDENTITY,
                                 .inputs = {there},
                                 .device = x->compiled->device,
                                 .stream = x->stream};
        status = operation_apply_into(&copy, dense);
        if (status == SMELT_OK)
            x->arrays[value] = dense;
        else
            smelt_array_release(dense);
    }
    smelt_array_release(there);
    return status;
}

static int find_input(const smelt_graph *graph, const char *name) {
    for (int i = 0; i < graph->input_count; i++)
        if (strcmp(graph->inputs[i].name, name) == 0) return i;
    return -1;
}

static smelt_status bind_inputs(struct execution *x, const smelt_execute_desc *desc) {
    const smelt_graph *graph = x->compiled->graph;
    if (desc->input_count != graph->input_count || (graph->input_count && !desc->inputs))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph '%s': %d inputs are given, expected %d", graph->name,
                    desc->inputs ? desc->input_count : 0, graph->input_count);
    for (int i = 0; i < graph->input_count; i++) {
        const char *name = desc->input_names ? desc->input_names[i] : NULL;
        int index = name ? find_input(graph, name) : i;
        if (index < 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph '%s': there is no input '%s'", graph->name,
                        name);
        if (!desc->inputs[i] || x->arrays[graph->inputs[index].value])
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph '%s': input '%s' is %s", graph->name,
                        graph->inputs[index].name, desc->inputs[i] ? "given twice" : "NULL");
        TRY(bind_input(x, index, desc->inputs[i]));
    }
    return SMELT_OK;
}

static smelt_status check_into(const struct execution *x, int i, const smelt_array *into) {
    const smelt_graph *graph = x->compiled->graph;
    const struct graph_value *type = &graph->values[graph->outputs[i].value];
    bool fits = into->dtype == type->dtype && shape_equal(&into->shape, &type->shape) &&
                smelt_array_is_contiguous(into);
    const char *device = smelt_array_device(into);
    bool host = program_is_host(x->compiled->device);
    if (fits && (host ? program_is_host(device) : strcmp(device, x->compiled->device) == 0)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "graph '%s': the array for output '%s' is %s %s on %s, expected %s %s, row-contiguous, on %s",
                graph->name, graph->outputs[i].name, smelt_dtype_name(into->dtype),
                shape_print(&into->shape).text, device, smelt_dtype_name(type->dtype),
                shape_print(&type->shape).text, x->compiled->device);
}

static smelt_status bind_outputs(struct execution *x, const smelt_execute_desc *desc) {
    const smelt_graph *graph = x->compiled->graph;
    for (int i = 0; i < graph->output_count; i++) {
        int value = graph->outputs[i].value;
        smelt_array *into = desc->into ? desc->into[i] : NULL;
        if (into) TRY(check_into(x, i, into));
        x->outputs[i] = smelt_array_retain(into);
        if (!into)
            TRY(program_output(x->compiled->device, x->stream, graph->values[value].dtype,
                               &graph->values[value].shape, &x->outputs[i]));
        const struct place *place = &x->compiled->places[value];
        if (place->kind == PLACE_OUTPUT && place->index == i)
            x->arrays[value] = smelt_array_retain(x->outputs[i]);
    }
    return SMELT_OK;
}

static smelt_status bind_views(struct execution *x) {
    for (int v = 0; v < x->compiled->value_count; v++) {
        const struct place *place = &x->compiled->places[v];
        if (place->kind != PLACE_VIEW || x->session->fixed[v] || !x->arrays[place->root]) continue;
        TRY(execution_view(x->compiled, v, x->arrays[place->root], &x->arrays[v]));
    }
    return SMELT_OK;
}

/* ---- Steps. */

static smelt_status run_fused(struct execution *x, const struct step *step) {
    for (int k = 0; k < step->kernel_count; k++) {
        struct map map;
        fused_kernel_map(&step->kernels[k], x->arrays, x->compiled->device, x->stream, &map);
        TRY(map_run(&map));
    }
    return SMELT_OK;
}

/* While launches are only collected, their results are not computed and may hold indexes out of range. Nodes
 * that run nevertheless get zeros instead. Constants and the caller's inputs are valid. */
static smelt_status clear_inputs(const struct execution *x, const struct graph_node *node) {
    for (int i = 0; i < node->input_count; i++) {
        const struct place *place = &x->compiled->places[node->inputs[i]];
        if (place->kind == PLACE_VIEW) place = &x->compiled->places[place->root];
        if (place->kind != PLACE_CONSTANT && place->kind != PLACE_INPUT)
            TRY(array_fill_on(x->arrays[node->inputs[i]], x->stream, 0));
    }
    return SMELT_OK;
}

static bool has_float64(const struct execution *x, const struct graph_node *node) {
    bool found = false;
    for (int i = 0; i < node->input_count; i++) found |= x->arrays[node->inputs[i]]->dtype == SMELT_FLOAT64;
    return found;
}

static smelt_status run_operation(struct execution *x, const struct step *step) {
    const struct graph_node *node = &x->compiled->graph->nodes[step->node];
    if (program_is_only_collected(x->compiled->device) && has_float64(x, node)) TRY(clear_inputs(x, node));
    smelt_apply_desc desc = node->desc;
    for (int i = 0; i < node->input_count; i++) desc.inputs[i] = x->arrays[node->inputs[i]];
    desc.device = x->compiled->device;
    desc.stream = x->stream;
    return operation_apply_into(&desc, x->arrays[node->first]);
}

static smelt_status run_kernel(struct execution *x, const struct step *step) {
    const struct graph_node *node = &x->compiled->graph->nodes[step->node];
    smelt_array *inputs[SMELT_MAX_ARGUMENTS];
    if (program_is_only_collected(x->compiled->device)) return SMELT_OK; /* it is stored as text */
    for (int i = 0; i < node->input_count; i++) inputs[i] = x->arrays[node->inputs[i]];
    return graph_launch_run(node->launch, inputs, x->arrays + node->first, x->compiled->device, x->stream);
}

/* An opaque operation, whose results are copied to their places. */
static smelt_status run_call(struct execution *x, const struct step *step) {
    const struct graph_node *node = &x->compiled->graph->nodes[step->node];
    size_t inputs = (size_t)node->input_count, outputs = (size_t)node->output_count;
    smelt_array **arrays = calloc(inputs + outputs + 1, sizeof *arrays);
    smelt_type *types = calloc(outputs + 1, sizeof *types);
    smelt_status status = arrays && types ? SMELT_OK : fail_out_of_memory(inputs * sizeof *arrays);
    if (status == SMELT_OK) {
        for (int i = 0; i < node->input_count; i++) arrays[i] = x->arrays[node->inputs[i]];
        for (int i = 0; i < node->output_count; i++)
            types[i] = graph_type(x->compiled->graph, node->first + i);
        status = graph_call_expand(node->call, x->compiled->device, arrays, node->input_count, types,
                                   node->output_count, arrays + inputs);
    }
    for (int i = 0; i < node->output_count && status == SMELT_OK; i++) {
        smelt_apply_desc copy = {.operation = SMELT_OPERATION_IDENTITY,
                                 .inputs = {arrays[inputs + (size_t)i]},
                                 .device = x->compiled->device,
                                 .stream = x->stream};
        status = operation_apply_into(&copy, x->arrays[node->first + i]);
    }
    for (size_t i = inputs; i < inputs + outputs && arrays; i++) smelt_array_release(arrays[i]);
    free(arrays);
    free(types);
    return status;
}

static smelt_status run_step(void *context, int number) {
    struct execution *x = context;
    const struct step *step = &x->compiled->steps[number];
    return step->kind == STEP_FUSED       ? run_fused(x, step)
           : step->kind == STEP_OPERATION ? run_operation(x, step)
           : step->kind == STEP_CALL      ? run_call(x, step)
                                          : run_kernel(x, step);
}

static smelt_status run_steps(struct execution *x) {
    bool host = program_is_host(x->compiled->device);
    if (x->compiled->needed && host && !program_is_collecting()) return crew_run(x->compiled, run_step, x);
    if (x->compiled->needed && x->records) return branches_run(x->compiled, x->stream, run_step, x);
    for (int s = 0; s < x->compiled->step_count; s++) TRY(run_step(x, s));
    return SMELT_OK;
}

/* Outputs that are inputs, constants, views, or output a second time. */
static smelt_status copy_outputs(struct execution *x) {
    for (int i = 0; i < x->compiled->graph->output_count; i++) {
        int value = x->compiled->graph->outputs[i].value;
        const struct place *place = &x->compiled->places[value];
        if (place->kind == PLACE_OUTPUT && place->index == i) continue;
        smelt_apply_desc copy = {.operation = SMELT_OPERATION_IDENTITY,
                                 .inputs = {x->arrays[value]},
                                 .device = x->compiled->device,
                                 .stream = x->stream};
        TRY(operation_apply_into(&copy, x->outputs[i]));
    }
    return SMELT_OK;
}

static smelt_status execute(struct execution *x, const smelt_execute_desc *desc) {
    TRY(bind_inputs(x, desc));
    TRY(bind_outputs(x, desc));
    TRY(bind_views(x));
    TRY(run_steps(x));
    return copy_outputs(x);
}

smelt_status execution_run(const smelt_session *session, const smelt_execute_desc *desc, bool records,
                           smelt_array **outputs) {
    const smelt_compiled *compiled = session->compiled;
    size_t values = (size_t)compiled->value_count, output_count = (size_t)compiled->graph->output_count;
    smelt_array **block = calloc(values + output_count + 1, sizeof *block);
    if (!block) return fail_out_of_memory(values * sizeof *block);
    struct execution x = {.session = session,
                          .compiled = compiled,
                          .stream = desc->stream,
                          .records = records,
                          .arrays = block,
                          .outputs = block + values};
    memcpy(block, session->fixed, values * sizeof *block);
    smelt_status status = execute(&x, desc);
    for (size_t v = 0; v < values; v++)
        if (!session->fixed[v]) smelt_array_release(x.arrays[v]);
    for (size_t i = 0; i < output_count; i++) {
        if (status == SMELT_OK)
            outputs[i] = x.outputs[i];
        else
            smelt_array_release(x.outputs[i]);
    }
    free(block);
    return status;
}
