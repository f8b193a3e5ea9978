/* Steps in an order that respects what they read, and where values lie. */
#include "graph/plan.h"
#include "ops/program.h"

#include <stdlib.h>
#include <string.h>

const struct graph_value *plan_value(const smelt_compiled *compiled, int value) {
    int own = compiled->graph->value_count;
    return value < own ? &compiled->graph->values[value] : &compiled->scratch[value - own];
}

smelt_status plan_scratch(smelt_compiled *compiled, smelt_dtype dtype, const smelt_shape *shape, int *value) {
    int count = compiled->value_count + 1;
    struct place *places = realloc(compiled->places, (size_t)count * sizeof *places);
    if (places) compiled->places = places;
    struct graph_value *scratch =
        places ? realloc(compiled->scratch, ((size_t)compiled->scratch_count + 1) * sizeof *scratch) : NULL;
    if (!scratch) return fail_out_of_memory((size_t)count * sizeof *places);
    compiled->scratch = scratch;
    compiled->scratch[compiled->scratch_count++] =
        (struct graph_value){.node = -1, .dtype = dtype, .shape = *shape};
    *value = compiled->value_count++;
    compiled->places[*value] = (struct place){.kind = PLACE_BUFFER, .root = *value};
    shape_strides(shape, compiled->places[*value].strides);
    return SMELT_OK;
}

/* ---- Places. */

static void place_root(smelt_compiled *compiled, int value, enum place_kind kind, int index) {
    struct place *place = &compiled->places[value];
    *place = (struct place){.kind = kind, .root = value, .index = index};
    shape_strides(&compiled->graph->values[value].shape, place->strides);
}

/* An array without elements that lies as the value does. */
static smelt_status shadow_of(const smelt_compiled *compiled, int value, smelt_array **shadow) {
    const struct place *place = &compiled->places[value];
    const struct graph_value *root = plan_value(compiled, place->root), *own = plan_value(compiled, value);
    smelt_array *base;
    TRY(array_symbolic(root->dtype, &root->shape, NULL, NULL, &base));
    smelt_status status = smelt_array_view(base, own->shape, place->strides, place->offset, shadow);
    smelt_array_release(base);
    return status;
}

/* The place of a view; *viewed is false if the operation has to copy. */
static smelt_status place_view(smelt_compiled *compiled, const struct graph_node *node, bool *viewed) {
    int input = node->inputs[0];
    smelt_apply_desc desc = node->desc;
    smelt_array *result;
    *viewed = compiled->places[input].kind != PLACE_NONE;
    if (!*viewed) return SMELT_OK;
    TRY(shadow_of(compiled, input, &desc.inputs[0]));
    smelt_status status = operation_infer(&desc, &result);
    if (status == SMELT_OK) {
        *viewed = result->memory == desc.inputs[0]->memory;
        struct place *place = &compiled->places[node->first];
        *place = (struct place){.kind = PLACE_VIEW, .root = compiled->places[input].root};
        memcpy(place->strides, result->strides, sizeof place->strides);
        int64_t bytes = (int64_t)smelt_dtype_bytes(result->dtype);
        place->offset = result->size ? (result->data - result->memory->start) / bytes : 0;
        smelt_array_release(result);
    }
    smelt_array_release(desc.inputs[0]);
    return status;
}

/* ---- Steps. */

static bool contains(const int *list, int count, int value) {
    for (int i = 0; i < count; i++)
        if (list[i] == value) return true;
    return false;
}

/* Whether a value of the group is read outside of it. */
static bool leaves_group(const struct fusion *fusion, int g, int value) {
    const struct group *group = &fusion->groups[g];
    int inside = 0;
    for (int m = 0; m < group->node_count; m++) {
        const struct graph_node *node = &fusion->graph->nodes[group->nodes[m]];
        for (int i = 0; i < node->input_count; i++) inside += node->inputs[i] == value;
    }
    return fusion->use_count[value] > inside;
}

