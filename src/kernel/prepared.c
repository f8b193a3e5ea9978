/* Launches that are checked and compiled once and run many times. */
#include "base/interrupt.h"
#include "base/reserved.h"
#include "kernel/kernel.h"
#include "kernel/transfer.h"

#include <stdlib.h>
#include <string.h>

struct smelt_launch {
    atomic_int references;
    smelt_kernel *kernel;
    smelt_run_desc desc; /* its arrays, stream and interrupt with a reference each */
    double init_values[SMELT_MAX_ARGUMENTS];
    char *profile;
    struct variant *variant;
    struct extent extent;
    struct bound_request request;       /* over `desc` */
    uint8_t inlined[SHAPE_MAX_INLINED]; /* of `desc`'s inputs */
    struct dispatch dispatch;           /* of `desc`'s inputs, without buffers */
    bool in_place;                      /* the inputs are bound as they are: `bound` has them … */
    struct bound bound;                 /* … and the outputs of `desc.into` */
};

smelt_launch *smelt_launch_retain(smelt_launch *launch) {
    if (launch) atomic_fetch_add(&launch->references, 1);
    return launch;
}

void smelt_launch_release(smelt_launch *launch) {
    if (!launch || atomic_fetch_sub(&launch->references, 1) != 1) return;
    for (int i = 0; i < launch->kernel->input_count; i++) smelt_array_release(launch->desc.inputs[i]);
    for (int i = 0; i < launch->kernel->output_count; i++) smelt_array_release(launch->desc.into[i]);
    if (launch->in_place)
        for (int i = 0; i < launch->bound.input_count; i++) smelt_array_release(launch->bound.inputs[i]);
    smelt_stream_release(launch->desc.stream);
    smelt_interrupt_release(launch->desc.interrupt);
    smelt_kernel_release(launch->kernel);
    free(launch->profile);
    free(launch);
}

/* ---- Preparing. */

/* The descriptor with what it points to. */
static smelt_status keep_desc(smelt_launch *launch, const smelt_run_desc *desc, const struct device *device) {
    int inputs = launch->kernel->input_count, outputs = launch->kernel->output_count;
    launch->desc = *desc;
    for (int i = 0; i < inputs; i++) smelt_array_retain(desc->inputs[i]);
    for (int i = 0; i < outputs; i++) smelt_array_retain(desc->into[i]);
    smelt_stream_retain(desc->stream);
    smelt_interrupt_retain(desc->interrupt);
    launch->desc.device = device->name;
    launch->desc.info = NULL;
    launch->desc.target = NULL;
    memset(launch->desc.templates, 0, sizeof launch->desc.templates); /* the variant has them */
    if (desc->init_values) {
        memcpy(launch->init_values, desc->init_values, (size_t)outputs * sizeof *desc->init_values);
        launch->desc.init_values = launch->init_values;
    }
    if (!desc->profile) return SMELT_OK;
    launch->desc.profile = launch->profile = strdup(desc->profile);
    return launch->profile ? SMELT_OK : fail_out_of_memory(strlen(desc->profile));
}

static void set_dispatch(const smelt_launch *launch, const struct bound_request *request, uint8_t *inlined,
                         struct dispatch *dispatch) {
    const smelt_run_desc *desc = request->desc;
    *dispatch = (struct dispatch){.what = launch->kernel->desc.name,
                                  .entry = launch->variant->entry,
                                  .device = request->device,
                                  .profile = desc->profile,
                                  .executable = launch->variant->executable,
                                  .extent = &launch->extent,
                                  .timeout = desc->timeout,
                                  .large = bound_is_large(request),
                                  .stream = desc->stream,
                                  .info = desc->info};
    if (!request->device->space) return;
    bound_inlined(request, inlined);
    dispatch->inlined = inlined;
}

static smelt_status check_into(const smelt_launch *launch) {
    for (int i = 0; i < launch->kernel->output_count; i++) {
        smelt_array *same;
        struct bound_request request = launch->request;
        smelt_run_desc plain = launch->desc;
        plain.initialise = false;
        plain.init_values = NULL;
        request.desc = &plain;
        if (!launch->desc.into[i]) continue;
        TRY(bound_output(&request, i, launch->desc.into[i], NULL, &same));
        smelt_array_release(same);
    }
    return SMELT_OK;
}

