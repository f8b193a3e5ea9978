/* Which nodes fit into one kernel, by their operations, dtypes and shapes. */
#include "array/dtype.h"
#include "graph/plan.h"

#include <string.h>

#define LANES 32
/* As src/ops/reduce.c: longer rows are cut in chunks. */
#define ROW_CHUNK 4096
#define COLUMN_CHUNK 512
/* With so many rows, simdgroups have work without chunks. */
#define MANY_ROWS 256

/* ---- Nodes. */

bool fusion_is_literal(const smelt_graph *graph, int value) {
    const struct graph_node *node = &graph->nodes[graph->values[value].node];
    return node->kind == GRAPH_CONSTANT && node->constant->size == 1;
}

/* float64 is computed in plain loops, complex64 has few operations. */
static bool fuses_dtype(smelt_dtype dtype) {
    return dtype != SMELT_FLOAT64 && dtype != SMELT_COMPLEX64;
}

static bool fuses_types(const smelt_graph *graph, const struct graph_node *node) {
    const struct graph_value *result = &graph->values[node->first];
    bool fits = fuses_dtype(result->dtype) && shape_product(&result->shape) > 0;
    for (int i = 0; i < node->input_count; i++) {
        bool number = node->desc.weak >> i & 1 && fusion_is_literal(graph, node->inputs[i]);
        fits &= number || fuses_dtype(graph->values[node->inputs[i]].dtype);
    }
    return fits;
}

bool fusion_is_elementwise(const smelt_graph *graph, int n) {
    const struct graph_node *node = &graph->nodes[n];
    if (node->kind != GRAPH_OPERATION || !fuses_types(graph, node)) return false;
    smelt_operation operation = node->desc.operation;
    smelt_operation_kind kind = smelt_operation_kind_of(operation);
    if (operation == SMELT_OPERATION_IDENTITY || operation == SMELT_OPERATION_STOP_GRADIENT) return false;
    return kind == SMELT_KIND_UNARY || kind == SMELT_KIND_BINARY || operation == SMELT_OPERATION_WHERE;
}

bool fusion_is_view(const smelt_graph *graph, int n) {
    const struct graph_node *node = &graph->nodes[n];
    if (node->kind != GRAPH_OPERATION) return false;
    switch (node->desc.operation) {
    case SMELT_OPERATION_RESHAPE:
    case SMELT_OPERATION_TRANSPOSE:
    case SMELT_OPERATION_BROADCAST_TO:
    case SMELT_OPERATION_SLICE:
    case SMELT_OPERATION_IDENTITY:
    case SMELT_OPERATION_STOP_GRADIENT:
        return true;
    default:
        return false;
    }
}

static uint32_t axes_of(const smelt_graph *graph, const struct graph_node *node) {
    const struct call call = {.desc = &node->desc, .name = "fusion"};
    uint32_t axes = 0;
    (void)call_axes(&call, graph->values[node->inputs[0]].shape.ndim, &axes);
    return axes;
}

/* The group that a reduction alone would be. */
static struct group group_of_reduction(const smelt_graph *graph, const struct graph_node *node) {
    struct group group = {.full = graph->values[node->inputs[0]].shape, .count = 1};
    group.axes = axes_of(graph, node);
    group.kept = group.full;
    int64_t rows = 1;
    int last = -1;
    for (int d = 0; d < group.full.ndim; d++) {
        int64_t size = group.full.size[d];
        if (size > 1) last = d;
        if (group.axes >> d & 1) {
            group.count *= size;
            group.kept.size[d] = 1;
        } else {
            rows *= size;
            group.left.size[group.left.ndim++] = size;
        }
    }
    group.lanes = last >= 0 && group.axes >> last & 1 && group.count >= LANES;
    int64_t chunk = group.lanes ? ROW_CHUNK : COLUMN_CHUNK;
    group.staged = group.count > 2 * chunk && !(group.lanes && rows >= MANY_ROWS);
    return group;
}

