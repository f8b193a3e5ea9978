/* Graphs as text, and node by node. */
#include "base/text.h"
#include "graph/owned.h"

#include <stdlib.h>
#include <string.h>

static const char *name_of(const smelt_graph *graph, int n) {
    const struct graph_node *node = &graph->nodes[n];
    switch (node->kind) {
    case GRAPH_INPUT:
        for (int i = 0; i < graph->input_count; i++)
            if (graph->inputs[i].value == node->first) return graph->inputs[i].name;
        return "input";
    case GRAPH_CONSTANT:
        return "constant";
    case GRAPH_OPERATION:
        return smelt_operation_name(node->desc.operation);
    case GRAPH_CUSTOM:
        return graph_call_name(node->call);
    case GRAPH_KERNEL:
        return graph_launch_name(node->launch);
    default:
        return "removed";
    }
}

int smelt_graph_node_count(const smelt_graph *graph) {
    return graph ? graph->node_count : 0;
}

smelt_status smelt_graph_node(const smelt_graph *graph, int index, smelt_node *out) {
    if (!graph || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph node: %s is NULL", graph ? "node" : "graph");
    if (index < 0 || index >= graph->node_count)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph node: node %d, but graph '%s' has %d nodes", index,
                    graph->name, graph->node_count);
    static const smelt_node_kind kinds[] = {[GRAPH_INPUT] = SMELT_NODE_INPUT,
                                            [GRAPH_CONSTANT] = SMELT_NODE_CONSTANT,
                                            [GRAPH_OPERATION] = SMELT_NODE_OPERATION,
                                            [GRAPH_CUSTOM] = SMELT_NODE_CUSTOM,
                                            [GRAPH_KERNEL] = SMELT_NODE_KERNEL};
    const struct graph_node *node = &graph->nodes[index];
    *out = (smelt_node){.kind = kinds[node->kind],
                        .name = name_of(graph, index),
                        .inputs = node->inputs,
                        .input_count = node->input_count,
                        .first_output = node->first,
                        .output_count = node->output_count,
                        .desc = node->kind == GRAPH_OPERATION ? &node->desc : NULL,
                        .constant = node->constant,
                        .attributes = node->call ? node->call->attributes : NULL};
    return SMELT_OK;
}

smelt_status smelt_graph_value_type(const smelt_graph *graph, int value, smelt_type *type) {
    if (!graph || !type)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph value: %s is NULL", graph ? "type" : "graph");
    if (value < 0 || value >= graph->value_count)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph value: value %d, but graph '%s' has %d values",
                    value, graph->name, graph->value_count);
    *type = graph_type(graph, value);
    return SMELT_OK;
}

const char *smelt_graph_output_name(const smelt_graph *graph, int index, int *value) {
    if (!graph || index < 0 || index >= graph->output_count) return NULL;
    if (value) *value = graph->outputs[index].value;
    return graph->outputs[index].name;
}

void graph_write_node(struct text *text, const smelt_graph *graph, int n) {
    const struct graph_node *node = &graph->nodes[n];
    for (int i = 0; i < node->output_count; i++) text_addf(text, "%s%%%d", i ? ", " : "", node->first + i);
    text_addf(text, " = %s%s(", node->kind == GRAPH_INPUT ? "input " : "", name_of(graph, n));
    for (int i = 0; i < node->input_count; i++) text_addf(text, "%s%%%d", i ? ", " : "", node->inputs[i]);
    text_add(text, ") :");
    for (int i = 0; i < node->output_count; i++) {
        const struct graph_value *value = &graph->values[node->first + i];
        text_addf(text, "%s %s %s", i ? "," : "", smelt_dtype_name(value->dtype),
                  shape_print(&value->shape).text);
    }
    text_add(text, "\n");
}

smelt_status smelt_graph_show(const smelt_graph *graph, char **out) {
    struct text text = {0};
    if (!graph || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph show: %s is NULL", graph ? "text" : "graph");
    for (int n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].kind != GRAPH_REMOVED) graph_write_node(&text, graph, n);
    for (int i = 0; i < graph->output_count; i++)
        text_addf(&text, "output %s = %%%d\n", graph->outputs[i].name, graph->outputs[i].value);
    *out = text.failed ? NULL : string_copy(text_string(&text), text.length);
    text_free(&text);
    return *out ? SMELT_OK : fail_out_of_memory(text.length);
}
