/* Common subexpressions, and operations that leave their input as it is: later nodes use the earlier value.
 * The order of nodes stays. */
#include "base/hash.h"
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* Constants with more bytes are not compared. */
#define MOST_BYTES ((size_t)1 << 24)

static bool same_type(const smelt_graph *graph, int a, int b) {
    return graph->values[a].dtype == graph->values[b].dtype &&
           shape_equal(&graph->values[a].shape, &graph->values[b].shape);
}

/* The input that the node's value equals, or -1. */
static int same_as_input(const smelt_graph *graph, const struct graph_node *node) {
    if (node->kind != GRAPH_OPERATION || !same_type(graph, node->first, node->inputs[0])) return -1;
    switch (node->desc.operation) {
    case SMELT_OPERATION_IDENTITY:
    case SMELT_OPERATION_STOP_GRADIENT:
    case SMELT_OPERATION_ASTYPE:
    case SMELT_OPERATION_RESHAPE:
    case SMELT_OPERATION_BROADCAST_TO:
        return node->inputs[0];
    default:
        return -1;
    }
}

/* What nodes with equal results have in common. A pure function of its inputs: kernels are not, since atomics
 * may add in any order, and neither are sums at indices. */
static bool identify(const smelt_graph *graph, const struct graph_node *node, struct hash *hash) {
    struct hasher *hasher;
    const struct graph_value *type = &graph->values[node->first];
    if (node->kind == GRAPH_CONSTANT) {
        size_t bytes = (size_t)node->constant->size * smelt_dtype_bytes(type->dtype);
        if (bytes > MOST_BYTES || !(hasher = hasher_create())) return false;
        hasher_add(hasher, node->constant->data, bytes);
    } else if (node->kind == GRAPH_OPERATION && node->desc.operation != SMELT_OPERATION_SCATTER_SUM) {
        if (!(hasher = hasher_create())) return false;
        smelt_apply_desc desc = node->desc;
        const char *algorithm = desc.algorithm;
        desc.algorithm = NULL;
        hasher_add(hasher, &desc, sizeof desc);
        hasher_add_string(hasher, algorithm ? algorithm : "");
        hasher_add(hasher, node->inputs, (size_t)node->input_count * sizeof *node->inputs);
    } else {
        return false;
    }
    hasher_add_integer(hasher, node->kind);
    hasher_add_integer(hasher, type->dtype);
    hasher_add(hasher, type->shape.size, (size_t)type->shape.ndim * sizeof *type->shape.size);
    *hash = hasher_finish(hasher);
    return true;
}

/* Open addressing over hashes of nodes. */
struct slots {
    struct slot {
        struct hash hash;
        int node; /* + 1; 0: free */
    } *items;
    size_t count;
};

/* The earlier node of the hash, or -1 and the node is entered. */
static int find(struct slots *slots, struct hash hash, int node) {
    size_t at = (size_t)hash.low & (slots->count - 1);
    while (slots->items[at].node) {
        if (slots->items[at].hash.low == hash.low && slots->items[at].hash.high == hash.high)
            return slots->items[at].node - 1;
        at = (at + 1) & (slots->count - 1);
    }
    slots->items[at] = (struct slot){hash, node + 1};
    return -1;
}

static int share_node(const smelt_graph *graph, struct slots *slots, int n) {
    const struct graph_node *node = &graph->nodes[n];
    struct hash hash;
    int input = same_as_input(graph, node);
    if (input >= 0) return input;
    if (!identify(graph, node, &hash)) return -1;
    int earlier = find(slots, hash, n);
    return earlier >= 0 ? graph->nodes[earlier].first : -1;
}

smelt_status graph_share(smelt_graph *graph, int *shared) {
    struct slots slots = {.count = 64};
    while (slots.count < 2 * (size_t)graph->node_count) slots.count *= 2;
    slots.items = calloc(slots.count, sizeof *slots.items);
    int *replaced = calloc((size_t)graph->value_count + 1, sizeof *replaced);
    smelt_status status = slots.items && replaced ? SMELT_OK : fail_out_of_memory(slots.count);
    *shared = 0;
    for (int v = 0; v < graph->value_count && status == SMELT_OK; v++) replaced[v] = v;
    for (int n = 0; n < graph->node_count && status == SMELT_OK; n++) {
        struct graph_node *node = &graph->nodes[n];
        for (int i = 0; i < node->input_count; i++) node->inputs[i] = replaced[node->inputs[i]];
        int same = share_node(graph, &slots, n);
        if (same < 0) continue;
        replaced[node->first] = same;
        graph_clear_node(node);
        ++*shared;
    }
    for (int i = 0; i < graph->output_count && status == SMELT_OK; i++)
        graph->outputs[i].value = replaced[graph->outputs[i].value];
    free(slots.items);
    free(replaced);
    return status;
}
