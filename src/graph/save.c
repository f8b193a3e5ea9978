/* Compiled graphs in files: the graph after its passes, and the machine code of all kernels that an execution
 * runs. Loading plans the graph again, which needs no compiler, and gives the kernels to the tables from
 * which executions take them. */
#include "array/dtype.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/reserved.h"
#include "device/device.h"
#include "graph/plan.h"
#include "graph/stored.h"
#include "kernels/shipped.h"
#include "ops/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The kernels of an execution. */

struct collection {
    struct text *out;
    const char *device, *target;
    struct hash *seen; /* of each kernel that was appended: it may run in several steps */
    int count, capacity;
    smelt_status status;
};

/* Whether a kernel is new; then it is noted. */
static bool is_new(struct collection *all, const void *key, size_t size) {
    struct hash hash = hash_bytes(key, size);
    if (all->status != SMELT_OK) return false;
    for (int i = 0; i < all->count; i++)
        if (all->seen[i].low == hash.low && all->seen[i].high == hash.high) return false;
    if (all->count == all->capacity) {
        int capacity = all->capacity ? 2 * all->capacity : 64;
        struct hash *grown = realloc(all->seen, (size_t)capacity * sizeof *grown);
        if (!grown) {
            all->status = fail_out_of_memory((size_t)capacity * sizeof *grown);
            return false;
        }
        all->seen = grown;
        all->capacity = capacity;
    }
    all->seen[all->count++] = hash;
    return true;
}

/* The package of a kernel's text, appended. */
static smelt_status append_package(struct text *out, const char *target, const char *source, const char *name,
                                   smelt_math_mode math) {
    smelt_library *library;
    struct text package = {0};
    char path[] = "/tmp/smelt-graph-XXXXXX";
    int file = mkstemp(path);
    if (file < 0) return fail(SMELT_ERROR_IO, "compiled save: no temporary file can be created in /tmp");
    close(file);
    smelt_status status =
        smelt_library_create(&(smelt_library_desc){.source = source, .path = name, .math = math}, &library);
    if (status == SMELT_OK) {
        const char *const entries[] = {name, NULL};
        status = smelt_library_build(
            library, &(smelt_build_desc){.path = path, .targets = {target}, .entries = entries, .jobs = 1});
        smelt_library_release(library);
    }
    if (status == SMELT_OK) status = file_read(path, &package);
    if (status == SMELT_OK) stored_bytes(out, package.data, package.length);
    (void)remove(path);
    text_free(&package);
    return status;
}

static void add_program(void *context, const struct program_key *key, const char *name, const char *text) {
    struct collection *all = context;
    if (!is_new(all, key, sizeof *key)) return;
    stored_number(all->out, STORED_PROGRAM);
    stored_bytes(all->out, key, sizeof *key);
    stored_bytes(all->out, name, strlen(name));
    all->status = append_package(all->out, all->target, text, name, SMELT_MATH_SAFE);
}

static void add_shipped(void *context, const char *source, const char *entry, smelt_math_mode math) {
    struct collection *all = context;
    if (!is_new(all, entry, strlen(entry))) return;
    stored_number(all->out, STORED_SHIPPED);
    stored_bytes(all->out, entry, strlen(entry));
    all->status = append_package(all->out, all->target, source, entry, math);
}

/* Executes the graph once, on zeros. */
static smelt_status execute_once(smelt_compiled *compiled) {
    const smelt_graph *graph = compiled->graph;
    size_t inputs = (size_t)graph->input_count, outputs = (size_t)graph->output_count;
    smelt_array **arrays = calloc(inputs + outputs + 1, sizeof *arrays);
    smelt_session *session = NULL;
    if (!arrays) return fail_out_of_memory(inputs * sizeof *arrays);
    smelt_status status =
        smelt_session_create(compiled, &(smelt_session_desc){.no_recording = true}, &session);
    for (int i = 0; i < graph->input_count && status == SMELT_OK; i++) {
        const struct graph_value *type = &graph->values[graph->inputs[i].value];
        status = smelt_apply(&(smelt_apply_desc){.operation = SMELT_OPERATION_ZEROS,
                                                 .dtype = type->dtype,
                                                 .shape = type->shape,
                                                 .device = compiled->device},
                             &arrays[i]);
    }
    if (status == SMELT_OK)
        status = smelt_session_execute(
            session, &(smelt_execute_desc){.inputs = arrays, .input_count = graph->input_count},
            arrays + inputs);
    for (size_t i = 0; i < inputs + outputs; i++) smelt_array_release(arrays[i]);
    free(arrays);
    smelt_session_release(session);
    return status;
}

static smelt_status collect(smelt_compiled *compiled, struct text *out) {
    const struct device *device;
    TRY(device_find(compiled->device, &device));
    struct collection all = {
        .out = out, .device = compiled->device, .target = device->target ? device->target : "cpu"};
    const struct program_sink programs = {add_program, &all};
    const struct shipped_sink shipped = {add_shipped, &all};
    program_collect(&programs);
    shipped_collect(&shipped);
    smelt_status status = execute_once(compiled);
    program_collect(NULL);
    shipped_collect(NULL);
    free(all.seen);
    return status == SMELT_OK ? all.status : status;
}

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
        status = collect(compiled, &code);
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
