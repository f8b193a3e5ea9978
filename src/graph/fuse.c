/* Fusion: nodes are visited in order, and each joins a group of one of its inputs if it fits there and no
 * path leaves the group and returns to it. Groups that meet in a node become one where they can. */
#include "graph/plan.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NODES 64
/* Besides these a kernel needs room for two positions. */
#define MOST_OPERANDS (MAP_MAX_OPERANDS - 2)

/* ---- Paths between units: groups, and nodes that are alone. */

struct search {
    const struct fusion *fusion;
    char *seen; /* by node */
    int *stack; /* nodes */
    int count;
};

static void push_inputs(struct search *search, const struct graph_node *node) {
    for (int i = 0; i < node->input_count; i++) {
        int from = search->fusion->graph->values[node->inputs[i]].node;
        if (search->seen[from]) continue;
        search->seen[from] = 1;
        search->stack[search->count++] = from;
    }
}

/* Whether one of the nodes on the stack depends on a group, also by others of their groups. */
static bool meets(struct search *search, int group) {
    const struct fusion *fusion = search->fusion;
    while (search->count) {
        int n = search->stack[--search->count], g = fusion->group_of[n];
        if (g == group) return true;
        if (g < 0) push_inputs(search, &fusion->graph->nodes[n]);
        for (int m = 0; g >= 0 && m < fusion->groups[g].node_count; m++) {
            search->seen[fusion->groups[g].nodes[m]] = 1;
            push_inputs(search, &fusion->graph->nodes[fusion->groups[g].nodes[m]]);
        }
    }
    return false;
}

static void reset(struct search *search) {
    memset(search->seen, 0, (size_t)search->fusion->graph->node_count);
    search->count = 0;
}

/* Puts the inputs of a node that lie in neither group on the stack. */
static void push_outside(struct search *search, int n, int a, int b) {
    const struct graph_node *node = &search->fusion->graph->nodes[n];
    for (int i = 0; i < node->input_count; i++) {
        int from = search->fusion->graph->values[node->inputs[i]].node, g = search->fusion->group_of[from];
        if (search->seen[from] || (g >= 0 && (g == a || g == b))) continue;
        search->seen[from] = 1;
        search->stack[search->count++] = from;
    }
}

/* A path from the group to the node that passes other nodes. */
static bool leaves_and_returns(struct search *search, int group, int n) {
    reset(search);
    push_outside(search, n, group, -1);
    return meets(search, group);
}

static bool path_outside(struct search *search, int from, int to) {
    const struct group *group = &search->fusion->groups[to];
    reset(search);
    for (int m = 0; m < group->node_count; m++) push_outside(search, group->nodes[m], from, to);
    return meets(search, from);
}

/* ---- Sizes. */

/* Whether a value of a node in the group is used outside of it; nodes: of the group, and one more. */
static bool is_written(const struct fusion *fusion, int value, const int *nodes, int count, int more) {
    const smelt_graph *graph = fusion->graph;
    int inside = 0;
    for (int m = 0; m <= count; m++) {
        const struct graph_node *node = &graph->nodes[m < count ? nodes[m] : more];
        if (m == count && more < 0) break;
        for (int i = 0; i < node->input_count; i++) inside += node->inputs[i] == value;
    }
    return fusion->use_count[value] > inside;
}

/* An upper bound of the arrays that a kernel of these nodes has. */
static int count_operands(const struct fusion *fusion, const int *nodes, int count, int more) {
    const smelt_graph *graph = fusion->graph;
    int operands = 0, reads[MAP_MAX_OPERANDS + 1];
    int read_count = 0;
    for (int m = 0; m < count + (more >= 0); m++) {
        int n = m < count ? nodes[m] : more;
        const struct graph_node *node = &graph->nodes[n];
        operands += is_written(fusion, node->first, nodes, count, more);
        operands += fusion_is_reduction(graph, n); /* a stage's result */
        for (int i = 0; i < node->input_count; i++) {
            int value = node->inputs[i], from = graph->values[value].node;
            bool known = fusion_is_literal(graph, value) || from == more;
            for (int k = 0; k < count && !known; k++) known = nodes[k] == from;
            for (int k = 0; k < read_count && !known; k++) known = reads[k] == value;
            if (known) continue;
            if (read_count > MAP_MAX_OPERANDS) return read_count;
            reads[read_count++] = value;
        }
    }
    return operands + read_count;
}

