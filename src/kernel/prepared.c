/* Launches that are checked and compiled once and run many times. */
#include "array/symbolic.h"
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
    struct bound_request request;      /* over `desc` */
    struct launch launch;              /* of `desc`'s inputs */
    bool forgot;                       /* its inputs are released: each run gives them */
    bool in_place;                     /* the inputs are bound as they are: `bound` has them … */
    struct bound bound;                /* … and the outputs of `desc.into`; */
    struct launch_arguments arguments; /* they are stated here */
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

/* The descriptor with copies of its strings and arrays. */
static smelt_status keep_desc(smelt_launch *launch, const smelt_run_desc *desc) {
    int inputs = launch->kernel->input_count, outputs = launch->kernel->output_count;
    launch->desc = *desc;
    for (int i = 0; i < inputs; i++) smelt_array_retain(desc->inputs[i]);
    for (int i = 0; i < outputs; i++) smelt_array_retain(desc->into[i]);
    smelt_stream_retain(desc->stream);
    smelt_interrupt_retain(desc->interrupt);
    launch->desc.info = NULL;
    launch->desc.target = NULL;
    if (desc->init_values) {
        memcpy(launch->init_values, desc->init_values, (size_t)outputs * sizeof *desc->init_values);
        launch->desc.init_values = launch->init_values;
    }
    if (!desc->profile) return SMELT_OK;
    launch->desc.profile = launch->profile = strdup(desc->profile);
    return launch->profile ? SMELT_OK : fail_out_of_memory(strlen(desc->profile));
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
    struct variant_key key;
    TRY(reserved_check(smelt_run_desc, given)); /* before its arrays are touched */
    TRY(keep_desc(launch, given));
    TRY(kernel_begin(kernel, &launch->desc, &key, &launch->launch));
    TRY(kernel_variant(kernel, &launch->desc, &key, &launch->variant));
    const struct device *device = launch->launch.device;
    /* Strings of the caller's: the variant has the templates. */
    memset(launch->desc.templates, 0, sizeof launch->desc.templates);
    launch->desc.device = device->name;
    launch->request = kernel_request(kernel, &launch->variant->signature, device, &launch->desc);
    TRY(check_into(launch));
    kernel_launch(launch->variant, &launch->request, &launch->launch);
    launch->launch.best = true;
    TRY(launch_prepare(&launch->launch));
    if (!bound_in_place(&launch->request)) return SMELT_OK;
    launch->in_place = true;
    bound_open(&launch->bound, &launch->request);
    TRY(bound_inputs(&launch->bound));
    memcpy(launch->bound.outputs, launch->desc.into, sizeof launch->bound.outputs);
    arguments_begin(&launch->arguments, device);
    bound_state(&launch->bound, &launch->arguments);
    launch->launch.buffers = launch->arguments.buffers;
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

smelt_status smelt_launch_forget(smelt_launch *launch) {
    smelt_array *left[SMELT_MAX_ARGUMENTS]; /* dtypes and shapes */
    if (!launch) return fail(SMELT_ERROR_INVALID_ARGUMENT, "launch forget: launch is NULL");
    int count = launch->kernel->input_count;
    for (int i = 0; i < count; i++) {
        const smelt_array *input = launch->desc.inputs[i];
        smelt_status status = array_symbolic(input->dtype, &input->shape, NULL, NULL, &left[i]);
        if (status == SMELT_OK) continue;
        while (i > 0) smelt_array_release(left[--i]);
        return status;
    }
    for (int i = 0; i < count; i++) {
        smelt_array_release(launch->desc.inputs[i]);
        launch->desc.inputs[i] = left[i];
    }
    for (int i = 0; launch->in_place && i < launch->bound.input_count; i++)
        smelt_array_release(launch->bound.inputs[i]);
    launch->in_place = false;
    launch->forgot = true;
    return SMELT_OK;
}

/* ---- Running. */

/* The buffers of the prepared inputs, with these outputs. */
static void bind_outputs(const smelt_launch *launch, smelt_array *const *into, smelt_array *const *outputs,
                         struct launch_buffer *buffers) {
    const struct signature *signature = &launch->variant->signature;
    for (int i = 0; i < signature->argument_count; i++) {
        int index = signature->arguments[i].index;
        buffers[i] = launch->launch.buffers[i];
        if (signature->arguments[i].kind != ARGUMENT_OUTPUT) continue;
        buffers[i] = launch_buffer_of(outputs[index]);
        buffers[i].undefined = !into[index] && !bound_fills(&launch->desc);
    }
}

/* With the inputs it was prepared with. */
static smelt_status run_in_place(smelt_launch *launch, const smelt_launch_desc *desc, smelt_array **outputs) {
    struct launch run = launch->launch;
    int count = launch->kernel->output_count, made = 0;
    smelt_array *list[SMELT_MAX_ARGUMENTS], *into[SMELT_MAX_ARGUMENTS];
    struct launch_buffer buffers[SIGNATURE_MAX_ARGUMENTS];
    bool as_prepared = !desc->into && !bound_fills(&launch->desc);
    run.info = desc->info;
    if (desc->stream) run.stream = desc->stream;
    for (int i = 0; i < count && as_prepared; i++) as_prepared = launch->desc.into[i] != NULL;
    if (as_prepared) {
        TRY(launch_run(&run));
        for (int i = 0; i < count && outputs; i++) outputs[i] = smelt_array_retain(launch->desc.into[i]);
        return SMELT_OK;
    }
    smelt_status status = SMELT_OK;
    for (; made < count && status == SMELT_OK; made++) {
        into[made] = desc->into && desc->into[made] ? desc->into[made] : launch->desc.into[made];
        status = bound_output(&launch->request, made, into[made], run.stream, &list[made]);
        if (status != SMELT_OK) break;
    }
    if (status == SMELT_OK) {
        bind_outputs(launch, into, list, buffers);
        run.buffers = buffers;
        status = launch_run(&run);
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

/* With other inputs, or inputs that must be copied for the kernel. */
static smelt_status run_replaced(smelt_launch *launch, const smelt_launch_desc *desc, smelt_array **outputs) {
    smelt_run_desc run = launch->desc;
    struct bound_request request = launch->request;
    struct launch replaced = launch->launch;
    request.desc = &run;
    run.info = desc->info;
    if (desc->stream) run.stream = desc->stream;
    if (desc->inputs) {
        TRY(check_replaced(launch, desc->inputs));
        memcpy(run.inputs, desc->inputs, (size_t)launch->kernel->input_count * sizeof *run.inputs);
    }
    for (int i = 0; i < launch->kernel->output_count && desc->into; i++)
        if (desc->into[i]) run.into[i] = desc->into[i];
    replaced.info = run.info;
    replaced.stream = run.stream;
    kernel_launch(launch->variant, &request, &replaced);
    return kernel_run(&request, &replaced, outputs);
}

smelt_status smelt_launch_run(smelt_launch *launch, const smelt_launch_desc *desc, smelt_array **outputs) {
    static const smelt_launch_desc nothing;
    if (!launch) return fail(SMELT_ERROR_INVALID_ARGUMENT, "launch run: launch is NULL");
    if (!desc) desc = &nothing;
    TRY(reserved_check(smelt_launch_desc, desc));
    for (int i = 0; i < launch->kernel->output_count && !outputs; i++)
        if (!launch->desc.into[i] && !(desc->into && desc->into[i]))
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        "kernel '%s': output '%s' has no destination: outputs is NULL and no array is given "
                        "to write into",
                        launch->kernel->desc.name, launch->kernel->desc.outputs[i]);
    if (launch->forgot && !desc->inputs)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "kernel '%s': inputs is NULL; expected an array per input, as the launch has released its own "
            "(smelt_launch_forget)",
            launch->kernel->desc.name);
    if (desc->info) *desc->info = (smelt_run_info){0};
    if (desc->stream) TRY(stream_check(launch->kernel->desc.name, launch->request.device, desc->stream));
    smelt_interrupt *outer = interrupt_begin_call(desc->interrupt ? desc->interrupt : launch->desc.interrupt);
    smelt_status status = launch->in_place && !desc->inputs ? run_in_place(launch, desc, outputs)
                                                            : run_replaced(launch, desc, outputs);
    interrupt_end_call(outer);
    return interrupt_status(launch->kernel->desc.name, status);
}
