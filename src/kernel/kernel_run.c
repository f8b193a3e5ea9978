/* Runs of kernels from bodies, and what smelt_kernel_show prints. */
#include "array/symbolic.h"
#include "base/interrupt.h"
#include "base/reserved.h"
#include "kernel/kernel.h"
#include "kernel/show.h"

#include <stdlib.h>
#include <string.h>

static smelt_status check(const smelt_kernel *kernel, const smelt_run_desc *desc, const struct device *device,
                          struct variant_key *key) {
    int template_count;
    TRY(kernel_check_run(kernel, desc, &template_count));
    kernel_make_key(kernel, desc, device, template_count, key);
    return SMELT_OK;
}

struct bound_request kernel_request(const smelt_kernel *kernel, const struct signature *signature,
                                    const struct device *device, const smelt_run_desc *desc) {
    return (struct bound_request){.kernel = &kernel->desc,
                                  .input_count = kernel->input_count,
                                  .output_count = kernel->output_count,
                                  .signature = signature,
                                  .device = device,
                                  .desc = desc};
}

smelt_status kernel_begin(const smelt_kernel *kernel, const smelt_run_desc *desc, struct variant_key *key,
                          struct launch *launch) {
    *launch = (struct launch){.what = kernel->desc.name,
                              .profile = desc->profile,
                              .timeout = desc->timeout,
                              .stream = desc->stream,
                              .info = desc->info,
                              .check = desc->check,
                              .look_for = desc->also,
                              .unchecked = desc->unchecked};
    TRY(reserved_check(smelt_run_desc, desc));
    TRY(launch_begin(launch, desc->device));
    TRY(check(kernel, desc, launch->device, key));
    return launch_measure(launch, desc->grid, desc->threadgroup, true);
}

void kernel_launch(const struct variant *variant, const struct bound_request *request,
                   struct launch *launch) {
    launch->executable = variant->loaded.executable;
    launch->entry = variant->entry;
    launch->translation = &variant->translation;
    launch->large = bound_is_large(request);
    if (request->device->space) bound_inlined(request, launch->inlined);
}

smelt_status kernel_run(const struct bound_request *request, struct launch *launch, smelt_array **outputs) {
    struct bound bound;
    bound_open(&bound, request);
    smelt_status status = arguments_run(launch, bound_bind, &bound);
    if (status == SMELT_OK && outputs) {
        memcpy(outputs, bound.outputs, (size_t)request->output_count * sizeof *outputs);
        bound.output_count = 0;
    }
    bound_close(&bound);
    return status;
}

static smelt_status run(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_array **outputs) {
    struct variant_key key;
    struct variant *variant = NULL;
    struct launch launch;
    TRY(kernel_begin(kernel, desc, &key, &launch));
    TRY(kernel_variant(kernel, desc, &key, &variant));
    struct bound_request request = kernel_request(kernel, &variant->signature, launch.device, desc);
    kernel_launch(variant, &request, &launch);
    return kernel_run(&request, &launch, outputs);
}

/* ---- Values of graphs. */

static _Atomic(kernel_tracer *) tracer;

void kernel_trace_with(kernel_tracer *wanted) {
    atomic_store(&tracer, wanted);
}

static bool has_symbolic(const smelt_kernel *kernel, const smelt_run_desc *desc) {
    bool found = false;
    for (int i = 0; i < kernel->input_count; i++)
        found |= desc->inputs[i] && array_is_symbolic(desc->inputs[i]);
    return found;
}

static smelt_status trace(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_array **outputs) {
    struct variant_key key;
    struct launch launch;
    kernel_tracer *trace_with = atomic_load(&tracer);
    smelt_run_desc anywhere = *desc; /* the device is known when the graph is compiled */
    anywhere.device = NULL;
    anywhere.stream = NULL;
    TRY(kernel_begin(kernel, &anywhere, &key, &launch));
    if (trace_with) return trace_with(kernel, &anywhere, outputs);
    return fail(SMELT_ERROR_INTERNAL, "kernel '%s': an input is a value of a graph, but there are no graphs",
                kernel->desc.name);
}

smelt_status smelt_kernel_run(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_array **outputs) {
    if (!kernel || !desc || !outputs)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel run: %s is NULL",
                    !kernel ? "kernel"
                    : !desc ? "desc"
                            : "outputs");
    if (has_symbolic(kernel, desc)) return trace(kernel, desc, outputs);
    smelt_interrupt *outer = interrupt_begin_call(desc->interrupt);
    smelt_status status = run(kernel, desc, outputs);
    interrupt_end_call(outer);
    return interrupt_status(kernel->desc.name, status);
}

smelt_status smelt_kernel_wait(smelt_kernel *kernel, smelt_interrupt *interrupt) {
    if (!kernel) return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel wait: kernel is NULL");
    return loaded_wait(&kernel->loaded, kernel->desc.name, interrupt);
}

smelt_status smelt_kernel_show(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_stage stage,
                               char **text) {
    if (!kernel || !desc || !text)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel show: %s is NULL",
                    !kernel ? "kernel"
                    : !desc ? "desc"
                            : "text");
    if ((unsigned)stage > SMELT_STAGE_WARNINGS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': stage %d is not one of smelt_stage",
                    kernel->desc.name, (int)stage);
    const struct device *device;
    struct variant_key key;
    struct signature signature;
    struct translation translation;
    TRY(reserved_check(smelt_run_desc, desc));
    TRY(device_to_show(desc->device, &device));
    TRY(settings_check(kernel->desc.name, device, desc->profile, desc->timeout));
    TRY(check(kernel, desc, device, &key));
    TRY(kernel_make_signature(kernel, desc, key.template_count, &signature));
    smelt_status status = SMELT_OK;
    if (stage == SMELT_STAGE_SOURCE) {
        *text = string_copy(text_string(&signature.text), signature.text.length);
        if (!*text) status = fail_out_of_memory(signature.text.length);
    } else {
        status = kernel_translate(kernel, &signature, &translation);
        if (status == SMELT_OK) {
            const struct entry *entry;
            struct code_options options = {.name = kernel->desc.name};
            struct bound_request request = kernel_request(kernel, &signature, device, desc);
            struct launch launch = {.what = kernel->desc.name,
                                    .device = device,
                                    .timeout = desc->timeout,
                                    .check = desc->check,
                                    .unchecked = desc->unchecked};
            bound_inlined(&request, launch.inlined);
            struct shape_desc shape = {.grid = desc->grid,
                                       .group = desc->threadgroup,
                                       .clamp = true,
                                       .barrier_hint = compile_has_barrier(&translation),
                                       .target = desc->target,
                                       .after = desc->after};
            status = kernel_only_entry(&translation, &signature, &entry);
            if (status == SMELT_OK) status = shape_for_stage(&launch, &shape, stage, &options);
            if (status == SMELT_OK) status = compile_show(&translation, entry, &options, stage, text);
            translation_free(&translation);
        }
    }
    signature_free(&signature);
    return status;
}

void smelt_free(void *memory) {
    free(memory);
}
