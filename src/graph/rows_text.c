/* Kernels of groups with reductions. A thread, or the lanes of a simdgroup, takes one row and goes over it
 * once for each level: first what is reduced from values in memory, then what is reduced from values that
 * depend on that, and so on; what a later level needs is computed again from memory, which is in a near cache
 * by then. So softmax and the norms are one kernel. With chunks, a first kernel reduces each chunk, a second
 * one the chunks' results. Elements are combined in the order of src/ops/reduce.c. */
#include "graph/plan.h"
#include "ops/accumulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES 32
#define ROW_CHUNK 4096
#define COLUMN_CHUNK 512

/* Numbers of the kernel: of elements in a row, in a chunk, then the strides of operands along a row. */
enum { NUMBER_COUNT, NUMBER_CHUNK, NUMBER_STRIDES };

struct writer {
    smelt_compiled *compiled;
    const smelt_graph *graph;
    struct step *step;
    const struct group *group;
    struct fused_kernel *kernel;
    struct text before, body;
    int *level;    /* by node of the group, in its order */
    int *declared; /* by node of the group: a full node is declared in the current loop */
    int top;       /* the highest level of a reduction's input */
    bool first_stage, second_stage;
    int64_t count, chunk, chunks;
    int chunk_operand, lane_operand; /* positions, or -1 */
    bool lanes;
    struct text loads; /* of the current loop */
};

/* ---- Nodes of the group. */

static bool is_member(const struct writer *w, int value) {
    return w->compiled->fusion.group_of[w->graph->values[value].node] == w->step->group;
}

static bool is_row(const struct writer *w, int n) {
    return w->compiled->fusion.is_row[n];
}

static bool is_alias(const struct writer *w, int n) {
    return fusion_is_view(w->graph, n);
}

/* Of full values: the loop in which they can be computed; of row values: the loop before which. */
static void find_levels(struct writer *w) {
    for (int m = 0; m < w->group->node_count; m++) {
        const struct graph_node *node = &w->graph->nodes[w->group->nodes[m]];
        int level = 0;
        for (int i = 0; i < node->input_count; i++) {
            int value = node->inputs[i];
            if (!is_member(w, value)) continue;
            int from = w->level[plan_name(w->group, w->graph->values[value].node)];
            if (from > level) level = from;
        }
        if (fusion_is_reduction(w->graph, w->group->nodes[m])) {
            if (level > w->top) w->top = level;
            level++;
        }
        w->level[m] = level;
    }
}

/* ---- Operands. */

/* Strides in dimensions of `full`, of a value that a node of shape `shape` reads: along a row in *run, others
 * in `kept`. */
static void strides_in_row(const struct writer *w, int value, const smelt_shape *shape,
                           int64_t kept[SMELT_MAX_DIMENSIONS], int64_t *run) {
    const struct group *group = w->group;
    int64_t own[SMELT_MAX_DIMENSIONS];
    plan_strides(w->compiled, value, shape, own);
    bool left = !shape_equal(shape, &group->full) && !shape_equal(shape, &group->kept);
    *run = 0;
    for (int d = 0, from = 0; d < group->full.ndim; d++) {
        bool reduced = group->axes >> d & 1;
        int64_t stride = left && reduced ? 0 : own[left ? from : d];
        if (!(left && reduced)) from++;
        kept[d] = reduced ? 0 : stride;
        /* The innermost of the dimensions along a row decides: they lie one after the other. */
        if (reduced && group->full.size[d] > 1) *run = stride;
    }
}

