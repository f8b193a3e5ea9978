/* Kernels from bodies as nodes. */
#include "base/text.h"
#include "graph/owned.h"
#include "graph/tracing.h"

#include <stdlib.h>
#include <string.h>

static smelt_status copy_desc(const smelt_run_desc *from, int outputs, struct graph_launch *launch) {
    smelt_run_desc *desc = &launch->desc;
    *desc = *from;
    memset(desc->inputs, 0, sizeof desc->inputs);
    memset(desc->into, 0, sizeof desc->into);
    memset(desc->templates, 0, sizeof desc->templates);
    desc->device = desc->profile = desc->target = desc->after = NULL;
    desc->info = NULL;
    desc->stream = NULL;
    desc->interrupt = NULL;
    for (int i = 0; i < SMELT_MAX_TEMPLATES && from->templates[i].name; i++) {
        desc->templates[i] = from->templates[i];
        desc->templates[i].name = string_copy(from->templates[i].name, strlen(from->templates[i].name));
        if (!desc->templates[i].name) return fail_out_of_memory(sizeof *desc);
    }
    if (!from->init_values) return SMELT_OK;
    launch->init_values = calloc((size_t)outputs, sizeof(double));
    if (!launch->init_values) return fail_out_of_memory((size_t)outputs * sizeof(double));
    memcpy(launch->init_values, from->init_values, (size_t)outputs * sizeof(double));
    desc->init_values = launch->init_values;
    return SMELT_OK;
}

/* Takes the launch, also when it fails. */
static smelt_status add(struct graph_launch *launch, smelt_array *const *inputs, smelt_array **outputs) {
    smelt_kernel *kernel = launch->kernel;
    smelt_graph *graph = graph_of(inputs, kernel->input_count);
    int values[SMELT_MAX_ARGUMENTS], node, done = 0;
    smelt_type types[SMELT_MAX_ARGUMENTS];
    smelt_status status = SMELT_OK;
    for (int i = 0; i < kernel->input_count && status == SMELT_OK; i++)
        status = graph_value_of(graph, inputs[i], &values[i]);
    for (int i = 0; i < kernel->output_count; i++)
        types[i] =
            (smelt_type){.dtype = launch->desc.output_dtypes[i], .shape = launch->desc.output_shapes[i]};
    if (status != SMELT_OK) {
        graph_launch_release(launch);
        return status;
    }
    TRY(graph_add(graph, &(struct graph_node){.kind = GRAPH_KERNEL, .launch = launch}, values,
                  kernel->input_count, types, kernel->output_count, &node));
    for (; done < kernel->output_count && status == SMELT_OK; done++)
        status = graph_handle(graph, graph->nodes[node].first + done, &outputs[done]);
    for (int i = 0; i < done - 1 && status != SMELT_OK; i++) smelt_array_release(outputs[i]);
    return status;
}

smelt_status graph_trace_kernel(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_array **outputs) {
    struct graph_launch *launch = calloc(1, sizeof *launch);
    if (!launch) return fail_out_of_memory(sizeof *launch);
    atomic_init(&launch->references, 1);
    launch->kernel = smelt_kernel_retain(kernel);
    smelt_status status = copy_desc(desc, kernel->output_count, launch);
    for (int i = 0; i < kernel->output_count && desc->into[i] && status == SMELT_OK; i++)
        status = fail(SMELT_ERROR_UNSUPPORTED,
                      "kernel '%s': output %d has an array to write into, which a graph does not have",
                      kernel->desc.name, i);
    if (status == SMELT_OK) return add(launch, desc->inputs, outputs);
    graph_launch_release(launch);
    return status;
}

smelt_status graph_launch_again(const struct graph_launch *launch, smelt_array *const *inputs,
                                smelt_array **outputs) {
    smelt_run_desc desc = launch->desc;
    memcpy(desc.inputs, inputs, (size_t)launch->kernel->input_count * sizeof *inputs);
    if (graph_of(inputs, launch->kernel->input_count))
        return add(graph_launch_retain((struct graph_launch *)launch), inputs, outputs);
    return smelt_kernel_run(launch->kernel, &desc, outputs);
}

smelt_status graph_launch_run(const struct graph_launch *launch, smelt_array *const *inputs,
                              smelt_array *const *into, const char *device, smelt_stream *stream) {
    smelt_run_desc desc = launch->desc;
    smelt_array *outputs[SMELT_MAX_ARGUMENTS];
    memcpy(desc.inputs, inputs, (size_t)launch->kernel->input_count * sizeof *inputs);
    memcpy(desc.into, into, (size_t)launch->kernel->output_count * sizeof *into);
    desc.device = device;
    desc.stream = stream;
    TRY(smelt_kernel_run(launch->kernel, &desc, outputs));
    for (int i = 0; i < launch->kernel->output_count; i++) smelt_array_release(outputs[i]);
    return SMELT_OK;
}
