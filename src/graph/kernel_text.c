/* The text of fused kernels: the expressions of ops/elementwise.h, one variable per node. Each node rounds to
 * its dtype, so that a fused kernel gives the bits of its operations one by one. */
#include "array/dtype.h"
#include "base/hash.h"
#include "graph/plan.h"
#include "ops/elementwise.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Nodes. */

/* A constant of one element, converted to a dtype as smelt_apply converts it. */
static void write_literal(struct text *text, const smelt_array *constant, smelt_dtype dtype) {
    uint64_t bits = 0;
    element_store(dtype, &bits, element_load(constant->dtype, constant->data));
    switch (dtype) {
    case SMELT_BOOL:
        text_add(text, bits ? "true" : "false");
        break;
    case SMELT_FLOAT32:
        text_addf(text, "as_type<float>(0x%08xu)", (unsigned)bits);
        break;
    case SMELT_FLOAT16:
    case SMELT_BFLOAT16:
        text_addf(text, "as_type<%s>(ushort(0x%04xu))", program_type(dtype), (unsigned)bits);
        break;
    default:
        text_addf(text, "%s(0x%llxul)", program_type(dtype), (unsigned long long)bits);
    }
}

static void write_input(struct text *text, const smelt_graph *graph, int value, smelt_dtype dtype,
                        const struct variable *variable) {
    const struct graph_node *node = &graph->nodes[graph->values[value].node];
    if (fusion_is_literal(graph, value))
        write_literal(text, node->constant, dtype);
    else
        text_add(text, variable->name);
}

/* The dtype to which a binary or unary operation converts its inputs. */
static smelt_dtype computed_dtype(const smelt_graph *graph, const struct graph_node *node) {
    smelt_dtype dtypes[2], common, computed, result;
    for (int i = 0; i < node->input_count; i++) dtypes[i] = graph->values[node->inputs[i]].dtype;
    if (smelt_result_dtype(dtypes, node->desc.weak, node->input_count, &common) != SMELT_OK ||
        elementwise_dtypes(node->desc.operation, common, &computed, &result) != SMELT_OK)
        return SMELT_FLOAT32; /* not reached: the operation was inferred */
    return computed;
}

static const char *expression_of(smelt_operation operation, smelt_dtype computed) {
    const struct elementwise *row = elementwise_find(operation);
    return !dtype_is_inexact(computed) && row->integer[0] ? row->integer : row->real;
}

int plan_name(const struct group *group, int node) {
    for (int m = 0; m < group->node_count; m++)
        if (group->nodes[m] == node) return m;
    return -1; /* not reached: only the group's own nodes have names */
}

static void write_where(struct text *text, const smelt_graph *graph, const struct graph_node *node, int name,
                        const struct variable *inputs) {
    smelt_dtype dtype = graph->values[node->first].dtype;
    text_addf(text, "  %s v%d;\n  { typedef %s R; typedef %s C;\n    const R yes = R(C(", program_type(dtype),
              name, program_type(dtype), program_type(program_compute_dtype(dtype)));
    write_input(text, graph, node->inputs[1], dtype, &inputs[1]);
    text_add(text, ")), no = R(C(");
    write_input(text, graph, node->inputs[2], dtype, &inputs[2]);
    text_addf(text, "));\n    v%d = bool(", name);
    write_input(text, graph, node->inputs[0], SMELT_BOOL, &inputs[0]);
    text_add(text, ") ? yes : no; }\n");
}

static void write_astype(struct text *text, const smelt_graph *graph, const struct graph_node *node, int name,
                         const struct variable *inputs) {
    smelt_dtype to = graph->values[node->first].dtype, from = graph->values[node->inputs[0]].dtype;
    bool small = program_compute_dtype(to) != to || program_compute_dtype(from) != from;
    text_addf(text, "  const %s v%d = %s(%s(", program_type(to), name, program_type(to),
              small && to != from ? "float" : "");
    write_input(text, graph, node->inputs[0], from, &inputs[0]);
    text_add(text, "));\n");
}

void plan_write_node(struct text *text, const smelt_graph *graph, const struct group *group, int n,
                     const struct variable *inputs) {
    static const char names[] = "xy";
    const struct graph_node *node = &graph->nodes[n];
    smelt_operation operation = node->desc.operation;
    int name = plan_name(group, n);
    if (operation == SMELT_OPERATION_WHERE) {
        write_where(text, graph, node, name, inputs);
        return;
    }
    if (operation == SMELT_OPERATION_ASTYPE) {
        write_astype(text, graph, node, name, inputs);
        return;
    }
    smelt_dtype computed = computed_dtype(graph, node), result = graph->values[node->first].dtype;
    text_addf(text, "  %s v%d;\n  { typedef %s P; typedef %s C;\n    const C ", program_type(result), name,
              program_type(computed), program_type(program_compute_dtype(computed)));
    for (int i = 0; i < node->input_count; i++) {
        text_addf(text, "%s%c = C(P(", i ? ", " : "", names[i]);
        write_input(text, graph, node->inputs[i], computed, &inputs[i]);
        text_add(text, "))");
    }
    text_addf(text, ";\n    v%d = %s(%s); }\n", name, program_type(result),
              expression_of(operation, computed));
}

/* ---- Operands. */

void plan_strides(const smelt_compiled *compiled, int value, const smelt_shape *shape,
                  int64_t strides[SMELT_MAX_DIMENSIONS]) {
    const struct place *place = &compiled->places[value];
    const smelt_shape *own = &plan_value(compiled, value)->shape;
    int lead = shape->ndim - own->ndim;
    for (int d = 0; d < shape->ndim; d++)
        strides[d] = d < lead || own->size[d - lead] == 1 ? 0 : place->strides[d - lead];
}