/* The operand: its strides by the kernel's space, and along a row. */
static int operand_of(struct writer *w, int value, const smelt_shape *shape, bool written, int64_t *run) {
    int64_t kept[SMELT_MAX_DIMENSIONS], strides[SMELT_MAX_DIMENSIONS] = {0};
    int ndim = 0;
    strides_in_row(w, value, shape, kept, run);
    for (int d = 0; d < w->group->full.ndim; d++)
        if (!(w->group->axes >> d & 1)) strides[ndim++] = kept[d];
    if (w->first_stage) strides[ndim++] = *run * w->chunk;
    if (w->lanes) strides[ndim++] = 0;
    /* Two ways of reading one value may differ along the row only. */
    strides[ndim++] = *run;
    if (ndim > SMELT_MAX_DIMENSIONS) ndim = SMELT_MAX_DIMENSIONS;
    int j = plan_operand(w->compiled, w->kernel, value, strides, ndim, written);
    w->kernel->numbers[NUMBER_STRIDES + j] = *run;
    return j;
}

/* "p3[long(o3) + k]": the compiler sees neighbours. */
static void write_element(const struct writer *w, struct text *text, int j, int64_t run, bool row) {
    (void)w;
    if (row || run == 0)
        text_addf(text, "p%d[o%d]", j, j);
    else if (run == 1)
        text_addf(text, "p%d[long(o%d) + k]", j, j);
    else
        text_addf(text, "p%d[long(o%d) + k * l.number[%d]]", j, j, NUMBER_STRIDES + j);
}

/* ---- Expressions. */

static void write_full(struct writer *w, int m);

/* How node `n` reads `value`; a load is declared before. */
static void name_input(struct writer *w, int n, int value, struct text *into, struct variable *variable) {
    const smelt_graph *graph = w->graph;
    variable->name[0] = 0;
    if (is_member(w, value)) {
        int from = graph->values[value].node;
        if (!is_row(w, from) && into == &w->loads) write_full(w, plan_name(w->group, from));
        snprintf(variable->name, sizeof variable->name, "v%d", plan_name(w->group, from));
        return;
    }
    if (fusion_is_literal(graph, value)) return;
    const smelt_shape *shape =
        fusion_is_reduction(graph, n) ? &w->group->full : &graph->values[graph->nodes[n].first].shape;
    int64_t run;
    bool row = is_row(w, n) && !fusion_is_reduction(graph, n);
    int j = operand_of(w, value, shape, false, &run);
    struct text load = {0};
    text_addf(&load, "%s(", program_type(graph->values[value].dtype));
    write_element(w, &load, j, run, row);
    text_add(&load, ")");
    /* A variable for each read: the optimiser joins equal ones. */
    snprintf(variable->name, sizeof variable->name, "l%d_%d", plan_name(w->group, n), j);
    text_addf(into, "  const %s %s = %s;\n", program_type(graph->values[value].dtype), variable->name,
              text_string(&load));
    into->failed |= load.failed;
    text_free(&load);
}

static void write_node(struct writer *w, int n, struct text *into) {
    const struct graph_node *node = &w->graph->nodes[n];
    struct variable inputs[3];
    for (int i = 0; i < node->input_count; i++) {
        int same = 0;
        while (node->inputs[same] != node->inputs[i]) same++;
        if (same < i)
            inputs[i] = inputs[same];
        else
            name_input(w, n, node->inputs[i], into, &inputs[i]);
    }
    if (is_alias(w, n))
        text_addf(into, "  const auto v%d = %s;\n", plan_name(w->group, n), inputs[0].name);
    else
        plan_write_node(into, w->graph, w->group, n, inputs);
}

/* A full node in the current loop, with all that it needs there. */
static void write_full(struct writer *w, int m) {
    if (w->declared[m]) return;
    w->declared[m] = 1;
    write_node(w, w->group->nodes[m], &w->loads);
}

/* ---- Reductions. */

static void write_namespace(struct writer *w, int n) {
    const struct graph_node *node = &w->graph->nodes[n];
    smelt_dtype sum, result;
    accumulate_dtypes(node->desc.operation, w->graph->values[node->inputs[0]].dtype, &sum, &result);
    text_addf(&w->before, "namespace r%d {\n", plan_name(w->group, n));
    accumulate_write(&w->before, node->desc.operation, sum, result);
    text_add(&w->before, "}\n");
}

