/* Compiled graphs from files: see save.c. */
#include "base/file.h"
#include "device/device.h"
#include "graph/plan.h"
#include "graph/stored.h"
#include "kernels/shipped.h"
#include "ops/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    const char *at, *end;
    bool damaged;
};

static int64_t number(struct reader *r) {
    int64_t value = 0;
    if (r->end - r->at < (ptrdiff_t)sizeof value) {
        r->damaged = true;
        return 0;
    }
    memcpy(&value, r->at, sizeof value);
    r->at += sizeof value;
    return value;
}

/* In [0, most]. */
static int64_t bounded(struct reader *r, int64_t most) {
    int64_t value = number(r);
    if (value < 0 || value > most) r->damaged = true;
    return r->damaged ? 0 : value;
}

static const char *bytes(struct reader *r, size_t *count) {
    *count = (size_t)bounded(r, r->end - r->at);
    const char *start = r->at;
    r->at += *count;
    return start;
}

/* A heap copy. */
static char *string(struct reader *r) {
    size_t count;
    const char *start = bytes(r, &count);
    if (!r->damaged && memchr(start, 0, count)) r->damaged = true;
    char *copy = string_copy(start, count);
    if (!copy) r->damaged = true;
    return copy;
}

/* ---- The graph. */

static bool read_type(struct reader *r, smelt_type *type) {
    int64_t size;
    *type = (smelt_type){.dtype = (smelt_dtype)bounded(r, SMELT_FLOAT64)};
    type->shape.ndim = (int)bounded(r, SMELT_MAX_DIMENSIONS);
    for (int d = 0; d < type->shape.ndim; d++) type->shape.size[d] = bounded(r, INT64_MAX);
    return !r->damaged && shape_check("stored graph", type->dtype, &type->shape, &size) == SMELT_OK;
}

static smelt_status read_constant(struct reader *r, const smelt_type *type, struct graph_node *node) {
    size_t count;
    const char *data = bytes(r, &count);
    int64_t size = shape_product(&type->shape);
    if (r->damaged || count != (size_t)size * smelt_dtype_bytes(type->dtype)) {
        r->damaged = true;
        return SMELT_OK;
    }
    return smelt_array_from_values(type->dtype, type->shape, data, &node->constant);
}

static smelt_status read_operation(struct reader *r, struct graph_node *node) {
    size_t count;
    const char *data = bytes(r, &count);
    if (r->damaged || count != sizeof node->desc) {
        r->damaged = true;
        return SMELT_OK;
    }
    memcpy(&node->desc, data, sizeof node->desc);
    memset(node->desc.inputs, 0, sizeof node->desc.inputs);
    node->desc.device = NULL;
    node->desc.stream = NULL;
    node->desc.algorithm = NULL;
    char *algorithm = string(r);
    if (algorithm && *algorithm)
        node->desc.algorithm = algorithm;
    else
        free(algorithm);
    if (!smelt_operation_name(node->desc.operation) || operation_is_composed(node->desc.operation) ||
        node->desc.axis_count < 0 || node->desc.axis_count > 2 * SMELT_MAX_DIMENSIONS)
        r->damaged = true;
    return SMELT_OK;
}

static smelt_status read_node(struct reader *r, smelt_graph *graph) {
    struct graph_node node = {.kind = (enum graph_kind)bounded(r, GRAPH_OPERATION)};
    int inputs[SMELT_MAX_ARGUMENTS], index;
    smelt_type types[SMELT_MAX_ARGUMENTS];
    int input_count = (int)bounded(r, SMELT_MAX_ARGUMENTS - 1);
    for (int i = 0; i < input_count; i++) inputs[i] = (int)bounded(r, graph->value_count - 1);
    int output_count = (int)bounded(r, SMELT_MAX_ARGUMENTS);
    for (int i = 0; i < output_count; i++)
        if (!read_type(r, &types[i])) r->damaged = true;
    bool one = node.kind == GRAPH_REMOVED || output_count == 1;
    if (!one || (node.kind == GRAPH_OPERATION) != (input_count > 0)) r->damaged = true;
    smelt_status status = SMELT_OK;
    if (!r->damaged && node.kind == GRAPH_CONSTANT) status = read_constant(r, &types[0], &node);
    if (!r->damaged && node.kind == GRAPH_OPERATION) status = read_operation(r, &node);
    if (status == SMELT_OK && !r->damaged)
        return graph_add(graph, &node, inputs, input_count, types, output_count, &index);
    graph_clear_node(&node);
    return status;
}

static smelt_status read_ports(struct reader *r, const smelt_graph *graph, struct graph_port **ports,
                               int *count, const char *kind) {
    int64_t wanted = bounded(r, 1 << 20);
    for (int64_t i = 0; i < wanted && !r->damaged; i++) {
        char *name = string(r);
        int value = (int)bounded(r, graph->value_count - 1);
        smelt_status status = r->damaged ? SMELT_OK : graph_add_port(ports, count, name, kind, value);
        free(name);
        TRY(status);
    }
    return SMELT_OK;
}

static smelt_status read_graph(struct reader *r, smelt_graph *graph) {
    int64_t nodes = bounded(r, INT32_MAX);
    for (int64_t n = 0; n < nodes && !r->damaged; n++) TRY(read_node(r, graph));
    TRY(read_ports(r, graph, &graph->inputs, &graph->input_count, "input"));
    TRY(read_ports(r, graph, &graph->outputs, &graph->output_count, "output"));
    for (int i = 0; i < graph->input_count && !r->damaged; i++)
        if (graph->nodes[graph->values[graph->inputs[i].value].node].kind != GRAPH_INPUT) r->damaged = true;
    return SMELT_OK;
}

