/* Operations on values become nodes. */
#include "base/text.h"
#include "graph/graph.h"

#include <string.h>

smelt_status graph_trace_operation(const smelt_apply_desc *desc, int count, const smelt_array *shaped,
                                   smelt_array **result) {
    smelt_graph *graph = graph_of(desc->inputs, count);
    int inputs[SMELT_MAX_ARGUMENTS], node;
    if (!graph)
        return fail(SMELT_ERROR_INTERNAL, "%s: an input belongs to no graph",
                    smelt_operation_name(desc->operation));
    for (int i = 0; i < count; i++) TRY(graph_value_of(graph, desc->inputs[i], &inputs[i]));
    struct graph_node made = {.kind = GRAPH_OPERATION, .desc = *desc};
    memset(made.desc.inputs, 0, sizeof made.desc.inputs);
    made.desc.device = NULL;
    made.desc.stream = NULL;
    if (desc->algorithm) {
        made.desc.algorithm = string_copy(desc->algorithm, strlen(desc->algorithm));
        if (!made.desc.algorithm) return fail_out_of_memory(strlen(desc->algorithm));
    }
    smelt_type type = {.dtype = shaped->dtype, .shape = shaped->shape};
    TRY(graph_add(graph, &made, inputs, count, &type, 1, &node));
    return graph_handle(graph, graph->nodes[node].first, result);
}
