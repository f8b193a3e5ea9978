/* Compiled graphs from files: see save.c. */
#include "base/file.h"
#include "base/hash.h"
#include "device/device.h"
#include "graph/plan.h"
#include "graph/stored.h"
#include "kernels/shipped.h"
#include "ops/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The graph. */

static bool read_type(struct stored_reader *r, smelt_type *type) {
    int64_t size;
    *type = (smelt_type){.dtype = (smelt_dtype)stored_read_bounded(r, SMELT_FLOAT64)};
    type->shape.ndim = (int)stored_read_bounded(r, SMELT_MAX_DIMENSIONS);
    for (int d = 0; d < type->shape.ndim; d++) type->shape.size[d] = stored_read_bounded(r, INT64_MAX);
    return !r->damaged && shape_check("stored graph", type->dtype, &type->shape, &size) == SMELT_OK;
}

static smelt_status read_constant(struct stored_reader *r, const smelt_type *type, struct graph_node *node) {
    size_t count;
    bool halves = stored_read_bounded(r, STORED_HALVES) == STORED_HALVES;
    const char *data = stored_read_bytes(r, &count);
    int64_t size = shape_product(&type->shape);
    smelt_dtype dtype = halves ? SMELT_FLOAT16 : type->dtype;
    r->damaged |= halves && type->dtype != SMELT_FLOAT32;
    if (r->damaged || count != (size_t)size * smelt_dtype_bytes(dtype)) {
        r->damaged = true;
        return SMELT_OK;
    }
    if (!halves) return smelt_array_from_values(dtype, type->shape, data, &node->constant);
    smelt_array *stored;
    TRY(smelt_array_from_values(dtype, type->shape, data, &stored));
    smelt_status status = smelt_array_convert(stored, SMELT_FLOAT32, &node->constant);
    smelt_array_release(stored);
    return status;
}

static smelt_status read_operation(struct stored_reader *r, struct graph_node *node) {
    stored_read_structure(r, &node->desc, sizeof node->desc);
    memset(node->desc.inputs, 0, sizeof node->desc.inputs);
    node->desc.device = NULL;
    node->desc.stream = NULL;
    node->desc.algorithm = NULL;
    char *algorithm = stored_read_string(r);
    if (algorithm && *algorithm)
        node->desc.algorithm = algorithm;
    else
        free(algorithm);
    if (!smelt_operation_name(node->desc.operation) || operation_is_composed(node->desc.operation) ||
        node->desc.axis_count < 0 || node->desc.axis_count > 2 * SMELT_MAX_DIMENSIONS)
        r->damaged = true;
    return SMELT_OK;
}

static smelt_status read_node(struct stored_reader *r, smelt_graph *graph) {
    struct graph_node node = {.kind = (enum graph_kind)stored_read_bounded(r, GRAPH_KERNEL)};
    int inputs[SMELT_MAX_ARGUMENTS], index;
    smelt_type types[SMELT_MAX_ARGUMENTS];
    int input_count = (int)stored_read_bounded(r, SMELT_MAX_ARGUMENTS - 1);
    for (int i = 0; i < input_count; i++) inputs[i] = (int)stored_read_bounded(r, graph->value_count - 1);
    int output_count = (int)stored_read_bounded(r, SMELT_MAX_ARGUMENTS);
    for (int i = 0; i < output_count; i++)
        if (!read_type(r, &types[i])) r->damaged = true;
    bool several = node.kind == GRAPH_REMOVED || node.kind == GRAPH_CUSTOM || node.kind == GRAPH_KERNEL;
    bool computed = node.kind >= GRAPH_OPERATION;
    /* A kernel that takes no arrays depends on no input: none is in a graph. */
    if (!(several || output_count == 1) || computed != (input_count > 0)) r->damaged = true;
    smelt_status status = SMELT_OK;
    if (!r->damaged && node.kind == GRAPH_CONSTANT) status = read_constant(r, &types[0], &node);
    if (!r->damaged && node.kind == GRAPH_OPERATION) status = read_operation(r, &node);
    if (!r->damaged && node.kind == GRAPH_CUSTOM) status = stored_read_call(r, &node.call);
    if (!r->damaged && node.kind == GRAPH_KERNEL)
        status = stored_read_launch(r, types, input_count, output_count, &node.launch);
    if (status == SMELT_OK && !r->damaged)
        return graph_add(graph, &node, inputs, input_count, types, output_count, &index);
    graph_clear_node(&node);
    return status;
}

static smelt_status read_ports(struct stored_reader *r, const smelt_graph *graph, struct graph_port **ports,
                               int *count, const char *kind) {
    int64_t wanted = stored_read_bounded(r, 1 << 20);
    for (int64_t i = 0; i < wanted && !r->damaged; i++) {
        char *name = stored_read_string(r);
        int value = (int)stored_read_bounded(r, graph->value_count - 1);
        smelt_status status = r->damaged ? SMELT_OK : graph_add_port(ports, count, name, kind, value);
        free(name);
        TRY(status);
    }
    return SMELT_OK;
}

static smelt_status read_graph(struct stored_reader *r, smelt_graph *graph) {
    int64_t nodes = stored_read_bounded(r, INT32_MAX);
    for (int64_t n = 0; n < nodes && !r->damaged; n++) TRY(read_node(r, graph));
    TRY(read_ports(r, graph, &graph->inputs, &graph->input_count, "input"));
    TRY(read_ports(r, graph, &graph->outputs, &graph->output_count, "output"));
    for (int i = 0; i < graph->input_count && !r->damaged; i++)
        if (graph->nodes[graph->values[graph->inputs[i].value].node].kind != GRAPH_INPUT) r->damaged = true;
    return SMELT_OK;
}