/* All lanes get the sum of all: in each step a lane combines its value and that of its partner. */
static void write_across(struct text *text) {
    text_add(text,
             "template <typename T> inline T crossed(T a, ushort n) { return simd_shuffle_xor(a, n); }\n"
             "inline bool crossed(bool a, ushort n) { return simd_shuffle_xor(uint(a), n) != 0; }\n"
             "inline long crossed(long a, ushort n) {\n"
             "  return as_type<long>(simd_shuffle_xor(as_type<uint2>(a), n));\n"
             "}\n"
             "inline ulong crossed(ulong a, ushort n) {\n"
             "  return as_type<ulong>(simd_shuffle_xor(as_type<uint2>(a), n));\n"
             "}\n");
}

static void begin_loop(struct writer *w) {
    if (w->lanes)
        text_addf(&w->body, "  for (long k = long(o%d); k < count; k += %d) {\n", w->lane_operand, LANES);
    else
        text_add(&w->body, "  for (long k = 0; k < count; k++) {\n");
}

static smelt_dtype sum_dtype(const struct writer *w, const struct graph_node *node) {
    smelt_dtype sum, result;
    accumulate_dtypes(node->desc.operation, w->graph->values[node->inputs[0]].dtype, &sum, &result);
    return sum;
}

/* The results of a chunk, or v<plan_name>. */
static void write_result(struct writer *w, int n, int scratch) {
    smelt_dtype dtype = w->graph->values[w->graph->nodes[n].first].dtype;
    int name = plan_name(w->group, n);
    if (w->lanes)
        text_addf(&w->body,
                  "  for (ushort n = %d; n > 0; n /= 2) s%d = r%d::combine(s%d, crossed(s%d, n));\n",
                  LANES / 2, name, name, name, name);
    if (!w->first_stage) {
        text_addf(&w->body, "  const %s v%d = %s(s%d);\n", program_type(dtype), name, program_type(dtype),
                  name);
        return;
    }
    /* The results lie in rows of chunks. */
    int64_t strides[SMELT_MAX_DIMENSIONS] = {0}, step = w->chunks;
    int ndim = w->kernel->space.ndim, last = ndim - 1 - w->lanes;
    strides[last] = 1;
    for (int d = last - 1; d >= 0; d--) {
        strides[d] = step;
        step *= w->kernel->space.size[d];
    }
    int j = plan_operand(w->compiled, w->kernel, scratch, strides, ndim, true);
    text_addf(&w->body, "  %sp%d[o%d] = s%d;\n", w->lanes ? "if (lane == 0) " : "", j, j, name);
}

/* The scratch value of the i-th reduction of the group. */
static int scratch_of(const struct writer *w, int reduction) {
    return w->step->writes[w->step->write_count + reduction];
}

static bool reads_scratch(const struct writer *w) {
    return w->second_stage;
}

/* One element more of a reduction. */
static void write_step(struct writer *w, int n, int reduction) {
    int name = plan_name(w->group, n);
    if (reads_scratch(w)) {
        int64_t strides[SMELT_MAX_DIMENSIONS] = {0}, step = w->count;
        int ndim = w->kernel->space.ndim, last = ndim - w->lanes;
        for (int d = last - 1; d >= 0; d--) {
            strides[d] = step;
            step *= w->kernel->space.size[d];
        }
        int j = plan_operand(w->compiled, w->kernel, scratch_of(w, reduction), strides, ndim, false);
        text_addf(&w->loads, "  s%d = r%d::combine(s%d, r%d::element(p%d[long(o%d) + k]));\n", name, name,
                  name, name, j, j);
        return;
    }
    struct variable input;
    name_input(w, n, w->graph->nodes[n].inputs[0], &w->loads, &input);
    text_addf(&w->loads, "  s%d = r%d::combine(s%d, r%d::element(%s));\n", name, name, name, name,
              input.name);
}

/* ---- Loops. */

