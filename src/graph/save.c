/* Compiled graphs in files: the graph after its passes, and the machine code of all kernels that an execution
 * runs. Loading plans the graph again, which needs no compiler, and gives the kernels to the tables from
 * which executions take them. */
#include "base/file.h"
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
    int count;
    smelt_status status;
};

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
    if (all->status != SMELT_OK) return;
    stored_number(all->out, STORED_PROGRAM);
    stored_bytes(all->out, key, sizeof *key);
    stored_bytes(all->out, name, strlen(name));
    all->status = append_package(all->out, all->target, text, name, SMELT_MATH_SAFE);
    all->count++;
}

static void add_shipped(void *context, const char *source, const char *entry, smelt_math_mode math) {
    struct collection *all = context;
    if (all->status != SMELT_OK) return;
    stored_number(all->out, STORED_SHIPPED);
    stored_bytes(all->out, entry, strlen(entry));
    all->status = append_package(all->out, all->target, source, entry, math);
    all->count++;
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
    return status == SMELT_OK ? all.status : status;
}

/* ---- The graph. */

static void write_type(struct text *out, const struct graph_value *value) {
    stored_number(out, value->dtype);
    stored_number(out, value->shape.ndim);
    for (int d = 0; d < value->shape.ndim; d++) stored_number(out, value->shape.size[d]);
}

static smelt_status write_node(struct text *out, const smelt_graph *graph, const struct graph_node *node) {
    if (node->kind == GRAPH_KERNEL)
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "compiled save: kernel '%s' is a kernel body, which packages do not hold; graphs of "
                    "operations can be saved",
                    graph_launch_name(node->launch));
    if (node->kind == GRAPH_CUSTOM)
        return fail(
            SMELT_ERROR_UNSUPPORTED,
            "compiled save: operation '%s' is opaque: its function runs at each execution, and files do not "
            "hold functions",
            graph_call_name(node->call));
    stored_number(out, node->kind);
    stored_number(out, node->input_count);
    for (int i = 0; i < node->input_count; i++) stored_number(out, node->inputs[i]);
    stored_number(out, node->output_count);
    for (int i = 0; i < node->output_count; i++) write_type(out, &graph->values[node->first + i]);
    if (node->kind == GRAPH_OPERATION) {
        smelt_apply_desc desc = node->desc;
        const char *algorithm = desc.algorithm ? desc.algorithm : "";
        desc.algorithm = NULL;
        stored_bytes(out, &desc, sizeof desc);
        stored_bytes(out, algorithm, strlen(algorithm));
    } else if (node->kind == GRAPH_CONSTANT) {
        const smelt_array *constant = node->constant;
        stored_bytes(out, constant->data, (size_t)constant->size * smelt_dtype_bytes(constant->dtype));
    }
    return SMELT_OK;
}

static void write_ports(struct text *out, const struct graph_port *ports, int count) {
    stored_number(out, count);
    for (int i = 0; i < count; i++) {
        stored_bytes(out, ports[i].name, strlen(ports[i].name));
        stored_number(out, ports[i].value);
    }
}

smelt_status smelt_compiled_save(smelt_compiled *compiled, const char *path) {
    struct text out = {0};
    if (!compiled || !path)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "compiled save: %s is NULL",
                    compiled ? "path" : "compiled");
    TRY(file_check_writable(path));
    const smelt_graph *graph = compiled->graph;
    text_append(&out, STORED_MAGIC, sizeof STORED_MAGIC);
    stored_bytes(&out, smelt_version(), strlen(smelt_version()));
    stored_number(&out, sizeof(smelt_apply_desc));
    stored_number(&out, sizeof(struct program_key));
    stored_bytes(&out, compiled->device, strlen(compiled->device));
    stored_bytes(&out, graph->name, strlen(graph->name));
    stored_number(&out, compiled->unfused);
    stored_number(&out, compiled->unplanned);
    stored_number(&out, graph->node_count);
    smelt_status status = SMELT_OK;
    for (int n = 0; n < graph->node_count && status == SMELT_OK; n++)
        status = write_node(&out, graph, &graph->nodes[n]);
    write_ports(&out, graph->inputs, graph->input_count);
    write_ports(&out, graph->outputs, graph->output_count);
    if (status == SMELT_OK) status = collect(compiled, &out);
    stored_number(&out, STORED_END);
    if (status == SMELT_OK && out.failed) status = fail_out_of_memory(out.length);
    if (status == SMELT_OK) status = file_write(path, &(struct bytes){out.data, out.length}, 1);
    text_free(&out);
    return status;
}
