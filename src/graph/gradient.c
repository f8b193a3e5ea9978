/* Gradients, graph in and graph out: the nodes are applied again under a tape, whose products become nodes.
 */
#include "base/text.h"
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

static smelt_status check(const smelt_graph *graph, int output, const int *inputs, int count,
                          smelt_graph *const *gradient) {
    if (!graph || !gradient || (count && !inputs))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph gradient: %s is NULL",
                    !graph     ? "graph"
                    : gradient ? "inputs"
                               : "the address for the new graph");
    if (output < 0 || output >= graph->output_count)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph gradient: output %d, but graph '%s' has %d outputs",
                    output, graph->name, graph->output_count);
    for (int i = 0; i < count; i++)
        if (inputs[i] < 0 || inputs[i] >= graph->input_count)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "graph gradient: input %d, but graph '%s' has %d inputs", inputs[i], graph->name,
                        graph->input_count);
    return SMELT_OK;
}

static smelt_status add_outputs(const smelt_graph *from, smelt_graph *graph, smelt_array **handles,
                                const int *inputs, int count, smelt_array **gradients) {
    for (int i = 0; i < from->output_count; i++)
        TRY(smelt_graph_output(graph, from->outputs[i].name, handles[from->outputs[i].value]));
    for (int i = 0; i < count; i++) {
        struct text name = {0};
        text_addf(&name, "gradient of %s", from->inputs[inputs[i]].name);
        smelt_status status = name.failed ? fail_out_of_memory(name.length)
                                          : smelt_graph_output(graph, text_string(&name), gradients[i]);
        text_free(&name);
        TRY(status);
    }
    return SMELT_OK;
}

static smelt_status build(const smelt_graph *from, smelt_graph *graph, smelt_tape *tape, int output,
                          const int *inputs, int count, smelt_array **handles, smelt_array **gradients) {
    for (int i = 0; i < from->input_count; i++) {
        const struct graph_value *value = &from->values[from->inputs[i].value];
        TRY(smelt_graph_input(graph, from->inputs[i].name, value->dtype, value->shape,
                              &handles[from->inputs[i].value]));
    }
    smelt_array **variables = calloc((size_t)count + 1, sizeof *variables);
    if (!variables) return fail_out_of_memory((size_t)count * sizeof *variables);
    smelt_status status = SMELT_OK;
    for (int i = 0; i < count && status == SMELT_OK; i++) {
        variables[i] = handles[from->inputs[inputs[i]].value];
        status = smelt_tape_watch(tape, variables[i]);
    }
    if (status == SMELT_OK) status = graph_replay(from, NULL, handles);
    if (status == SMELT_OK) status = smelt_tape_end(tape);
    if (status == SMELT_OK)
        status =
            smelt_tape_vjp(tape, &handles[from->outputs[output].value], 1, NULL, variables, count, gradients);
    free(variables);
    return status == SMELT_OK ? add_outputs(from, graph, handles, inputs, count, gradients) : status;
}

smelt_status smelt_graph_gradient(smelt_graph *from, int output, const int *inputs, int count,
                                  smelt_graph **gradient) {
    TRY(check(from, output, inputs, count, gradient));
    smelt_array **handles = calloc((size_t)from->value_count + (size_t)count + 1, sizeof *handles);
    smelt_graph *graph = NULL;
    smelt_tape *tape = NULL;
    if (!handles) return fail_out_of_memory((size_t)from->value_count * sizeof *handles);
    smelt_status status = smelt_graph_create(from->name, &graph);
    if (status == SMELT_OK) status = smelt_tape_begin(&tape);
    if (status == SMELT_OK)
        status = build(from, graph, tape, output, inputs, count, handles, handles + from->value_count);
    smelt_tape_release(tape);
    for (int i = 0; i < from->value_count + count; i++) smelt_array_release(handles[i]);
    free(handles);
    if (status == SMELT_OK)
        *gradient = graph;
    else
        smelt_graph_release(graph);
    return status;
}
