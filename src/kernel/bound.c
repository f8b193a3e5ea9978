#include "kernel/bound.h"
#include "abi/cuda_parameters.h"
#include "kernel/dispatch.h"

#include <string.h>

/* ---- Arguments that travel with the launch. */

/* Scalars, and the arrays that the signature puts into constant memory: whatever their size, one class for
 * each dtype, so that they share code. */
static bool is_small(const struct bound_request *request, const smelt_array *input) {
    return !input->memory->space && input->size < SIGNATURE_SMALL &&
           (!request->kernel->strided || smelt_array_is_contiguous(input));
}

static uint8_t class_of_input(const smelt_array *input) {
    size_t most = input->shape.ndim ? SIGNATURE_SMALL - 1 : 1;
    return inlined_class(most * smelt_dtype_bytes(input->dtype));
}

void bound_inlined(const struct bound_request *request, uint8_t inlined[SHAPE_MAX_INLINED]) {
    const struct signature *signature = request->signature;
    memset(inlined, 0, SHAPE_MAX_INLINED);
    for (int i = 0; i < signature->argument_count && i < SHAPE_MAX_INLINED; i++) {
        const smelt_array *input = request->desc->inputs[signature->arguments[i].index];
        switch (signature->arguments[i].kind) {
        case ARGUMENT_DATA:
            if (is_small(request, input)) inlined[i] = class_of_input(input);
            break;
        case ARGUMENT_SHAPE:
            inlined[i] = inlined_class(SMELT_MAX_DIMENSIONS * sizeof(int32_t));
            break;
        case ARGUMENT_STRIDES:
            inlined[i] = inlined_class(SMELT_MAX_DIMENSIONS * sizeof(int64_t));
            break;
        case ARGUMENT_NDIM:
            inlined[i] = inlined_class(sizeof(int32_t));
            break;
        case ARGUMENT_OUTPUT:
            break;
        }
    }
}

bool bound_is_large(const struct bound_request *request) {
    const smelt_run_desc *desc = request->desc;
    bool large = false;
    for (int i = 0; i < request->input_count; i++) {
        const smelt_array *input = desc->inputs[i];
        bool copied = !array_is_at(input, request->device) || !request->kernel->strided;
        if (request->kernel->strided) large |= array_is_large(input->dtype, &input->shape, input->strides);
        if (copied) large |= array_is_large(input->dtype, &input->shape, NULL);
    }
    for (int i = 0; i < request->output_count; i++)
        large |= array_is_large(desc->output_dtypes[i], &desc->output_shapes[i], NULL);
    return large;
}

/* ---- Inputs and outputs. */

/* An input on the device and in the layout that the kernel needs. */
static smelt_status place_input(const struct bound_request *request, smelt_array *input, smelt_array **out) {
    const struct device *device = request->device;
    bool strided = request->kernel->strided;
    if (device->space && is_small(request, input)) return smelt_array_contiguous(input, out);
    if (strided || array_is_at(input, device))
        return strided ? array_for(input, device, request->desc->stream, out)
                       : smelt_array_contiguous(input, out);
    /* Rows are made contiguous on the host, before or after. */
    smelt_array *between;
    TRY(device->space ? smelt_array_contiguous(input, &between) : array_for(input, device, NULL, &between));
    smelt_status status = device->space ? array_for(between, device, request->desc->stream, out)
                                        : smelt_array_contiguous(between, out);
    smelt_array_release(between);
    return status;
}

bool bound_in_place(const struct bound_request *request) {
    for (int i = 0; i < request->input_count; i++) {
        const smelt_array *input = request->desc->inputs[i];
        bool at = array_is_at(input, request->device) || is_small(request, input);
        if (!at || !(request->kernel->strided || smelt_array_is_contiguous(input))) return false;
    }
    return true;
}

void bound_open(struct bound *bound, const struct bound_request *request) {
    bound->request = request;
    bound->input_count = bound->output_count = 0;
}

smelt_status bound_inputs(struct bound *bound) {
    const struct bound_request *request = bound->request;
    const smelt_kernel_desc *kernel = request->kernel;
    for (int i = 0; i < request->input_count; i++) {
        smelt_array *input = request->desc->inputs[i];
        for (int d = 0; d < input->shape.ndim; d++) {
            if (input->shape.size[d] > INT32_MAX)
                return fail(SMELT_ERROR_LIMIT,
                            "kernel '%s': size %lld of dimension %d of input '%s' does not fit in the int of "
                            "%s_shape",
                            kernel->name, (long long)input->shape.size[d], d, kernel->inputs[i],
                            kernel->inputs[i]);
            bound->shapes[i][d] = (int32_t)input->shape.size[d];
        }
        bound->ndims[i] = input->shape.ndim;
        TRY(place_input(request, input, &bound->inputs[i]));
        bound->input_count = i + 1;
    }
    return SMELT_OK;
}