static bool is_written(const struct writer *w, int value) {
    for (int i = 0; i < w->step->write_count; i++)
        if (w->step->writes[i] == value) return true;
    return false;
}

static void write_store(struct writer *w, int n, struct text *into, bool row) {
    int value = w->graph->nodes[n].first;
    int64_t run;
    int j = operand_of(w, value, &w->graph->values[value].shape, true, &run);
    text_add(into, row && w->lanes ? "  if (lane == 0) " : "  ");
    write_element(w, into, j, run, row);
    text_addf(into, " = v%d;\n", plan_name(w->group, n));
}

/* Row nodes that are known before loop `level`, other than reductions. */
static void write_row_nodes(struct writer *w, int level) {
    for (int m = 0; m < w->group->node_count; m++) {
        int n = w->group->nodes[m];
        if (!is_row(w, n) || w->level[m] != level) continue;
        if (!fusion_is_reduction(w->graph, n)) write_node(w, n, &w->body);
        if (is_written(w, w->graph->nodes[n].first)) write_store(w, n, &w->body, true);
    }
}

static void write_loop(struct writer *w, int level) {
    int reductions = 0, seen = 0;
    bool any = false;
    memset(w->declared, 0, (size_t)w->group->node_count * sizeof *w->declared);
    for (int m = 0; m < w->group->node_count; m++) {
        int n = w->group->nodes[m];
        const struct graph_node *node = &w->graph->nodes[n];
        bool reduction = fusion_is_reduction(w->graph, n);
        if (reduction && w->level[m] == level + 1) {
            text_addf(&w->body, "  %s s%d = r%d::start();\n", program_type(sum_dtype(w, node)), m, m);
            write_step(w, n, seen);
            reductions++;
            any = true;
        }
        seen += reduction;
        if (w->second_stage || is_row(w, n) || w->level[m] != level || !is_written(w, node->first)) continue;
        write_full(w, m);
        write_store(w, n, &w->loads, false);
        any = true;
    }
    if (!any) return;
    begin_loop(w);
    text_add(&w->body, text_string(&w->loads));
    w->body.failed |= w->loads.failed;
    text_free(&w->loads);
    w->loads = (struct text){0};
    text_add(&w->body, "  }\n");
    for (int m = 0, at = 0; m < w->group->node_count && reductions; m++) {
        int n = w->group->nodes[m];
        if (!fusion_is_reduction(w->graph, n)) continue;
        if (w->level[m] == level + 1) write_result(w, n, w->first_stage ? scratch_of(w, at) : -1);
        at++;
    }
}

/* ---- A kernel. */

static void add_position(struct writer *w, int dimension, int *operand) {
    int64_t strides[SMELT_MAX_DIMENSIONS] = {0};
    strides[dimension] = 1;
    /* A number of its own for each, so that they are not taken for one. */
    *operand = plan_operand(w->compiled, w->kernel, -1 - dimension, strides, SMELT_MAX_DIMENSIONS, false);
}

