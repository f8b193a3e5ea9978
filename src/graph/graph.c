/* Graphs: their nodes, inputs, outputs, constants, and the handles that stand for values. */
#include "graph/graph.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct handle {
    smelt_graph *graph;
    int value;
};

/* ---- Life. */

smelt_graph *smelt_graph_retain(smelt_graph *graph) {
    if (graph) atomic_fetch_add(&graph->references, 1);
    return graph;
}

void graph_clear_node(struct graph_node *node) {
    free(node->inputs);
    free((char *)node->desc.algorithm);
    smelt_array_release(node->constant);
    graph_call_release(node->call);
    graph_launch_release(node->launch);
    int first = node->first, count = node->output_count;
    *node = (struct graph_node){.kind = GRAPH_REMOVED, .first = first, .output_count = count};
}

static void free_ports(struct graph_port *ports, int count) {
    for (int i = 0; i < count; i++) free(ports[i].name);
    free(ports);
}

void smelt_graph_release(smelt_graph *graph) {
    if (!graph || atomic_fetch_sub(&graph->references, 1) != 1) return;
    for (int i = 0; i < graph->node_count; i++) graph_clear_node(&graph->nodes[i]);
    free(graph->nodes);
    free(graph->values);
    free_ports(graph->inputs, graph->input_count);
    free_ports(graph->outputs, graph->output_count);
    free(graph->name);
    free(graph);
}

/* ---- Nodes. */

/* Room for `more` items at the end of a list. */
static bool make_room(void **items, int count, int more, int *capacity, size_t bytes) {
    if (count + more <= *capacity) return true;
    int wanted = *capacity ? *capacity : 16;
    while (wanted < count + more) wanted *= 2;
    void *moved = realloc(*items, (size_t)wanted * bytes);
    if (!moved) return false;
    *items = moved;
    *capacity = wanted;
    return true;
}

smelt_status graph_add(smelt_graph *graph, const struct graph_node *given, const int *inputs, int input_count,
                       const smelt_type *types, int type_count, int *index) {
    struct graph_node node = *given;
    node.inputs = calloc((size_t)input_count + 1, sizeof *node.inputs);
    bool room = node.inputs &&
                make_room((void **)&graph->nodes, graph->node_count, 1, &graph->node_capacity,
                          sizeof *graph->nodes) &&
                make_room((void **)&graph->values, graph->value_count, type_count, &graph->value_capacity,
                          sizeof *graph->values);
    if (!room) {
        graph_clear_node(&node);
        return fail_out_of_memory(sizeof node);
    }
    if (input_count) memcpy(node.inputs, inputs, (size_t)input_count * sizeof *inputs);
    node.input_count = input_count;
    node.first = graph->value_count;
    node.output_count = type_count;
    for (int i = 0; i < type_count; i++)
        graph->values[graph->value_count++] =
            (struct graph_value){graph->node_count, types[i].dtype, types[i].shape};
    *index = graph->node_count;
    graph->nodes[graph->node_count++] = node;
    return SMELT_OK;
}

smelt_type graph_type(const smelt_graph *graph, int value) {
    return (smelt_type){.dtype = graph->values[value].dtype, .shape = graph->values[value].shape};
}

/* ---- Constants. */

static smelt_status add_plain(smelt_graph *graph, smelt_array *array, int *value) {
    smelt_array *host, *copy;
    int node;
    TRY(smelt_array_to(array, "cpu", NULL, &host));
    smelt_status status = smelt_array_convert(host, host->dtype, &copy);
    smelt_array_release(host);
    TRY(status);
    smelt_type type = {.dtype = copy->dtype, .shape = copy->shape};
    TRY(graph_add(graph, &(struct graph_node){.kind = GRAPH_CONSTANT, .constant = copy}, NULL, 0, &type, 1,
                  &node));
    *value = graph->nodes[node].first;
    return SMELT_OK;
}

smelt_status graph_add_constant(smelt_graph *graph, smelt_array *array, int *value) {
    bool equal = array->size > 1;
    for (int d = 0; d < array->shape.ndim; d++) equal &= array->shape.size[d] == 1 || array->strides[d] == 0;
    if (!equal) return add_plain(graph, array, value);
    smelt_array *one;
    int node, scalar;
    TRY(smelt_array_view(array, (smelt_shape){.ndim = 0}, NULL, 0, &one));
    smelt_status status = add_plain(graph, one, &scalar);
    smelt_array_release(one);
    TRY(status);
    smelt_type type = {.dtype = array->dtype, .shape = array->shape};
    struct graph_node broadcast = {
        .kind = GRAPH_OPERATION, .desc = {.operation = SMELT_OPERATION_BROADCAST_TO, .shape = array->shape}};
    TRY(graph_add(graph, &broadcast, &scalar, 1, &type, 1, &node));
    *value = graph->nodes[node].first;
    return SMELT_OK;
}