/* What one node of a step reads and writes. */
static void add_node(const smelt_compiled *compiled, struct step *step, int n) {
    const struct graph_node *node = &compiled->graph->nodes[n];
    for (int i = 0; i < node->input_count; i++) {
        int value = node->inputs[i], from = compiled->graph->values[value].node;
        bool inside = step->group >= 0 && compiled->fusion.group_of[from] == step->group;
        bool literal = step->group >= 0 && fusion_is_literal(compiled->graph, value);
        if (!inside && !literal && !contains(step->reads, step->read_count, value))
            step->reads[step->read_count++] = value;
    }
    for (int i = 0; i < node->output_count; i++)
        if (step->group < 0 || leaves_group(&compiled->fusion, step->group, node->first + i))
            step->writes[step->write_count++] = node->first + i;
}

static smelt_status add_step(smelt_compiled *compiled, int n) {
    const struct graph_node *node = &compiled->graph->nodes[n];
    int g = compiled->fusion.group_of[n], reads = 0, writes = 0;
    const int *nodes = g < 0 ? &n : compiled->fusion.groups[g].nodes;
    int count = g < 0 ? 1 : compiled->fusion.groups[g].node_count;
    struct step *step = &compiled->steps[compiled->step_count++];
    *step = (struct step){.kind = g >= 0                       ? STEP_FUSED
                                  : node->kind == GRAPH_CUSTOM ? STEP_CALL
                                  : node->kind == GRAPH_KERNEL ? STEP_KERNEL
                                                               : STEP_OPERATION,
                          .node = n,
                          .group = g};
    for (int m = 0; m < count; m++) {
        reads += compiled->graph->nodes[nodes[m]].input_count;
        writes += compiled->graph->nodes[nodes[m]].output_count;
    }
    /* Of a group, a reduction may need a scratch value besides. */
    step->reads = calloc((size_t)reads + 1, sizeof *step->reads);
    step->writes = calloc(2 * (size_t)writes + 1, sizeof *step->writes);
    if (!step->reads || !step->writes) return fail_out_of_memory((size_t)reads * sizeof *step->reads);
    for (int m = 0; m < count; m++) add_node(compiled, step, nodes[m]);
    for (int i = 0; i < step->write_count; i++) place_root(compiled, step->writes[i], PLACE_BUFFER, -1);
    return SMELT_OK;
}

/* One unit, whose inputs all have their places: a node, or the group of a node. */
static smelt_status plan_unit(smelt_compiled *compiled, int n) {
    const struct graph_node *node = &compiled->graph->nodes[n];
    bool viewed = false;
    if (node->kind == GRAPH_INPUT || node->kind == GRAPH_REMOVED) return SMELT_OK;
    if (node->kind == GRAPH_CONSTANT) {
        place_root(compiled, node->first, PLACE_CONSTANT, n);
        return SMELT_OK;
    }
    if (compiled->fusion.group_of[n] < 0 && fusion_is_view(compiled->graph, n))
        TRY(place_view(compiled, node, &viewed));
    return viewed ? SMELT_OK : add_step(compiled, n);
}

/* ---- Their order: of the units that are ready, the one that comes first in the graph. */

struct order {
    const smelt_compiled *compiled;
    int *waiting; /* by unit: inputs that are not computed yet */
    int *ready, ready_count;
    int *users, *user_start; /* of values: nodes, one for each use */
};

/* A unit's number is that of its first node. */
static int unit_of(const struct order *order, int n) {
    int g = order->compiled->fusion.group_of[n];
    return g < 0 ? n : order->compiled->fusion.groups[g].nodes[0];
}