static smelt_status prepare(smelt_launch *launch, const smelt_run_desc *given) {
    smelt_kernel *kernel = launch->kernel;
    const struct device *device;
    struct variant_key key;
    TRY(device_find(given->device, &device));
    TRY(kernel_check(kernel, given, device, &key));
    TRY(stream_check(kernel->desc.name, device, given->stream));
    TRY(extent_check(kernel->desc.name, device, given->grid, given->threadgroup, true, &launch->extent));
    TRY(keep_desc(launch, given, device));
    TRY(kernel_variant(kernel, given, &key, &launch->variant));
    launch->request = kernel_request(kernel, &launch->variant->signature, device, &launch->desc);
    TRY(check_into(launch));
    set_dispatch(launch, &launch->request, launch->inlined, &launch->dispatch);
    TRY(dispatch_prepare(&launch->dispatch));
    if (!bound_in_place(&launch->request)) return SMELT_OK;
    launch->in_place = true;
    TRY(bound_inputs(&launch->request, &launch->bound));
    memcpy(launch->bound.outputs, launch->desc.into, sizeof launch->bound.outputs);
    bound_buffers(&launch->variant->signature, &launch->bound);
    return SMELT_OK;
}

smelt_status smelt_kernel_prepare(smelt_kernel *kernel, const smelt_run_desc *desc, smelt_launch **out) {
    if (!kernel || !desc || !out)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel prepare: %s is NULL",
                    !kernel ? "kernel"
                    : !desc ? "desc"
                            : "the address for the launch");
    smelt_launch *launch = calloc(1, sizeof *launch);
    if (!launch) return fail_out_of_memory(sizeof *launch);
    atomic_init(&launch->references, 1);
    launch->kernel = smelt_kernel_retain(kernel);
    smelt_interrupt *outer = interrupt_begin_call(desc->interrupt);
    smelt_status status = prepare(launch, desc);
    interrupt_end_call(outer);
    status = interrupt_status(kernel->desc.name, status);
    if (status == SMELT_OK)
        *out = launch;
    else
        smelt_launch_release(launch);
    return status;
}

/* ---- Running. */

/* Which of the launch's buffers the outputs are. */
static void bind_outputs(const smelt_launch *launch, smelt_array *const *outputs, void **buffers,
                         struct launch_buffer *details) {
    const struct signature *signature = &launch->variant->signature;
    for (int i = 0; i < signature->argument_count; i++) {
        if (signature->arguments[i].kind != ARGUMENT_OUTPUT) continue;
        const smelt_array *array = outputs[signature->arguments[i].index];
        buffers[i] = array->data;
        details[i] = (struct launch_buffer){array->memory->space ? array->memory : NULL,
                                            (size_t)array->size * smelt_dtype_bytes(array->dtype)};
    }
}

/* With the inputs it was prepared with. */
static smelt_status run_in_place(smelt_launch *launch, const smelt_launch_desc *desc, smelt_array **outputs) {
    struct dispatch dispatch = launch->dispatch;
    int count = launch->kernel->output_count, made = 0;
    smelt_array *list[SMELT_MAX_ARGUMENTS];
    void *buffers[SIGNATURE_MAX_ARGUMENTS];
    struct launch_buffer details[SIGNATURE_MAX_ARGUMENTS];
    bool fills = launch->desc.initialise || launch->desc.init_values, as_prepared = !desc->into && !fills;
    dispatch.info = desc->info;
    if (desc->stream) dispatch.stream = desc->stream;
    for (int i = 0; i < count && as_prepared; i++) as_prepared = launch->desc.into[i] != NULL;
    if (as_prepared) {
        dispatch.buffers = launch->bound.buffers;
        dispatch.details = launch->bound.details;
        TRY(dispatch_run(&dispatch));
        for (int i = 0; i < count && outputs; i++) outputs[i] = smelt_array_retain(launch->desc.into[i]);
        return SMELT_OK;
    }
    smelt_status status = SMELT_OK;
    for (; made < count && status == SMELT_OK; made++) {
        smelt_array *into = desc->into && desc->into[made] ? desc->into[made] : launch->desc.into[made];
        status = bound_output(&launch->request, made, into, dispatch.stream, &list[made]);
        if (status != SMELT_OK) break;
    }
    if (status == SMELT_OK) {
        size_t arguments = (size_t)launch->variant->signature.argument_count;
        memcpy(buffers, launch->bound.buffers, arguments * sizeof *buffers);
        memcpy(details, launch->bound.details, arguments * sizeof *details);
        bind_outputs(launch, list, buffers, details);
        dispatch.buffers = buffers;
        dispatch.details = details;
        status = dispatch_run(&dispatch);
    }
    if (status == SMELT_OK && outputs)
        memcpy(outputs, list, (size_t)count * sizeof *list);
    else
        for (int i = 0; i < made; i++) smelt_array_release(list[i]);
    return status;
}

