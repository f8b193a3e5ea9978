#include "kernel/function_arguments.h"
#include "abi/cuda_parameters.h"

#include <stdlib.h>

static smelt_status check_one(const struct subject *what, const smelt_buffer *buffer) {
    if (!buffer->array && !buffer->bytes)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, SUBJECT " is missing", SUBJECT_OF(what));
    if (buffer->array && buffer->bytes)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, SUBJECT " is given both an array and bytes",
                    SUBJECT_OF(what));
    return SMELT_OK;
}

static smelt_status bind_buffer(const struct subject *what, const struct binding *binding,
                                const smelt_buffer *buffer, struct launch_arguments *arguments) {
    TRY(check_one(what, buffer));
    if (buffer->array && !smelt_array_is_contiguous(buffer->array))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': the array of buffer %d ('%s') is not row-contiguous", SUBJECT_OF(what));
    if (buffer->bytes && binding->writable)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    SUBJECT " is written by the kernel; expected an array, not bytes", SUBJECT_OF(what));
    size_t given =
        buffer->array ? (size_t)buffer->array->size * smelt_dtype_bytes(buffer->array->dtype) : buffer->size;
    if (given < (size_t)binding->size && (buffer->bytes || given == 0))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    SUBJECT " has %zu bytes, expected at least %d, the size of its type", SUBJECT_OF(what),
                    given, binding->size);
    if (buffer->array)
        arguments_array(arguments, binding->index, buffer->array, binding->writable);
    else
        arguments_bytes(arguments, binding->index, buffer->bytes, buffer->size);
    return SMELT_OK;
}

static smelt_status bind_tensor(const struct subject *what, const struct binding *binding,
                                const struct tensor_binding *tensor, const smelt_buffer *buffer,
                                struct tensor_layout *layout, struct launch_arguments *arguments) {
    TRY(check_one(what, buffer));
    if (!buffer->array)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, SUBJECT " is a tensor; expected an array, not bytes",
                    SUBJECT_OF(what));
    TRY(tensor_of_array(what, tensor, buffer->array, layout));
    arguments_bytes(arguments, tensor->index + TENSOR_LAYOUT, layout->words,
                    tensor_layout_bytes(tensor->rank));
    arguments_array(arguments, tensor->index, buffer->array, binding->writable);
    return SMELT_OK;
}

static smelt_status bind_threadgroup(const smelt_function *function, const struct binding *binding,
                                     const char *parameter, const smelt_dispatch_desc *desc) {
    if (desc->threadgroup_memory[binding->index]) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "kernel '%s': threadgroup memory %d ('%s') is missing: give its size in bytes",
                function->entry->host_name, binding->index, parameter);
}

/* The parameter number `i`. */
static smelt_status bind_parameter(struct function_call *call, const struct image *image, int i,
                                   struct launch_arguments *arguments) {
    const struct entry *entry = call->function->entry;
    const struct binding *binding = &image->bindings[i];
    const char *parameter = entry->parameters[i].name;
    const struct tensor_binding *tensor = tensor_of_parameter(image, i);
    bool memory = binding->kind == BINDING_BUFFER || binding->kind == BINDING_THREADGROUP;
    if (tensor ? !tensor_is_used(image, tensor) : !memory) return SMELT_OK;
    if (binding->index < 0 || binding->index >= SMELT_MAX_BUFFERS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': '%s' has %s index %d, expected 0 to %d",
                    entry->host_name, parameter,
                    binding->kind == BINDING_THREADGROUP ? "threadgroup memory" : "buffer", binding->index,
                    SMELT_MAX_BUFFERS - 1);
    if (binding->kind == BINDING_THREADGROUP)
        return bind_threadgroup(call->function, binding, parameter, call->desc);
    const smelt_buffer *buffer = &call->desc->buffers[binding->index];
    struct subject what = {entry->host_name, binding->index, parameter};
    return tensor ? bind_tensor(&what, binding, tensor, buffer, &call->layouts[binding->index], arguments)
                  : bind_buffer(&what, binding, buffer, arguments);
}

smelt_status function_bind(void *context, const struct launch *launch, struct launch_arguments *arguments) {
    struct function_call *call = context;
    int count = call->function->entry->parameter_count;
    for (int i = 0; i < launch->image->binding_count && i < count; i++)
        TRY(bind_parameter(call, launch->image, i, arguments));
    return SMELT_OK;
}

/* Bytes travel with a GPU's launch as far as they are few. */
#define MOST_INLINED_BYTES 2048

static void find_inlined_bytes(const smelt_dispatch_desc *desc, uint8_t inlined[SHAPE_MAX_INLINED]) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        const smelt_buffer *buffer = &desc->buffers[i];
        if (buffer->bytes && !buffer->array && buffer->size <= MOST_INLINED_BYTES)
            inlined[i] = inlined_class(buffer->size);
    }
}

/* Arguments by value to which arrays are bound are tensors: their layouts travel likewise. An index that is
 * not a number is not known yet. */
static void find_inlined_layouts(const smelt_function *function, const smelt_dispatch_desc *desc,
                                 uint8_t inlined[SHAPE_MAX_INLINED]) {
    const struct entry *entry = function->entry;
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *p = &entry->parameters[i];
        if (p->kind != PARAMETER_BUFFER || !p->by_value || !p->index) continue;
        char *end;
        long index = strtol(p->index, &end, 10);
        if (*end || index < 0 || index >= SMELT_MAX_BUFFERS || !desc->buffers[index].array) continue;
        int rank = desc->buffers[index].array->shape.ndim;
        inlined[index + TENSOR_LAYOUT] = inlined_class(tensor_layout_bytes(rank));
    }
}

void function_inlined(const smelt_function *function, const smelt_dispatch_desc *desc,
                      uint8_t inlined[SHAPE_MAX_INLINED]) {
    find_inlined_bytes(desc, inlined);
    find_inlined_layouts(function, desc, inlined);
}

bool function_is_large(const smelt_dispatch_desc *desc) {
    bool large = false;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        const smelt_array *array = desc->buffers[i].array;
        if (array)
            large |= array_is_large(array->dtype, &array->shape, array->strides);
        else if (desc->buffers[i].bytes)
            large |= desc->buffers[i].size >= (size_t)INT32_MAX - SMALL_REACH;
    }
    return large;
}
