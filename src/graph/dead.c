/* Dead nodes: no output depends on them. Inputs stay. */
#include "graph/graph.h"

#include <stdlib.h>

smelt_status graph_remove_dead(smelt_graph *graph, int *removed) {
    char *needed = calloc((size_t)graph->node_count + 1, 1);
    if (!needed) return fail_out_of_memory((size_t)graph->node_count);
    *removed = 0;
    for (int i = 0; i < graph->output_count; i++) needed[graph->values[graph->outputs[i].value].node] = 1;
    for (int n = graph->node_count - 1; n >= 0; n--) {
        struct graph_node *node = &graph->nodes[n];
        for (int i = 0; i < node->input_count && needed[n]; i++)
            needed[graph->values[node->inputs[i]].node] = 1;
        if (needed[n] || node->kind == GRAPH_REMOVED || node->kind == GRAPH_INPUT) continue;
        *removed += node->kind != GRAPH_CONSTANT;
        graph_clear_node(node);
    }
    free(needed);
    return SMELT_OK;
}
