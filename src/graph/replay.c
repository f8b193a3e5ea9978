/* The nodes of a graph, applied again: to values of another graph, or under a tape. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

static smelt_status replay_operation(const struct graph_node *node, smelt_array *const *inputs,
                                     smelt_array **output) {
    smelt_apply_desc desc = node->desc;
    memcpy(desc.inputs, inputs, (size_t)node->input_count * sizeof *inputs);
    return smelt_apply(&desc, output);
}

static smelt_status replay_node(const smelt_graph *from, const struct graph_node *node, const char *device,
                                smelt_array **handles) {
    smelt_array **inputs = calloc((size_t)node->input_count + 1, sizeof *inputs);
    smelt_type *types = calloc((size_t)node->output_count + 1, sizeof *types);
    smelt_status status = inputs && types ? SMELT_OK : fail_out_of_memory(sizeof *types);
    if (status == SMELT_OK) {
        smelt_array **outputs = handles + node->first;
        for (int i = 0; i < node->input_count; i++) inputs[i] = handles[node->inputs[i]];
        for (int i = 0; i < node->output_count; i++) types[i] = graph_type(from, node->first + i);
        switch (node->kind) {
        case GRAPH_CONSTANT:
            outputs[0] = smelt_array_retain(node->constant);
            break;
        case GRAPH_OPERATION:
            status = replay_operation(node, inputs, outputs);
            break;
        case GRAPH_CUSTOM:
            status = device && !graph_call_is_opaque(node->call)
                         ? graph_call_expand(node->call, device, inputs, node->input_count, types,
                                             node->output_count, outputs)
                         : graph_call_again(node->call, inputs, node->input_count, types, node->output_count,
                                            outputs);
            break;
        case GRAPH_KERNEL:
            status = graph_launch_again(node->launch, inputs, outputs);
            break;
        default:
            break; /* inputs are given */
        }
    }
    free(inputs);
    free(types);
    return status;
}

smelt_status graph_replay(const smelt_graph *from, const char *device, smelt_array **handles) {
    for (int n = 0; n < from->node_count; n++) TRY(replay_node(from, &from->nodes[n], device, handles));
    return SMELT_OK;
}

/* Nodes whose results were computed at once, as no input of theirs was a value. */
static int count_folded(const smelt_graph *from, smelt_array *const *handles) {
    int folded = 0;
    for (int n = 0; n < from->node_count; n++) {
        const struct graph_node *node = &from->nodes[n];
        bool computed = node->kind == GRAPH_OPERATION || node->kind == GRAPH_CUSTOM;
        if (computed && node->desc.operation == SMELT_OPERATION_BROADCAST_TO)
            continue; /* a constant's shape */
        folded += computed && node->output_count && !array_is_symbolic(handles[node->first]);
    }
    return folded;
}

smelt_status graph_expand(const smelt_graph *from, const char *device, smelt_graph **expanded, int *folded) {
    smelt_array **handles = calloc((size_t)from->value_count + 1, sizeof *handles);
    smelt_graph *graph = NULL;
    if (!handles) return fail_out_of_memory((size_t)from->value_count * sizeof *handles);
    smelt_status status = smelt_graph_create(from->name, &graph);
    for (int i = 0; i < from->input_count && status == SMELT_OK; i++) {
        const struct graph_value *value = &from->values[from->inputs[i].value];
        status = smelt_graph_input(graph, from->inputs[i].name, value->dtype, value->shape,
                                   &handles[from->inputs[i].value]);
    }
    if (status == SMELT_OK) status = graph_replay(from, device, handles);
    for (int i = 0; i < from->output_count && status == SMELT_OK; i++)
        status = smelt_graph_output(graph, from->outputs[i].name, handles[from->outputs[i].value]);
    if (status == SMELT_OK) *folded = count_folded(from, handles);
    for (int v = 0; v < from->value_count; v++) smelt_array_release(handles[v]);
    free(handles);
    if (status == SMELT_OK)
        *expanded = graph;
    else
        smelt_graph_release(graph);
    return status;
}