static smelt_status check_replaced(const smelt_launch *launch, smelt_array *const *inputs) {
    const smelt_kernel_desc *kernel = &launch->kernel->desc;
    for (int i = 0; i < launch->kernel->input_count; i++) {
        const smelt_array *was = launch->desc.inputs[i], *is = inputs[i];
        if (!is)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': input '%s' is missing: inputs[%d] is NULL", kernel->name,
                        kernel->inputs[i], i);
        bool same = was->shape.ndim == is->shape.ndim;
        for (int d = 0; same && d < was->shape.ndim; d++) same = was->shape.size[d] == is->shape.size[d];
        if (!same || was->dtype != is->dtype)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': input '%s' is %s of shape %s; the launch was prepared for %s of shape "
                        "%s",
                        kernel->name, kernel->inputs[i], smelt_dtype_name(is->dtype),
                        shape_print(&is->shape).text, smelt_dtype_name(was->dtype),
                        shape_print(&was->shape).text);
    }
    return SMELT_OK;
}

/* With inputs that are others, or must be copied to where the kernel wants them. */
static smelt_status run_replaced(smelt_launch *launch, const smelt_launch_desc *desc, smelt_array **outputs) {
    smelt_run_desc run = launch->desc;
    struct bound_request request = launch->request;
    struct dispatch dispatch;
    uint8_t inlined[SHAPE_MAX_INLINED];
    struct bound bound;
    int count = launch->kernel->output_count;
    request.desc = &run;
    run.info = desc->info;
    if (desc->stream) run.stream = desc->stream;
    if (desc->inputs) {
        TRY(check_replaced(launch, desc->inputs));
        memcpy(run.inputs, desc->inputs, (size_t)launch->kernel->input_count * sizeof *run.inputs);
    }
    for (int i = 0; i < count && desc->into; i++)
        if (desc->into[i]) run.into[i] = desc->into[i];
    set_dispatch(launch, &request, inlined, &dispatch);
    TRY(dispatch_prepare(&dispatch));
    smelt_status status = bound_open(&request, &bound);
    if (status == SMELT_OK) {
        dispatch.buffers = bound.buffers;
        dispatch.details = bound.details;
        status = dispatch_run(&dispatch);
    }
    if (status == SMELT_OK && outputs) {
        memcpy(outputs, bound.outputs, (size_t)count * sizeof *outputs);
        bound.output_count = 0;
    }
    bound_close(&bound);
    return status;
}

smelt_status smelt_launch_run(smelt_launch *launch, const smelt_launch_desc *desc, smelt_array **outputs) {
    static const smelt_launch_desc nothing;
    if (!launch) return fail(SMELT_ERROR_INVALID_ARGUMENT, "launch run: launch is NULL");
    if (!desc) desc = &nothing;
    TRY(reserved_check(smelt_launch_desc, desc));
    for (int i = 0; i < launch->kernel->output_count && !outputs; i++)
        if (!launch->desc.into[i] && !(desc->into && desc->into[i]))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': there is nowhere to put output '%s': outputs is NULL and no array is "
                        "given to write into",
                        launch->kernel->desc.name, launch->kernel->desc.outputs[i]);
    if (desc->info) *desc->info = (smelt_run_info){0};
    if (desc->stream) TRY(stream_check(launch->kernel->desc.name, launch->request.device, desc->stream));
    smelt_interrupt *outer = interrupt_begin_call(desc->interrupt ? desc->interrupt : launch->desc.interrupt);
    smelt_status status = launch->in_place && !desc->inputs ? run_in_place(launch, desc, outputs)
                                                            : run_replaced(launch, desc, outputs);
    interrupt_end_call(outer);
    return interrupt_status(launch->kernel->desc.name, status);
}
