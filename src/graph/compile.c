/* Compiling: the passes in their order, and what a compiled graph tells about itself. */
#include "base/reserved.h"
#include "base/text.h"
#include "device/device.h"
#include "graph/plan.h"
#include "ops/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Life. */

smelt_compiled *smelt_compiled_retain(smelt_compiled *compiled) {
    if (compiled) atomic_fetch_add(&compiled->references, 1);
    return compiled;
}

void smelt_compiled_release(smelt_compiled *compiled) {
    if (!compiled || atomic_fetch_sub(&compiled->references, 1) != 1) return;
    for (int s = 0; s < compiled->step_count; s++) {
        struct step *step = &compiled->steps[s];
        free(step->reads);
        free(step->writes);
        for (int k = 0; k < 2; k++) fused_kernel_free(&step->kernels[k]);
    }
    free(compiled->steps);
    free(compiled->places);
    free(compiled->scratch);
    free(compiled->buffers);
    free(compiled->needed);
    fusion_free(&compiled->fusion);
    smelt_graph_release(compiled->graph);
    free(compiled);
}

/* ---- Passes. */

static void count_steps(smelt_compiled *compiled) {
    smelt_compiled_info *info = &compiled->info;
    info->steps = compiled->step_count;
    for (int s = 0; s < compiled->step_count; s++) {
        const struct step *step = &compiled->steps[s];
        info->fused_kernels += step->kind == STEP_FUSED;
        if (step->kind == STEP_FUSED) info->fused_nodes += compiled->fusion.groups[step->group].node_count;
    }
}

static smelt_status plan_kernels(smelt_compiled *compiled, struct step *step) {
    return compiled->fusion.groups[step->group].axes ? plan_rows(compiled, step)
                                                     : plan_elements(compiled, step);
}

smelt_status compiled_plan(smelt_compiled *compiled) {
    TRY(fusion_create(compiled->graph, !compiled->unfused, &compiled->fusion));
    TRY(plan_steps(compiled));
    for (int s = 0; s < compiled->step_count; s++)
        if (compiled->steps[s].kind == STEP_FUSED) TRY(plan_kernels(compiled, &compiled->steps[s]));
    if (compiled->streams > 1) TRY(plan_order(compiled));
    TRY(plan_memory(compiled, !compiled->unplanned));
    count_steps(compiled);
    return SMELT_OK;
}

static smelt_status run_passes(const smelt_graph *graph, const smelt_compile_desc *desc,
                               smelt_compiled *compiled) {
    smelt_compiled_info *info = &compiled->info;
    TRY(graph_expand(graph, compiled->device, &compiled->graph, &info->folded));
    for (int n = 0; n < compiled->graph->node_count; n++)
        info->nodes += compiled->graph->nodes[n].kind >= GRAPH_OPERATION;
    TRY(graph_share(compiled->graph, &info->shared));
    TRY(graph_remove_dead(compiled->graph, &info->dead));
    compiled->unfused = desc->unfused;
    compiled->unplanned = desc->unplanned;
    compiled->streams = (int)desc->streams;
    return compiled_plan(compiled);
}

smelt_status smelt_graph_compile(smelt_graph *graph, const smelt_compile_desc *given, smelt_compiled **out) {
    const smelt_compile_desc defaults = {0}, *desc = given ? given : &defaults;
    const struct device *device;
    if (!graph || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph compile: %s is NULL",
                    graph ? "the address for the compiled graph" : "graph");
    TRY(reserved_check(smelt_compile_desc, desc));
    if (desc->streams < 0 || desc->streams > GRAPH_MOST_STREAMS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "graph compile: streams is %lld, expected 0 to %d",
                    (long long)desc->streams, GRAPH_MOST_STREAMS);
    TRY(device_find(desc->device ? desc->device : "cpu", &device));
    smelt_compiled *compiled = calloc(1, sizeof *compiled);
    if (!compiled) return fail_out_of_memory(sizeof *compiled);
    atomic_init(&compiled->references, 1);
    snprintf(compiled->device, sizeof compiled->device, "%s", device->name);
    smelt_status status = run_passes(graph, desc, compiled);
    if (status == SMELT_OK)
        *out = compiled;
    else
        smelt_compiled_release(compiled);
    return status == SMELT_OK ? status : fail_within(status, "graph '%s'", graph->name);
}