/* The reduced dimensions of more than one element, which must follow each other. */
static int reduced_dimensions(const smelt_shape *full, uint32_t axes) {
    int count = 0;
    bool ended = false;
    for (int d = 0; d < full->ndim; d++) {
        if (full->size[d] == 1) continue;
        bool reduced = axes >> d & 1;
        if (reduced && ended) return 0;
        if (reduced) count++;
        if (!reduced && count) ended = true;
    }
    return count;
}

bool fusion_is_reduction(const smelt_graph *graph, int n) {
    const struct graph_node *node = &graph->nodes[n];
    if (node->kind != GRAPH_OPERATION || !fuses_types(graph, node)) return false;
    switch (node->desc.operation) {
    case SMELT_OPERATION_SUM:
    case SMELT_OPERATION_PROD:
    case SMELT_OPERATION_MAX:
    case SMELT_OPERATION_MIN:
    case SMELT_OPERATION_ALL:
    case SMELT_OPERATION_ANY:
        break;
    default:
        return false;
    }
    struct group group = group_of_reduction(graph, node);
    return group.count > 1 && reduced_dimensions(&group.full, group.axes) > 0;
}

/* ---- Reading from memory in a group with reductions: along a row, a value has one stride. */

static bool reads_by_one_stride(const struct fusion *fusion, const struct group *group, int value) {
    const smelt_graph *graph = fusion->graph;
    const smelt_shape *shape = &graph->values[value].shape;
    if (fusion_is_literal(graph, value) || shape_product(shape) == 1) return true;
    if (reduced_dimensions(&group->full, group->axes) == 1) return true;
    int lead = group->full.ndim - shape->ndim, same = 0, one = 0;
    for (int d = 0; d < group->full.ndim; d++) {
        if (!(group->axes >> d & 1) || group->full.size[d] == 1) continue;
        bool repeated = d < lead || shape->size[d - lead] == 1;
        one += repeated;
        same += !repeated;
    }
    return !same || (!one && !fusion_is_view(graph, graph->values[value].node));
}

/* ---- Fitting. */

static bool in_group(const struct fusion *fusion, int g, int value) {
    return fusion->group_of[fusion->graph->values[value].node] == g;
}

static bool in_row(const struct fusion *fusion, int value) {
    return fusion->is_row[fusion->graph->values[value].node];
}

static bool is_row_shape(const struct group *group, const smelt_shape *shape) {
    return shape_equal(shape, &group->kept) || shape_equal(shape, &group->left);
}

/* Whether a row value can be read by a full node. */
static bool row_broadcasts(const struct group *group, const smelt_shape *shape) {
    return !group->staged && (shape_equal(shape, &group->kept) || shape_product(&group->kept) == 1);
}

static bool fits_full(const struct fusion *fusion, int g, const struct group *group,
                      const struct graph_node *node) {
    for (int i = 0; i < node->input_count; i++) {
        int value = node->inputs[i];
        bool inside = in_group(fusion, g, value);
        if (inside && in_row(fusion, value) && !row_broadcasts(group, &fusion->graph->values[value].shape))
            return false;
        if (!inside && group->axes && !reads_by_one_stride(fusion, group, value)) return false;
    }
    return true;
}

static bool fits_row(const struct fusion *fusion, int g, const struct graph_node *node) {
    const smelt_shape *shape = &fusion->graph->values[node->first].shape;
    for (int i = 0; i < node->input_count; i++) {
        int value = node->inputs[i];
        if (!in_group(fusion, g, value)) continue;
        if (!in_row(fusion, value) || !shape_equal(&fusion->graph->values[value].shape, shape)) return false;
    }
    return true;
}

/* All that a group without reductions reads, once it has them. */
static bool leaves_fit(const struct fusion *fusion, int g, const struct group *become) {
    const struct group *group = &fusion->groups[g];
    for (int m = 0; m < group->node_count; m++) {
        const struct graph_node *node = &fusion->graph->nodes[group->nodes[m]];
        for (int i = 0; i < node->input_count; i++)
            if (!in_group(fusion, g, node->inputs[i]) &&
                !reads_by_one_stride(fusion, become, node->inputs[i]))
                return false;
    }
    return true;
}