int plan_operand(const smelt_compiled *compiled, struct fused_kernel *kernel, int value,
                 const int64_t strides[SMELT_MAX_DIMENSIONS], int ndim, bool written) {
    size_t bytes = (size_t)ndim * sizeof *strides;
    for (int j = 0; j < kernel->operand_count; j++) {
        struct kernel_operand *operand = &kernel->operands[j];
        if (operand->value == value && operand->written == written &&
            memcmp(operand->strides, strides, bytes) == 0)
            return j;
    }
    struct kernel_operand *operand = &kernel->operands[kernel->operand_count];
    *operand = (struct kernel_operand){.value = value,
                                       .root = value < 0 ? -1 : compiled->places[value].root,
                                       .written = written,
                                       .offset = value < 0 ? 0 : compiled->places[value].offset};
    memcpy(operand->strides, strides, bytes);
    return kernel->operand_count++;
}

/* ---- A kernel. */

smelt_status plan_finish_kernel(struct fused_kernel *kernel, struct text *before, struct text *body) {
    bool failed = before->failed || body->failed;
    struct hasher *hasher = failed ? NULL : hasher_create();
    if (!failed && hasher) {
        hasher_add_string(hasher, text_string(before));
        hasher_add_string(hasher, text_string(body));
        hasher_add_integer(hasher, kernel->operand_count);
        struct hash hash = hasher_finish(hasher);
        kernel->content[0] = hash.low;
        kernel->content[1] = hash.high;
        kernel->before = string_copy(text_string(before), before->length);
        kernel->body = string_copy(text_string(body), body->length);
    }
    text_free(before);
    text_free(body);
    return kernel->before && kernel->body ? SMELT_OK : fail_out_of_memory(body->length);
}

void fused_kernel_free(struct fused_kernel *kernel) {
    free(kernel->before);
    free(kernel->body);
}

static void write_before(struct text *text, const struct map *map) {
    text_add(text, ((const struct fused_kernel *)map->context)->before);
}

static void write_body(struct text *text, const struct map *map) {
    text_add(text, ((const struct fused_kernel *)map->context)->body);
}

void fused_kernel_map(const struct fused_kernel *kernel, smelt_array *const *arrays, const char *device,
                      smelt_stream *stream, struct map *map) {
    memset(map, 0, sizeof *map);
    map->name = "fused";
    map->key.content[0] = kernel->content[0];
    map->key.content[1] = kernel->content[1];
    map->device = device;
    map->stream = stream;
    map->space = kernel->space;
    map->operand_count = kernel->operand_count;
    map->lanes = kernel->lanes;
    map->number_count = kernel->number_count;
    memcpy(map->numbers, kernel->numbers, sizeof kernel->numbers);
    map->context = kernel;
    map->write_before = write_before;
    map->write = write_body;
    for (int j = 0; j < kernel->operand_count; j++) {
        const struct kernel_operand *from = &kernel->operands[j];
        struct operand *to = &map->operands[j];
        to->array = from->value < 0 ? NULL : arrays[from->root];
        memcpy(to->strides, from->strides, sizeof to->strides);
        to->offset = from->offset;
        to->written = from->written;
    }
}

/* ---- Groups without reductions: one thread per element. */

static bool is_member(const smelt_compiled *compiled, int group, int value) {
    return compiled->fusion.group_of[compiled->graph->values[value].node] == group;
}

static void name_input(const smelt_compiled *compiled, const struct step *step, struct fused_kernel *kernel,
                       int value, struct text *body, struct variable *variable) {
    const smelt_graph *graph = compiled->graph;
    const struct group *group = &compiled->fusion.groups[step->group];
    variable->name[0] = 0;
    if (is_member(compiled, step->group, value)) {
        snprintf(variable->name, sizeof variable->name, "v%d", plan_name(group, graph->values[value].node));
    } else if (!fusion_is_literal(graph, value)) {
        int64_t strides[SMELT_MAX_DIMENSIONS];
        int before = kernel->operand_count;
        plan_strides(compiled, value, &group->full, strides);
        int j = plan_operand(compiled, kernel, value, strides, group->full.ndim, false);
        if (j == before)
            text_addf(body, "  const %s l%d = p%d[o%d];\n", program_type(graph->values[value].dtype), j, j,
                      j);
        snprintf(variable->name, sizeof variable->name, "l%d", j);
    }
}

smelt_status plan_elements(smelt_compiled *compiled, struct step *step) {
    const smelt_graph *graph = compiled->graph;
    const struct group *group = &compiled->fusion.groups[step->group];
    struct fused_kernel *kernel = &step->kernels[0];
    struct text before = {0}, body = {0};
    kernel->space = group->full;
    for (int m = 0; m < group->node_count; m++) {
        const struct graph_node *node = &graph->nodes[group->nodes[m]];
        struct variable inputs[3];
        for (int i = 0; i < node->input_count; i++)
            name_input(compiled, step, kernel, node->inputs[i], &body, &inputs[i]);
        plan_write_node(&body, graph, group, group->nodes[m], inputs);
    }
    for (int w = 0; w < step->write_count; w++) {
        int64_t strides[SMELT_MAX_DIMENSIONS];
        plan_strides(compiled, step->writes[w], &group->full, strides);
        int j = plan_operand(compiled, kernel, step->writes[w], strides, group->full.ndim, true);
        text_addf(&body, "  p%d[o%d] = v%d;\n", j, j, plan_name(group, graph->values[step->writes[w]].node));
    }
    step->kernel_count = 1;
    return plan_finish_kernel(kernel, &before, &body);
}