/* Every operation infers the type that the file gives it: then it can run. */
static smelt_status check_types(const smelt_graph *graph, bool *right) {
    *right = true;
    for (int n = 0; n < graph->node_count && *right; n++) {
        const struct graph_node *node = &graph->nodes[n];
        if (node->kind != GRAPH_OPERATION) continue;
        smelt_apply_desc desc = node->desc;
        smelt_array *shaped = NULL;
        smelt_status status = SMELT_OK;
        for (int i = 0; i < node->input_count && status == SMELT_OK; i++) {
            const struct graph_value *type = &graph->values[node->inputs[i]];
            const struct graph_node *from = &graph->nodes[type->node];
            if (from->kind == GRAPH_CONSTANT)
                desc.inputs[i] = smelt_array_retain(from->constant);
            else
                status = array_symbolic(type->dtype, &type->shape, NULL, NULL, &desc.inputs[i]);
        }
        if (status == SMELT_OK) *right = operation_infer(&desc, &shaped) == SMELT_OK;
        const struct graph_value *own = &graph->values[node->first];
        if (shaped) *right = shaped->dtype == own->dtype && shape_equal(&shaped->shape, &own->shape);
        smelt_array_release(shaped);
        for (int i = 0; i < node->input_count; i++) smelt_array_release(desc.inputs[i]);
        TRY(status);
    }
    return SMELT_OK;
}

/* ---- The kernels. */

static smelt_status read_kernels(struct reader *r) {
    for (;;) {
        int64_t kind = bounded(r, STORED_SHIPPED);
        size_t key_bytes = 0, package_bytes;
        if (r->damaged || kind == STORED_END) return SMELT_OK;
        struct program_key key;
        const char *key_data = kind == STORED_PROGRAM ? bytes(r, &key_bytes) : NULL;
        char *name = string(r);
        const char *package = bytes(r, &package_bytes);
        if (kind == STORED_PROGRAM && key_bytes != sizeof key) r->damaged = true;
        smelt_status status = SMELT_OK;
        if (!r->damaged && kind == STORED_PROGRAM) {
            memcpy(&key, key_data, sizeof key);
            status = program_put(&key, name, package, package_bytes);
        } else if (!r->damaged) {
            status = shipped_put(name, package, package_bytes);
        }
        free(name);
        TRY(status);
    }
}

/* ---- The file. */

static smelt_status check_head(struct reader *r, const char *path) {
    size_t count;
    bool magic = r->end - r->at > (ptrdiff_t)sizeof STORED_MAGIC &&
                 memcmp(r->at, STORED_MAGIC, sizeof STORED_MAGIC) == 0;
    if (!magic) return fail(SMELT_ERROR_FORMAT, "compiled load: %s is not a stored graph", path);
    r->at += sizeof STORED_MAGIC;
    const char *version = bytes(r, &count);
    bool same =
        !r->damaged && count == strlen(smelt_version()) && memcmp(version, smelt_version(), count) == 0;
    same &= number(r) == (int64_t)sizeof(smelt_apply_desc);
    same &= number(r) == (int64_t)sizeof(struct program_key);
    if (same) return SMELT_OK;
    return fail(SMELT_ERROR_FORMAT, "compiled load: %s was stored by another version of smelt", path);
}

static smelt_status read_compiled(struct reader *r, smelt_compiled *compiled) {
    const struct device *device;
    char *name = string(r), *graph_name = string(r);
    smelt_status status = r->damaged ? SMELT_OK : device_find(name, &device);
    if (status == SMELT_OK && !r->damaged) {
        snprintf(compiled->device, sizeof compiled->device, "%s", device->name);
        status = smelt_graph_create(graph_name, &compiled->graph);
    }
    free(name);
    free(graph_name);
    if (status != SMELT_OK || r->damaged) return status;
    compiled->unfused = bounded(r, 1) == 1;
    compiled->unplanned = bounded(r, 1) == 1;
    TRY(read_graph(r, compiled->graph));
    bool right = true;
    if (!r->damaged) TRY(check_types(compiled->graph, &right));
    r->damaged |= !right;
    if (!r->damaged) TRY(read_kernels(r));
    return r->damaged ? SMELT_OK : compiled_plan(compiled);
}

smelt_status smelt_compiled_load(const char *path, smelt_compiled **out) {
    struct text file = {0};
    if (!path || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "compiled load: %s is NULL",
                    path ? "the address for the compiled graph" : "path");
    smelt_status status = file_read(path, &file);
    smelt_compiled *compiled = status == SMELT_OK ? calloc(1, sizeof *compiled) : NULL;
    if (status == SMELT_OK && !compiled) status = fail_out_of_memory(sizeof *compiled);
    struct reader r = {file.data, file.data + file.length, false};
    if (status == SMELT_OK) {
        atomic_init(&compiled->references, 1);
        status = check_head(&r, path);
    }
    if (status == SMELT_OK) status = read_compiled(&r, compiled);
    if (status == SMELT_OK && r.damaged)
        status = fail(SMELT_ERROR_FORMAT, "compiled load: %s is damaged or cut short", path);
    if (status == SMELT_OK)
        *out = compiled;
    else
        smelt_compiled_release(compiled);
    text_free(&file);
    return status;
}