static smelt_status check_into(const struct bound_request *request, int i, const smelt_array *into) {
    const smelt_run_desc *desc = request->desc;
    const smelt_shape *wanted = &desc->output_shapes[i];
    if (into->dtype != desc->output_dtypes[i])
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "the array to write into is %s, expected %s",
                    smelt_dtype_name(into->dtype), smelt_dtype_name(desc->output_dtypes[i]));
    bool same = into->shape.ndim == wanted->ndim;
    for (int d = 0; same && d < wanted->ndim; d++) same = into->shape.size[d] == wanted->size[d];
    if (!same) {
        bool countable = wanted->ndim >= 0 && wanted->ndim <= SMELT_MAX_DIMENSIONS;
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "the array to write into has shape %s, expected %s",
                    shape_print(&into->shape).text, countable ? shape_print(wanted).text : "a shape");
    }
    if (!smelt_array_is_contiguous(into))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "the array to write into is not row-contiguous; outputs always are");
    if (!array_is_at(into, request->device))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "the array to write into is on '%s'; the kernel runs on '%s'", smelt_array_device(into),
                    request->device->name);
    return SMELT_OK;
}

static smelt_status fill_output(smelt_array *array, smelt_stream *stream, const double *value) {
    if (!value) return SMELT_OK;
    return array->memory->space ? array_fill_on(array, stream, *value) : smelt_array_fill(array, *value);
}

static smelt_status place_output(const struct bound_request *request, int i, smelt_array *into,
                                 smelt_stream *stream, smelt_array **out) {
    const smelt_run_desc *desc = request->desc;
    const struct device *device = request->device;
    const double *value = desc->init_values  ? &desc->init_values[i]
                          : desc->initialise ? &desc->init_value
                                             : NULL;
    if (!into && device->space)
        return device->create_array(device, stream, desc->output_dtypes[i], &desc->output_shapes[i], value,
                                    out);
    smelt_array *array;
    if (into) {
        TRY(check_into(request, i, into));
        array = smelt_array_retain(into);
    } else {
        TRY(smelt_array_create(desc->output_dtypes[i], desc->output_shapes[i], &array));
    }
    smelt_status status = fill_output(array, stream, value);
    if (status == SMELT_OK)
        *out = array;
    else
        smelt_array_release(array);
    return status;
}

smelt_status bound_output(const struct bound_request *request, int i, smelt_array *into, smelt_stream *stream,
                          smelt_array **out) {
    smelt_status status = place_output(request, i, into, stream, out);
    return status == SMELT_OK ? status
                              : fail_within(status, "kernel '%s': output '%s'", request->kernel->name,
                                            request->kernel->outputs[i]);
}

static smelt_status make_outputs(struct bound *bound) {
    const struct bound_request *request = bound->request;
    for (int i = 0; i < request->output_count; i++) {
        TRY(bound_output(request, i, request->desc->into[i], request->desc->stream, &bound->outputs[i]));
        bound->output_count = i + 1;
    }
    return SMELT_OK;
}

/* ---- Arguments. */

/* An input that stays on the host of a GPU is small: its elements travel with the launch. */
static void state_input(const smelt_array *input, int i, struct launch_arguments *arguments) {
    if (array_is_at(input, arguments->device))
        arguments_array(arguments, i, input, false);
    else
        arguments_bytes(arguments, i, input->data, (size_t)input->size * smelt_dtype_bytes(input->dtype));
}

void bound_state(const struct bound *bound, struct launch_arguments *arguments) {
    const struct signature *signature = bound->request->signature;
    const smelt_run_desc *desc = bound->request->desc;
    for (int i = 0; i < signature->argument_count; i++) {
        int index = signature->arguments[i].index;
        switch (signature->arguments[i].kind) {
        case ARGUMENT_DATA:
            state_input(bound->inputs[index], i, arguments);
            break;
        case ARGUMENT_SHAPE:
            arguments_bytes(arguments, i, bound->shapes[index], sizeof bound->shapes[index]);
            break;
        case ARGUMENT_STRIDES:
            arguments_bytes(arguments, i, bound->inputs[index]->strides,
                            sizeof bound->inputs[index]->strides);
            break;
        case ARGUMENT_NDIM:
            arguments_bytes(arguments, i, &bound->ndims[index], sizeof bound->ndims[index]);
            break;
        case ARGUMENT_OUTPUT:
            if (!bound->outputs[index]) break;
            arguments_array(arguments, i, bound->outputs[index], true);
            arguments->buffers[i].undefined = !desc->into[index] && !bound_fills(desc);
            break;
        }
    }
}

smelt_status bound_bind(void *context, const struct launch *launch, struct launch_arguments *arguments) {
    struct bound *bound = context;
    (void)launch;
    TRY(bound_inputs(bound));
    TRY(make_outputs(bound));
    bound_state(bound, arguments);
    return SMELT_OK;
}

void bound_close(struct bound *bound) {
    for (int i = 0; i < bound->input_count; i++) smelt_array_release(bound->inputs[i]);
    for (int i = 0; i < bound->output_count; i++) smelt_array_release(bound->outputs[i]);
}