static smelt_status open_order(struct order *order) {
    const smelt_graph *graph = order->compiled->graph;
    int uses = 0;
    for (int n = 0; n < graph->node_count; n++) uses += graph->nodes[n].input_count;
    order->waiting = calloc((size_t)graph->node_count + 1, sizeof(int));
    order->ready = calloc((size_t)graph->node_count + 1, sizeof(int));
    order->users = calloc((size_t)uses + 1, sizeof(int));
    order->user_start = calloc((size_t)graph->value_count + 2, sizeof(int));
    if (!order->waiting || !order->ready || !order->users || !order->user_start)
        return fail_out_of_memory((size_t)uses * sizeof(int));
    for (int n = 0; n < graph->node_count; n++)
        for (int i = 0; i < graph->nodes[n].input_count; i++)
            order->user_start[graph->nodes[n].inputs[i] + 1]++;
    for (int v = 0; v < graph->value_count; v++) order->user_start[v + 1] += order->user_start[v];
    int *next = calloc((size_t)graph->value_count + 1, sizeof *next);
    if (!next) return fail_out_of_memory((size_t)graph->value_count * sizeof *next);
    memcpy(next, order->user_start, (size_t)graph->value_count * sizeof *next);
    for (int n = 0; n < graph->node_count; n++)
        for (int i = 0; i < graph->nodes[n].input_count; i++) {
            int value = graph->nodes[n].inputs[i], from = graph->values[value].node;
            order->users[next[value]++] = n;
            if (unit_of(order, from) != unit_of(order, n)) order->waiting[unit_of(order, n)]++;
        }
    free(next);
    for (int n = 0; n < graph->node_count; n++)
        if (unit_of(order, n) == n && !order->waiting[n]) order->ready[order->ready_count++] = n;
    return SMELT_OK;
}

static int take_first(struct order *order) {
    int first = 0;
    for (int i = 1; i < order->ready_count; i++)
        if (order->ready[i] < order->ready[first]) first = i;
    int unit = order->ready[first];
    order->ready[first] = order->ready[--order->ready_count];
    return unit;
}

static void finish_node(struct order *order, int n) {
    const struct graph_node *node = &order->compiled->graph->nodes[n];
    for (int v = node->first; v < node->first + node->output_count; v++)
        for (int u = order->user_start[v]; u < order->user_start[v + 1]; u++) {
            int unit = unit_of(order, order->users[u]);
            if (unit != unit_of(order, n) && --order->waiting[unit] == 0)
                order->ready[order->ready_count++] = unit;
        }
}

static smelt_status plan_units(smelt_compiled *compiled, struct order *order) {
    TRY(open_order(order));
    while (order->ready_count) {
        int unit = take_first(order), g = compiled->fusion.group_of[unit];
        TRY(plan_unit(compiled, unit));
        if (g < 0) finish_node(order, unit);
        for (int m = 0; g >= 0 && m < compiled->fusion.groups[g].node_count; m++)
            finish_node(order, compiled->fusion.groups[g].nodes[m]);
    }
    for (int n = 0; n < compiled->graph->node_count; n++)
        if (order->waiting[n])
            return fail(SMELT_ERROR_INTERNAL, "graph '%s': fused kernels depend on each other",
                        compiled->graph->name);
    return SMELT_OK;
}

/* A computed value that is an output is computed in the output's array. */
static void place_outputs(smelt_compiled *compiled) {
    for (int i = 0; i < compiled->graph->output_count; i++) {
        struct place *place = &compiled->places[compiled->graph->outputs[i].value];
        if (place->kind != PLACE_BUFFER) continue;
        place->kind = PLACE_OUTPUT;
        place->index = i;
    }
}

smelt_status plan_steps(smelt_compiled *compiled) {
    const smelt_graph *graph = compiled->graph;
    struct order order = {.compiled = compiled};
    compiled->value_count = graph->value_count;
    compiled->places = calloc((size_t)graph->value_count + 1, sizeof *compiled->places);
    compiled->steps = calloc((size_t)graph->node_count + 1, sizeof *compiled->steps);
    if (!compiled->places || !compiled->steps)
        return fail_out_of_memory((size_t)graph->node_count * sizeof *compiled->steps);
    for (int i = 0; i < graph->input_count; i++) place_root(compiled, graph->inputs[i].value, PLACE_INPUT, i);
    smelt_status status = plan_units(compiled, &order);
    free(order.waiting);
    free(order.ready);
    free(order.users);
    free(order.user_start);
    if (status == SMELT_OK) place_outputs(compiled);
    return status;
}