/* ---- Handles. */

static void release_handle(void *context) {
    struct handle *handle = context;
    smelt_graph_release(handle->graph);
    free(handle);
}

smelt_status graph_handle(smelt_graph *graph, int value, smelt_array **out) {
    struct handle *handle = malloc(sizeof *handle);
    if (!handle) return fail_out_of_memory(sizeof *handle);
    *handle = (struct handle){graph, value};
    const struct graph_value *type = &graph->values[value];
    smelt_status status = array_symbolic(type->dtype, &type->shape, release_handle, handle, out);
    if (status == SMELT_OK)
        smelt_graph_retain(graph);
    else
        free(handle);
    return status;
}

smelt_graph *graph_of(smelt_array *const *arrays, int count) {
    for (int i = 0; i < count; i++) {
        const struct handle *handle =
            arrays[i] && array_is_symbolic(arrays[i]) ? array_symbolic_context(arrays[i]) : NULL;
        if (handle) return handle->graph;
    }
    return NULL;
}

smelt_status graph_value_of(smelt_graph *graph, smelt_array *array, int *value) {
    if (!array_is_symbolic(array)) return graph_add_constant(graph, array, value);
    const struct handle *handle = array_symbolic_context(array);
    if (!handle || handle->graph != graph)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "graph '%s': an array is a value of graph '%s'; the values of one computation must belong "
            "to one graph",
            graph->name, handle ? handle->graph->name : "?");
    const struct graph_value *type = &graph->values[handle->value];
    if (type->dtype != array->dtype || !shape_equal(&type->shape, &array->shape) ||
        !smelt_array_is_contiguous(array))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "graph '%s': an array is a view of a value of shape %s; views of values are made by "
                    "operations (smelt_apply)",
                    graph->name, shape_print(&type->shape).text);
    *value = handle->value;
    return SMELT_OK;
}

/* ---- Inputs and outputs. */

smelt_status graph_add_port(struct graph_port **ports, int *count, const char *name, const char *kind,
                            int value) {
    char numbered[32];
    if (!name) {
        snprintf(numbered, sizeof numbered, "%s%d", kind, *count);
        name = numbered;
    }
    for (int i = 0; i < *count; i++)
        if (strcmp((*ports)[i].name, name) == 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph: there is an %s named '%s' already", kind, name);
    struct graph_port *more = realloc(*ports, ((size_t)*count + 1) * sizeof *more);
    if (more) *ports = more;
    char *copy = more ? string_copy(name, strlen(name)) : NULL;
    if (!copy) return fail_out_of_memory(sizeof *more);
    (*ports)[(*count)++] = (struct graph_port){copy, value};
    return SMELT_OK;
}

smelt_status smelt_graph_input(smelt_graph *graph, const char *name, smelt_dtype dtype, smelt_shape shape,
                               smelt_array **value) {
    int64_t size;
    int node;
    if (!graph || !value)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph input: %s is NULL", graph ? "value" : "graph");
    TRY(shape_check("graph input", dtype, &shape, &size));
    smelt_type type = {.dtype = dtype, .shape = shape};
    TRY(graph_add_port(&graph->inputs, &graph->input_count, name, "input", graph->value_count));
    TRY(graph_add(graph, &(struct graph_node){.kind = GRAPH_INPUT}, NULL, 0, &type, 1, &node));
    return graph_handle(graph, graph->nodes[node].first, value);
}

smelt_status smelt_graph_output(smelt_graph *graph, const char *name, smelt_array *array) {
    int value;
    if (!graph || !array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph output: %s is NULL", graph ? "value" : "graph");
    TRY(graph_value_of(graph, array, &value));
    return graph_add_port(&graph->outputs, &graph->output_count, name, "output", value);
}

int smelt_graph_input_count(const smelt_graph *graph) {
    return graph ? graph->input_count : 0;
}

int smelt_graph_output_count(const smelt_graph *graph) {
    return graph ? graph->output_count : 0;
}