static bool fits_reduction(const struct fusion *fusion, int g, const struct graph_node *node,
                           struct group *become) {
    const struct group *group = &fusion->groups[g];
    int value = node->inputs[0];
    struct group own = group_of_reduction(fusion->graph, node);
    bool inside = in_group(fusion, g, value);
    if (!shape_equal(&own.full, &group->full) || (inside && in_row(fusion, value))) return false;
    if (group->axes) {
        if (group->axes != own.axes) return false;
    } else if (!leaves_fit(fusion, g, &own)) {
        return false;
    }
    if (!inside && !reads_by_one_stride(fusion, &own, value)) return false;
    own.alive = true;
    own.nodes = group->nodes;
    own.node_count = group->node_count;
    own.node_capacity = group->node_capacity;
    *become = own;
    return true;
}

/* A view of a value inside that is the same element for a row, or for each element of it. */
static bool fits_view(const struct fusion *fusion, int g, const struct graph_node *node, bool *row) {
    const struct group *group = &fusion->groups[g];
    const smelt_shape *shape = &fusion->graph->values[node->first].shape;
    int value = node->inputs[0];
    const smelt_shape *from = &fusion->graph->values[value].shape;
    if (!group->axes || !in_group(fusion, g, value) || !in_row(fusion, value)) return false;
    *row = node->desc.operation == SMELT_OPERATION_RESHAPE;
    if (*row) return is_row_shape(group, shape);
    return node->desc.operation == SMELT_OPERATION_BROADCAST_TO && shape_equal(shape, &group->full) &&
           row_broadcasts(group, from);
}

bool fusion_fits(const struct fusion *fusion, int g, int n, bool *row, struct group *become) {
    const struct graph_node *node = &fusion->graph->nodes[n];
    const struct group *group = &fusion->groups[g];
    const smelt_shape *shape = &fusion->graph->values[node->first].shape;
    *become = *group;
    *row = false;
    if (fusion_is_view(fusion->graph, n)) return fits_view(fusion, g, node, row);
    if (fusion_is_reduction(fusion->graph, n)) {
        *row = true;
        return fits_reduction(fusion, g, node, become);
    }
    if (!fusion_is_elementwise(fusion->graph, n)) return false;
    if (shape_equal(shape, &group->full)) return fits_full(fusion, g, group, node);
    *row = group->axes && is_row_shape(group, shape) && fits_row(fusion, g, node);
    return *row;
}

/* Whether what `g` reads of `other` can be read inside one kernel. */
static bool reads_inside(const struct fusion *fusion, int g, int other, const struct group *become) {
    const struct group *group = &fusion->groups[g];
    for (int m = 0; m < group->node_count; m++) {
        const struct graph_node *node = &fusion->graph->nodes[group->nodes[m]];
        for (int i = 0; i < node->input_count; i++) {
            int value = node->inputs[i];
            const smelt_shape *shape = &fusion->graph->values[value].shape;
            if (!in_group(fusion, other, value)) continue;
            bool row = in_row(fusion, value), reduction = fusion_is_reduction(fusion->graph, group->nodes[m]);
            if (!row) continue; /* of shape `full`: only full nodes and reductions read it */
            if (reduction) return false;
            if (!fusion->is_row[group->nodes[m]] && !row_broadcasts(become, shape)) return false;
            if (fusion->is_row[group->nodes[m]] &&
                !shape_equal(shape, &fusion->graph->values[node->first].shape))
                return false;
        }
    }
    return true;
}

bool fusion_merges(const struct fusion *fusion, int a, int b, struct group *become) {
    const struct group *x = &fusion->groups[a], *y = &fusion->groups[b];
    if (!shape_equal(&x->full, &y->full)) return false;
    if (x->axes && y->axes && x->axes != y->axes) return false;
    if (x->axes && !y->axes && !leaves_fit(fusion, b, x)) return false;
    if (y->axes && !x->axes && !leaves_fit(fusion, a, y)) return false;
    *become = x->axes ? *x : *y;
    return reads_inside(fusion, a, b, become) && reads_inside(fusion, b, a, become);
}