/* ---- Groups. */

static smelt_status add_member(struct fusion *fusion, int g, int n) {
    struct group *group = &fusion->groups[g];
    if (group->node_count == group->node_capacity) {
        int capacity = group->node_capacity ? 2 * group->node_capacity : 8;
        int *more = realloc(group->nodes, (size_t)capacity * sizeof *more);
        if (!more) return fail_out_of_memory((size_t)capacity * sizeof *more);
        group->nodes = more;
        group->node_capacity = capacity;
    }
    group->nodes[group->node_count++] = n;
    fusion->group_of[n] = g;
    return SMELT_OK;
}

static smelt_status new_group(struct fusion *fusion, const smelt_shape *full, int *g) {
    if (fusion->group_count == fusion->group_capacity) {
        int capacity = fusion->group_capacity ? 2 * fusion->group_capacity : 16;
        struct group *more = realloc(fusion->groups, (size_t)capacity * sizeof *more);
        if (!more) return fail_out_of_memory((size_t)capacity * sizeof *more);
        fusion->groups = more;
        fusion->group_capacity = capacity;
    }
    *g = fusion->group_count++;
    fusion->groups[*g] = (struct group){.alive = true, .full = *full};
    return SMELT_OK;
}

static int compare_numbers(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

/* Takes the nodes of b into a. */
static smelt_status merge(struct fusion *fusion, int a, int b, const struct group *become) {
    struct group *x = &fusion->groups[a], *y = &fusion->groups[b];
    struct group joined = *become;
    joined.nodes = x->nodes;
    joined.node_count = x->node_count;
    joined.node_capacity = x->node_capacity;
    *x = joined;
    for (int m = 0; m < y->node_count; m++) TRY(add_member(fusion, a, y->nodes[m]));
    qsort(x->nodes, (size_t)x->node_count, sizeof *x->nodes, compare_numbers);
    free(y->nodes);
    *y = (struct group){.alive = false};
    return SMELT_OK;
}

/* Whether the two groups, and the kernel of both, allow it. */
static bool can_merge(struct search *search, int a, int b, struct group *become) {
    const struct fusion *fusion = search->fusion;
    const struct group *x = &fusion->groups[a], *y = &fusion->groups[b];
    if (x->node_count + y->node_count > MOST_NODES || !fusion_merges(fusion, a, b, become)) return false;
    int nodes[2 * MOST_NODES];
    memcpy(nodes, x->nodes, (size_t)x->node_count * sizeof *nodes);
    memcpy(nodes + x->node_count, y->nodes, (size_t)y->node_count * sizeof *nodes);
    if (count_operands(fusion, nodes, x->node_count + y->node_count, -1) > MOST_OPERANDS) return false;
    return !path_outside(search, a, b) && !path_outside(search, b, a);
}

static bool can_join(struct search *search, int g, int n, bool *row, struct group *become) {
    const struct fusion *fusion = search->fusion;
    const struct group *group = &fusion->groups[g];
    return group->node_count < MOST_NODES && fusion_fits(fusion, g, n, row, become) &&
           count_operands(fusion, group->nodes, group->node_count, n) <= MOST_OPERANDS &&
           !leaves_and_returns(search, g, n);
}

/* ---- One node. */

static smelt_status join_inputs(struct fusion *fusion, struct search *search, int n, int *joined) {
    const struct graph_node *node = &fusion->graph->nodes[n];
    *joined = -1;
    for (int i = 0; i < node->input_count; i++) {
        int g = fusion->group_of[fusion->graph->values[node->inputs[i]].node];
        struct group become;
        bool row;
        if (g < 0 || g == *joined) continue;
        if (*joined < 0) {
            if (!can_join(search, g, n, &row, &become)) continue;
            fusion->groups[g] = become;
            TRY(add_member(fusion, g, n));
            fusion->is_row[n] = row;
            *joined = g;
        } else if (can_merge(search, *joined, g, &become)) {
            TRY(merge(fusion, *joined, g, &become));
        }
    }
    return SMELT_OK;
}

/* Groups first where all inputs can be read together, then the node: x in one, y in another, both joined by x
 * + y. */
static smelt_status merge_inputs(struct fusion *fusion, struct search *search, int n) {
    const struct graph_node *node = &fusion->graph->nodes[n];
    int first = -1;
    for (int i = 0; i < node->input_count; i++) {
        int g = fusion->group_of[fusion->graph->values[node->inputs[i]].node];
        struct group become;
        if (g < 0 || g == first) continue;
        if (first < 0)
            first = g;
        else if (can_merge(search, first, g, &become))
            TRY(merge(fusion, first, g, &become));
    }
    return SMELT_OK;
}

static smelt_status place_node(struct fusion *fusion, struct search *search, int n) {
    const smelt_graph *graph = fusion->graph;
    const struct graph_node *node = &graph->nodes[n];
    bool reduction = fusion_is_reduction(graph, n), elementwise = fusion_is_elementwise(graph, n);
    int g;
    if (!reduction && !elementwise && !fusion_is_view(graph, n)) return SMELT_OK;
    if (elementwise && node->input_count > 1) TRY(merge_inputs(fusion, search, n));
    TRY(join_inputs(fusion, search, n, &g));
    if (g >= 0 || !(reduction || elementwise)) return SMELT_OK;
    const smelt_shape *full = &graph->values[reduction ? node->inputs[0] : node->first].shape;
    TRY(new_group(fusion, full, &g));
    if (reduction) {
        struct group become;
        bool row;
        if (!fusion_fits(fusion, g, n, &row, &become)) {
            fusion->groups[g].alive = false;
            return SMELT_OK;
        }
        fusion->groups[g] = become;
        fusion->is_row[n] = 1;
    }
    return add_member(fusion, g, n);
}

/* ---- After all: what is better left out. */

static bool is_used_inside(const struct fusion *fusion, int g, int value) {
    const struct group *group = &fusion->groups[g];
    for (int m = 0; m < group->node_count; m++) {
        const struct graph_node *node = &fusion->graph->nodes[group->nodes[m]];
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] == value) return true;
    }
    return false;
}

