/* Compiled graphs in files: the graph after its passes, and the machine code of all kernels that an execution
 * runs (collect_code.c). Loading plans the graph again, which needs no compiler, and gives the kernels to the
 * tables from which executions take them. */
#include "array/dtype.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/reserved.h"
#include "graph/collect_code.h"
#include "graph/plan.h"
#include "graph/stored.h"
#include "ops/program.h"

#include <stdlib.h>
#include <string.h>

/* ---- The graph. */

static void write_type(struct text *out, const struct graph_value *value) {
    stored_number(out, value->dtype);
    stored_number(out, value->shape.ndim);
    for (int d = 0; d < value->shape.ndim; d++) stored_number(out, value->shape.size[d]);
}

/* Whether the elements of a float32 array are all float16's: those of models trained or stored as such. */
static bool are_halves(const smelt_array *array) {
    for (int64_t i = 0; i < array->size; i++) {
        float element, again;
        uint32_t bits, bits_again;
        memcpy(&element, array->data + 4 * i, sizeof element);
        again = (float)float16_to_double(float16_from_double(element));
        memcpy(&bits, &element, sizeof bits);
        memcpy(&bits_again, &again, sizeof bits_again);
        if (bits != bits_again) return false;
    }
    return true;
}

/* The parts of a file: a text, and the elements of constants between its bytes, which are not copied into it.
 */
struct parts {
    struct text text;
    struct part {
        size_t place; /* the bytes of the text before it */
        smelt_array *constant;
    } *constants;
    int count, capacity;
};

static void parts_free(struct parts *parts) {
    for (int i = 0; i < parts->count; i++) smelt_array_release(parts->constants[i].constant);
    free(parts->constants);
    text_free(&parts->text);
}

/* Takes the reference, also when it fails. */
static smelt_status add_elements(struct parts *parts, smelt_array *constant) {
    if (parts->count == parts->capacity) {
        int capacity = parts->capacity ? 2 * parts->capacity : 64;
        struct part *grown = realloc(parts->constants, (size_t)capacity * sizeof *grown);
        if (!grown) {
            smelt_array_release(constant);
            return fail_out_of_memory((size_t)capacity * sizeof *grown);
        }
        parts->constants = grown;
        parts->capacity = capacity;
    }
    parts->constants[parts->count++] = (struct part){parts->text.length, constant};
    return SMELT_OK;
}

static size_t bytes_of(const smelt_array *array) {
    return (size_t)array->size * smelt_dtype_bytes(array->dtype);
}

static smelt_status write_parts(const struct parts *parts, const char *path) {
    struct bytes *pieces = calloc((size_t)parts->count * 2 + 1, sizeof *pieces);
    size_t from = 0;
    int count = 0;
    if (!pieces) return fail_out_of_memory((size_t)parts->count * 2 * sizeof *pieces);
    for (int i = 0; i < parts->count; i++) {
        const struct part *part = &parts->constants[i];
        pieces[count++] = (struct bytes){parts->text.data + from, part->place - from};
        pieces[count++] = (struct bytes){part->constant->data, bytes_of(part->constant)};
        from = part->place;
    }
    pieces[count++] = (struct bytes){parts->text.data + from, parts->text.length - from};
    smelt_status status = file_write(path, pieces, count);
    free(pieces);
    return status;
}

static smelt_status write_constant(struct parts *parts, smelt_array *constant) {
    bool halves = constant->dtype == SMELT_FLOAT32 && are_halves(constant);
    smelt_array *stored;
    if (halves)
        TRY(smelt_array_convert(constant, SMELT_FLOAT16, &stored));
    else
        stored = smelt_array_retain(constant);
    stored_number(&parts->text, halves ? STORED_HALVES : STORED_ELEMENTS);
    stored_number(&parts->text, (int64_t)bytes_of(stored));
    return add_elements(parts, stored);
}