/* Whether an operation infers the type that the file gives it; of kernels, launches check theirs. */
static smelt_status infers_types(const smelt_graph *graph, const struct graph_node *node,
                                 smelt_array *const *inputs, bool *right) {
    const struct graph_value *own = &graph->values[node->first];
    *right = true;
    if (node->kind == GRAPH_OPERATION) {
        smelt_apply_desc desc = node->desc;
        smelt_array *shaped = NULL;
        memcpy(desc.inputs, inputs, (size_t)node->input_count * sizeof *inputs);
        *right = operation_infer(&desc, &shaped) == SMELT_OK;
        if (shaped) *right = shaped->dtype == own->dtype && shape_equal(&shaped->shape, &own->shape);
        smelt_array_release(shaped);
    } else if (node->kind == GRAPH_CUSTOM) {
        smelt_type types[SMELT_MAX_ARGUMENTS];
        int count = 0;
        *right = graph_call_types(node->call, inputs, node->input_count, types, &count) == SMELT_OK &&
                 count == node->output_count;
        for (int i = 0; i < count && *right; i++)
            *right = types[i].dtype == own[i].dtype && shape_equal(&types[i].shape, &own[i].shape);
    }
    return SMELT_OK;
}

/* Every operation infers the type that the file gives it: then it can run. */
static smelt_status check_types(const smelt_graph *graph, bool *right) {
    *right = true;
    for (int n = 0; n < graph->node_count && *right; n++) {
        const struct graph_node *node = &graph->nodes[n];
        smelt_array *inputs[SMELT_MAX_ARGUMENTS] = {NULL};
        smelt_status status = SMELT_OK;
        for (int i = 0; i < node->input_count && status == SMELT_OK; i++) {
            const struct graph_value *type = &graph->values[node->inputs[i]];
            const struct graph_node *from = &graph->nodes[type->node];
            if (from->kind == GRAPH_CONSTANT)
                inputs[i] = smelt_array_retain(from->constant);
            else
                status = array_symbolic(type->dtype, &type->shape, NULL, NULL, &inputs[i]);
        }
        if (status == SMELT_OK) status = infers_types(graph, node, inputs, right);
        for (int i = 0; i < node->input_count; i++) smelt_array_release(inputs[i]);
        TRY(status);
    }
    return SMELT_OK;
}

/* ---- The code. */

static smelt_status read_kernels(struct stored_reader *r) {
    for (;;) {
        int64_t kind = stored_read_bounded(r, STORED_SHIPPED);
        size_t key_bytes = 0, package_bytes;
        if (r->damaged || kind == STORED_END) return SMELT_OK;
        struct program_key key;
        const char *key_data = kind == STORED_PROGRAM ? stored_read_bytes(r, &key_bytes) : NULL;
        char *name = stored_read_string(r);
        const char *package = stored_read_bytes(r, &package_bytes);
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

/* Without code, or with code of another build of smelt, kernels are compiled when they first run. */
static smelt_status read_code(struct stored_reader *r) {
    size_t count;
    int64_t key_size = stored_read_number(r);
    uint64_t low = (uint64_t)stored_read_number(r), high = (uint64_t)stored_read_number(r);
    const char *code = stored_read_bytes(r, &count);
    struct hash found = hash_bytes(code, count);
    r->damaged |= r->at != r->end || found.low != low || found.high != high;
    if (r->damaged || !count || key_size != (int64_t)sizeof(struct program_key)) return SMELT_OK;
    struct stored_reader kernels = {code, code + count, false, false};
    smelt_status status = read_kernels(&kernels);
    r->damaged |= kernels.damaged;
    if (status != SMELT_ERROR_FORMAT) return status;
    log_line(SMELT_LOG_INFO, "a stored graph's code is not used: %s", smelt_error());
    return SMELT_OK;
}

/* ---- The file. */

static smelt_status check_head(struct stored_reader *r, const char *path) {
    bool magic = r->end - r->at > (ptrdiff_t)sizeof STORED_MAGIC &&
                 (memcmp(r->at, STORED_MAGIC, sizeof STORED_MAGIC) == 0 ||
                  memcmp(r->at, STORED_BEFORE, sizeof STORED_BEFORE) == 0);
    if (!magic) return fail(SMELT_ERROR_FORMAT, "compiled load: %s is not a stored graph", path);
    r->before = memcmp(r->at, STORED_BEFORE, sizeof STORED_BEFORE) == 0;
    r->at += sizeof STORED_MAGIC;
    if (stored_read_number(r) == (int64_t)sizeof(smelt_apply_desc)) return SMELT_OK;
    return fail(SMELT_ERROR_FORMAT, "compiled load: %s was stored by another version of smelt", path);
}

static smelt_status read_compiled(struct stored_reader *r, smelt_compiled *compiled) {
    const struct device *device;
    char *name = stored_read_string(r), *graph_name = stored_read_string(r);
    smelt_status status = r->damaged ? SMELT_OK : device_find(name, &device);
    if (status == SMELT_OK && !r->damaged) {
        snprintf(compiled->device, sizeof compiled->device, "%s", device->name);
        status = smelt_graph_create(graph_name, &compiled->graph);
    }
    free(name);
    free(graph_name);
    if (status != SMELT_OK || r->damaged) return status;
    compiled->unfused = stored_read_bounded(r, 1) == 1;
    compiled->unplanned = stored_read_bounded(r, 1) == 1;
    if (!r->before) compiled->streams = (int)stored_read_bounded(r, GRAPH_MOST_STREAMS);
    TRY(read_graph(r, compiled->graph));
    bool right = true;
    if (!r->damaged) TRY(check_types(compiled->graph, &right));
    r->damaged |= !right;
    if (!r->damaged) TRY(read_code(r));
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
    struct stored_reader r = {file.data, file.data + file.length, false, false};
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