static void remove_member(struct fusion *fusion, int g, int at) {
    struct group *group = &fusion->groups[g];
    fusion->group_of[group->nodes[at]] = -1;
    fusion->is_row[group->nodes[at]] = 0;
    memmove(group->nodes + at, group->nodes + at + 1,
            (size_t)(group->node_count - at - 1) * sizeof *group->nodes);
    group->node_count--;
}

/* A view that only others read costs nothing outside of the kernel. */
static void remove_views(struct fusion *fusion) {
    for (int g = 0; g < fusion->group_count; g++)
        for (int m = fusion->groups[g].node_count - 1; m >= 0; m--) {
            int n = fusion->groups[g].nodes[m];
            if (fusion_is_view(fusion->graph, n) && !is_used_inside(fusion, g, fusion->graph->nodes[n].first))
                remove_member(fusion, g, m);
        }
}

smelt_status fusion_create(const smelt_graph *graph, bool fuse, struct fusion *fusion) {
    size_t nodes = (size_t)graph->node_count + 1;
    *fusion = (struct fusion){.graph = graph};
    fusion->group_of = malloc(nodes * sizeof *fusion->group_of);
    fusion->is_row = calloc(nodes, 1);
    fusion->use_count = calloc((size_t)graph->value_count + 1, sizeof *fusion->use_count);
    struct search search = {.fusion = fusion, .seen = calloc(nodes, 1), .stack = calloc(nodes, sizeof(int))};
    bool room = fusion->group_of && fusion->is_row && fusion->use_count && search.seen && search.stack;
    smelt_status status = room ? SMELT_OK : fail_out_of_memory(nodes * sizeof(int));
    for (int n = 0; n < graph->node_count && room; n++) {
        fusion->group_of[n] = -1;
        for (int i = 0; i < graph->nodes[n].input_count; i++) fusion->use_count[graph->nodes[n].inputs[i]]++;
    }
    for (int i = 0; i < graph->output_count && room; i++) fusion->use_count[graph->outputs[i].value]++;
    for (int n = 0; n < graph->node_count && status == SMELT_OK && fuse; n++)
        status = place_node(fusion, &search, n);
    if (status == SMELT_OK) remove_views(fusion);
    free(search.seen);
    free(search.stack);
    return status;
}

void fusion_free(struct fusion *fusion) {
    for (int g = 0; g < fusion->group_count; g++) free(fusion->groups[g].nodes);
    free(fusion->groups);
    free(fusion->group_of);
    free(fusion->is_row);
    free(fusion->use_count);
}
