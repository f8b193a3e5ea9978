/* Graphs as text. */
#include "base/text.h"
#include "graph/graph.h"

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