/* ---- Descriptions. */

smelt_status smelt_compiled_describe(const smelt_compiled *compiled, smelt_compiled_info *info) {
    if (!compiled || !info)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "compiled describe: %s is NULL",
                    compiled ? "info" : "compiled");
    *info = compiled->info;
    return SMELT_OK;
}

static void write_step(struct text *text, const smelt_compiled *compiled, int s) {
    const struct step *step = &compiled->steps[s];
    text_addf(text, "step %d: ", s);
    if (step->kind != STEP_FUSED) {
        graph_write_node(text, compiled->graph, step->node);
        return;
    }
    const struct group *group = &compiled->fusion.groups[step->group];
    text_addf(text, "fused kernel%s of %d nodes over %s\n", step->kernel_count > 1 ? " in two stages" : "",
              group->node_count, shape_print(&group->full).text);
    for (int m = 0; m < group->node_count; m++) {
        text_add(text, "    ");
        graph_write_node(text, compiled->graph, group->nodes[m]);
    }
}

/* Arrays that lie where the kernel's operands will, on no device. */
static smelt_status write_kernels(struct text *text, const smelt_compiled *compiled,
                                  const struct step *step) {
    for (int k = 0; k < step->kernel_count; k++) {
        const struct fused_kernel *kernel = &step->kernels[k];
        smelt_array **arrays = calloc((size_t)compiled->value_count + 1, sizeof *arrays);
        smelt_status status = arrays ? SMELT_OK : fail_out_of_memory(sizeof *arrays);
        for (int j = 0; j < kernel->operand_count && status == SMELT_OK; j++) {
            int root = kernel->operands[j].root;
            if (root < 0 || arrays[root]) continue;
            const struct graph_value *type = plan_value(compiled, root);
            status = array_symbolic(type->dtype, &type->shape, NULL, NULL, &arrays[root]);
        }
        if (status == SMELT_OK) {
            struct map map;
            fused_kernel_map(kernel, arrays, compiled->device, NULL, &map);
            map_text(&map, text);
        }
        for (int v = 0; v < compiled->value_count && arrays; v++) smelt_array_release(arrays[v]);
        free(arrays);
        TRY(status);
    }
    return SMELT_OK;
}

smelt_status smelt_compiled_show(const smelt_compiled *compiled, int step, char **out) {
    struct text text = {0};
    smelt_status status = SMELT_OK;
    if (!compiled || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "compiled show: %s is NULL",
                    compiled ? "text" : "compiled");
    if (step >= compiled->step_count || (step >= 0 && compiled->steps[step].kind != STEP_FUSED))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "compiled show: step %d %s; graph '%s' has %d steps", step,
                    step >= compiled->step_count ? "does not exist" : "is not a fused kernel",
                    compiled->graph->name, compiled->step_count);
    if (step >= 0) status = write_kernels(&text, compiled, &compiled->steps[step]);
    for (int s = 0; s < compiled->step_count && step < 0; s++) write_step(&text, compiled, s);
    if (status == SMELT_OK && text.failed) status = fail_out_of_memory(text.length);
    if (status == SMELT_OK) {
        *out = string_copy(text_string(&text), text.length);
        if (!*out) status = fail_out_of_memory(text.length);
    }
    text_free(&text);
    return status;
}

int smelt_compiled_input_count(const smelt_compiled *compiled) {
    return compiled ? compiled->graph->input_count : 0;
}

int smelt_compiled_output_count(const smelt_compiled *compiled) {
    return compiled ? compiled->graph->output_count : 0;
}

static const char *port(const smelt_graph *graph, const struct graph_port *ports, int count, int index,
                        smelt_type *type) {
    if (index < 0 || index >= count) return NULL;
    if (type) *type = graph_type(graph, ports[index].value);
    return ports[index].name;
}

const char *smelt_compiled_input(const smelt_compiled *compiled, int index, smelt_type *type) {
    return compiled
               ? port(compiled->graph, compiled->graph->inputs, compiled->graph->input_count, index, type)
               : NULL;
}

const char *smelt_compiled_output(const smelt_compiled *compiled, int index, smelt_type *type) {
    return compiled
               ? port(compiled->graph, compiled->graph->outputs, compiled->graph->output_count, index, type)
               : NULL;
}