static smelt_status write_kernel(struct writer *w) {
    struct fused_kernel *kernel = w->kernel;
    kernel->space.ndim = 0;
    for (int d = 0; d < w->group->full.ndim; d++)
        if (!(w->group->axes >> d & 1)) kernel->space.size[kernel->space.ndim++] = w->group->full.size[d];
    if (kernel->space.ndim > SMELT_MAX_DIMENSIONS - 2)
        return fail(SMELT_ERROR_LIMIT, "graph: a reduction of an array of %d dimensions cannot be fused",
                    w->group->full.ndim);
    w->chunk_operand = w->lane_operand = -1;
    if (w->first_stage) {
        add_position(w, kernel->space.ndim, &w->chunk_operand);
        kernel->space.size[kernel->space.ndim++] = w->chunks;
    }
    if (w->lanes) {
        add_position(w, kernel->space.ndim, &w->lane_operand);
        kernel->space.size[kernel->space.ndim++] = LANES;
    }
    kernel->lanes = w->lanes;
    kernel->numbers[NUMBER_COUNT] = w->count;
    kernel->numbers[NUMBER_CHUNK] = w->chunk;
    if (w->first_stage)
        text_addf(&w->body,
                  "  const long ahead = l.number[0] - long(o%d) * l.number[1];\n"
                  "  const long count = ahead < l.number[1] ? ahead : l.number[1];\n",
                  w->chunk_operand);
    else
        text_add(&w->body, "  const long count = l.number[0];\n");
    if (w->lanes) {
        text_addf(&w->body, "  const long lane = long(o%d);\n", w->lane_operand);
        write_across(&w->before);
    }
    for (int m = 0; m < w->group->node_count; m++)
        if (fusion_is_reduction(w->graph, w->group->nodes[m])) write_namespace(w, w->group->nodes[m]);
    int loops = 0;
    for (int m = 0; m < w->group->node_count; m++)
        if (w->level[m] > loops) loops = w->level[m];
    if (w->first_stage) {
        write_loop(w, 0);
    } else {
        for (int level = 0; level <= loops; level++) {
            write_row_nodes(w, level);
            write_loop(w, level);
        }
    }
    kernel->number_count = NUMBER_STRIDES + kernel->operand_count;
    return plan_finish_kernel(kernel, &w->before, &w->body);
}

static smelt_status plan_scratches(smelt_compiled *compiled, struct step *step, int64_t chunks) {
    const struct group *group = &compiled->fusion.groups[step->group];
    smelt_shape shape = {.ndim = 1, .size = {chunks}};
    int at = step->write_count;
    for (int d = 0; d < group->left.ndim; d++) shape.size[0] *= group->left.size[d];
    for (int m = 0; m < group->node_count; m++) {
        if (!fusion_is_reduction(compiled->graph, group->nodes[m])) continue;
        const struct graph_node *node = &compiled->graph->nodes[group->nodes[m]];
        smelt_dtype sum, result;
        accumulate_dtypes(node->desc.operation, compiled->graph->values[node->inputs[0]].dtype, &sum,
                          &result);
        TRY(plan_scratch(compiled, sum, &shape, &step->writes[at++]));
    }
    return SMELT_OK;
}

static smelt_status plan_stage(smelt_compiled *compiled, struct step *step, int stage, int64_t chunk,
                               int64_t chunks) {
    const struct group *group = &compiled->fusion.groups[step->group];
    struct writer w = {.compiled = compiled,
                       .graph = compiled->graph,
                       .step = step,
                       .group = group,
                       .kernel = &step->kernels[stage],
                       .first_stage = group->staged && stage == 0,
                       .second_stage = stage == 1,
                       .count = stage ? chunks : group->count,
                       .chunk = chunk,
                       .chunks = chunks,
                       .lanes = stage ? chunks >= LANES : group->lanes};
    w.level = calloc((size_t)group->node_count + 1, sizeof *w.level);
    w.declared = calloc((size_t)group->node_count + 1, sizeof *w.declared);
    smelt_status status = w.level && w.declared ? SMELT_OK : fail_out_of_memory(sizeof w);
    if (status == SMELT_OK) {
        find_levels(&w);
        status = write_kernel(&w);
    }
    free(w.level);
    free(w.declared);
    return status;
}

smelt_status plan_rows(smelt_compiled *compiled, struct step *step) {
    const struct group *group = &compiled->fusion.groups[step->group];
    int64_t chunk = group->lanes ? ROW_CHUNK : COLUMN_CHUNK;
    if (!group->staged) {
        step->kernel_count = 1;
        return plan_stage(compiled, step, 0, group->count, 1);
    }
    int64_t chunks = (group->count + chunk - 1) / chunk;
    TRY(plan_scratches(compiled, step, chunks));
    TRY(plan_stage(compiled, step, 0, chunk, chunks));
    step->kernel_count = 2;
    return plan_stage(compiled, step, 1, chunk, chunks);
}