static void write_operation(struct text *out, const struct graph_node *node) {
    smelt_apply_desc desc = node->desc;
    const char *algorithm = desc.algorithm;
    desc.algorithm = NULL;
    stored_structure(out, &desc, sizeof desc);
    stored_string(out, algorithm);
}

static smelt_status write_node(struct parts *parts, const smelt_graph *graph, const struct graph_node *node) {
    struct text *out = &parts->text;
    stored_number(out, node->kind);
    stored_number(out, node->input_count);
    for (int i = 0; i < node->input_count; i++) stored_number(out, node->inputs[i]);
    stored_number(out, node->output_count);
    for (int i = 0; i < node->output_count; i++) write_type(out, &graph->values[node->first + i]);
    if (node->kind == GRAPH_CUSTOM) return stored_write_call(out, node->call);
    if (node->kind == GRAPH_KERNEL) return stored_write_launch(out, node->launch, node->output_count);
    if (node->kind == GRAPH_CONSTANT) return write_constant(parts, node->constant);
    if (node->kind == GRAPH_OPERATION) write_operation(out, node);
    return SMELT_OK;
}

static void write_ports(struct text *out, const struct graph_port *ports, int count) {
    stored_number(out, count);
    for (int i = 0; i < count; i++) {
        stored_bytes(out, ports[i].name, strlen(ports[i].name));
        stored_number(out, ports[i].value);
    }
}

static smelt_status write_graph(struct parts *parts, const smelt_compiled *compiled) {
    struct text *out = &parts->text;
    const smelt_graph *graph = compiled->graph;
    text_append(out, STORED_MAGIC, sizeof STORED_MAGIC);
    stored_number(out, sizeof(smelt_apply_desc));
    stored_string(out, compiled->device);
    stored_string(out, graph->name);
    stored_number(out, compiled->unfused);
    stored_number(out, compiled->unplanned);
    stored_number(out, compiled->streams);
    stored_number(out, graph->node_count);
    for (int n = 0; n < graph->node_count; n++) TRY(write_node(parts, graph, &graph->nodes[n]));
    write_ports(out, graph->inputs, graph->input_count);
    write_ports(out, graph->outputs, graph->output_count);
    return SMELT_OK;
}

static smelt_status write_code(struct text *out, smelt_compiled *compiled, bool without_code) {
    struct text code = {0};
    smelt_status status = SMELT_OK;
    if (!without_code) {
        status = compiled_collect_code(compiled, &code);
        stored_number(&code, STORED_END);
        if (status == SMELT_OK && code.failed) status = fail_out_of_memory(code.length);
    }
    if (status == SMELT_OK) {
        struct hash hash = hash_bytes(code.data, code.length);
        stored_number(out, sizeof(struct program_key));
        stored_number(out, (int64_t)hash.low);
        stored_number(out, (int64_t)hash.high);
        stored_bytes(out, code.data, code.length);
    }
    text_free(&code);
    return status;
}

smelt_status smelt_compiled_store(smelt_compiled *compiled, const smelt_store_desc *desc) {
    struct parts parts = {0};
    if (!compiled || !desc || !desc->path)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "compiled store: %s is NULL",
                    !compiled ? "compiled"
                    : !desc   ? "desc"
                              : "path");
    TRY(reserved_check(smelt_store_desc, desc));
    TRY(file_check_writable(desc->path));
    smelt_status status = write_graph(&parts, compiled);
    if (status == SMELT_OK) status = write_code(&parts.text, compiled, desc->without_code);
    if (status == SMELT_OK && parts.text.failed) status = fail_out_of_memory(parts.text.length);
    if (status == SMELT_OK) status = write_parts(&parts, desc->path);
    parts_free(&parts);
    return status;
}

smelt_status smelt_compiled_save(smelt_compiled *compiled, const char *path) {
    return smelt_compiled_store(compiled, &(smelt_store_desc){.path = path});
}
