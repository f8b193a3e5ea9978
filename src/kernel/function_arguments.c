#include "kernel/function_arguments.h"
#include "abi/cuda_parameters.h"

#include <stdlib.h>
#include <string.h>

static smelt_status check_one(const struct subject *what, const smelt_buffer *buffer) {
    int given = (buffer->array != NULL) + (buffer->bytes != NULL) + (buffer->tensor != NULL);
    if (!given) return fail(SMELT_ERROR_INVALID_ARGUMENT, SUBJECT " is missing", SUBJECT_OF(what));
    if (given > 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, SUBJECT " is given both %s and %s", SUBJECT_OF(what),
                    buffer->array ? "an array" : "bytes", buffer->tensor ? "a tensor" : "bytes");
    return SMELT_OK;
}

/* The array that a buffer passes; NULL: bytes. */
static const smelt_array *array_of(const smelt_buffer *buffer) {
    return buffer->tensor ? buffer->tensor->planes[SMELT_PLANE_DATA].array : buffer->array;
}

/* Bytes travel with a GPU's launch as far as they are few. */
#define MOST_INLINED_BYTES 2048
#define MOST_POINTED_BYTES 256 /* behind pointers: a structure of 64 words, or four lists of eight sizes */

/* A host's array that a GPU's launch takes along, as it does bytes, if the kernel only reads it. */
static bool is_small_on_host(const smelt_array *array) {
    return !array->memory->space &&
           (size_t)array->size * smelt_dtype_bytes(array->dtype) <= MOST_INLINED_BYTES;
}

static smelt_status bind_buffer(const struct launch *launch, const struct subject *what,
                                const struct binding *binding, const smelt_buffer *buffer,
                                struct launch_arguments *arguments) {
    TRY(check_one(what, buffer));
    if (buffer->array && !smelt_array_is_contiguous(buffer->array))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': the array of buffer %d ('%s') is not row-contiguous", SUBJECT_OF(what));
    if (buffer->bytes && binding->writable)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    SUBJECT " is written by the kernel; expected an array, not bytes", SUBJECT_OF(what));
    const smelt_array *array = array_of(buffer);
    size_t given = array ? (size_t)array->size * smelt_dtype_bytes(array->dtype) : buffer->size;
    if (given < (size_t)binding->size && (buffer->bytes || given == 0))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    SUBJECT " has %zu bytes, expected at least %d, the size of its type", SUBJECT_OF(what),
                    given, binding->size);
    bool along = array && launch->device->space && launch->inlined[binding->index] && !binding->writable &&
                 is_small_on_host(array);
    if (along)
        arguments_bytes(arguments, binding->index, array->data, given);
    else if (array)
        arguments_array(arguments, binding->index, array, binding->writable);
    else
        arguments_bytes(arguments, binding->index, buffer->bytes, buffer->size);
    return SMELT_OK;
}

static smelt_status bind_tensor(const struct subject *what, const struct binding *binding,
                                const struct tensor_binding *tensor, const smelt_buffer *buffer,
                                struct tensor_layout *layout, struct launch_arguments *arguments) {
    TRY(check_one(what, buffer));
    if (buffer->bytes)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    SUBJECT " is a tensor; expected a tensor or an array, not bytes", SUBJECT_OF(what));
    if (buffer->tensor)
        TRY(tensor_of_tensor(what, tensor, buffer->tensor, layout));
    else
        TRY(tensor_of_array(what, tensor, buffer->array, layout));
    arguments_bytes(arguments, binding->index + TENSOR_LAYOUT, layout->words,
                    tensor_layout_bytes(tensor->rank));
    arguments_array(arguments, binding->index, array_of(buffer), binding->writable);
    if (tensor->scales)
        arguments_array(arguments, binding->index + TENSOR_SCALES,
                        buffer->tensor->planes[SMELT_PLANE_SCALES].array, false);
    return SMELT_OK;
}

/* What the caller bound to a parameter: by its name, or by its index unless that place has a name. */
static const smelt_buffer *buffer_of(const smelt_dispatch_desc *desc, const char *name, int index) {
    static const smelt_buffer nothing;
    if (!desc->names) return &desc->buffers[index];
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++)
        if (desc->names[i] && strcmp(desc->names[i], name) == 0) return &desc->buffers[i];
    return desc->names[index] ? &nothing : &desc->buffers[index];
}

static smelt_status bind_threadgroup(const smelt_function *function, const struct binding *binding,
                                     const char *parameter, const smelt_dispatch_desc *desc) {
    if (desc->threadgroup_memory[binding->index]) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "kernel '%s': threadgroup memory %d ('%s') is missing: give its size in bytes",
                function->entry->host_name, binding->index, parameter);
}

/* The parameter number `i`. */
static smelt_status bind_parameter(struct function_call *call, const struct launch *launch, int i,
                                   struct launch_arguments *arguments) {
    const struct image *image = launch->image;
    const struct entry *entry = call->function->entry;
    const struct binding *binding = launch_binding(launch, i);
    const char *parameter = entry->parameters[i].name;
    const struct tensor_binding *tensor = tensor_of_parameter(image, i);
    bool memory = binding->kind == BINDING_BUFFER || binding->kind == BINDING_THREADGROUP;
    if (tensor ? !tensor_is_used(launch, tensor) : !memory) return SMELT_OK;
    if (binding->index < 0 || binding->index >= SMELT_MAX_BUFFERS)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': '%s' has %s index %d, expected 0 to %d",
                    entry->host_name, parameter,
                    binding->kind == BINDING_THREADGROUP ? "threadgroup memory" : "buffer", binding->index,
                    SMELT_MAX_BUFFERS - 1);
    if (binding->kind == BINDING_THREADGROUP)
        return bind_threadgroup(call->function, binding, parameter, call->desc);
    const smelt_buffer *buffer = buffer_of(call->desc, parameter, binding->index);
    struct subject what = {entry->host_name, binding->index, parameter};
    return tensor ? bind_tensor(&what, binding, tensor, buffer, &call->layouts[binding->index], arguments)
                  : bind_buffer(launch, &what, binding, buffer, arguments);
}

smelt_status function_bind(void *context, const struct launch *launch, struct launch_arguments *arguments) {
    struct function_call *call = context;
    int count = call->function->entry->parameter_count;
    for (int i = 0; i < launch->image->binding_count && i < count; i++)
        TRY(bind_parameter(call, launch, i, arguments));
    return SMELT_OK;
}

static void find_inlined_bytes(const smelt_dispatch_desc *desc, uint8_t inlined[SHAPE_MAX_INLINED]) {
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        const smelt_buffer *buffer = &desc->buffers[i];
        bool placed = !desc->names || !desc->names[i];
        if (placed && buffer->bytes && !buffer->array && buffer->size <= MOST_INLINED_BYTES)
            inlined[i] = inlined_class(buffer->size);
    }
}

/* Whether an argument's elements are few enough to travel with the launch. A pointer to constant memory
 * mostly leads to parameters, shapes or strides, but may lead to a table, in which each lane looks up another
 * element: memory serves such lanes at once, a launch's parameters one after another. */
static bool is_small_argument(const struct parameter *p, const smelt_array *array) {
    if (!array->size || !is_small_on_host(array)) return false;
    size_t bytes = (size_t)array->size * smelt_dtype_bytes(array->dtype);
    return p->by_reference || (p->is_constant && bytes <= MOST_POINTED_BYTES);
}

/* The contents of small arrays of the host travel likewise. Arguments by value to which arrays or tensors are
 * bound are tensors: their layouts do. An index that is not a number is not known yet. */
static void find_inlined_arrays(const smelt_function *function, const smelt_dispatch_desc *desc,
                                uint8_t inlined[SHAPE_MAX_INLINED]) {
    const struct entry *entry = function->entry;
    for (int i = 0; i < entry->parameter_count; i++) {
        const struct parameter *p = &entry->parameters[i];
        bool may_travel = p->by_value || p->by_reference || p->is_constant;
        if (p->kind != PARAMETER_BUFFER || !may_travel || !p->index) continue;
        char *end;
        long index = strtol(p->index, &end, 10);
        if (*end || index < 0 || index >= SMELT_MAX_BUFFERS) continue;
        const smelt_buffer *buffer = buffer_of(desc, p->name, (int)index);
        const smelt_array *array = array_of(buffer);
        if (!p->by_value && buffer->array && is_small_argument(p, array))
            inlined[index] = inlined_class((size_t)array->size * smelt_dtype_bytes(array->dtype));
        else if (p->by_value && array)
            inlined[index + TENSOR_LAYOUT] = inlined_class(tensor_layout_bytes(array->shape.ndim));
    }
}

void function_inlined(const smelt_function *function, const smelt_dispatch_desc *desc,
                      uint8_t inlined[SHAPE_MAX_INLINED]) {
    find_inlined_bytes(desc, inlined);
    find_inlined_arrays(function, desc, inlined);
}

bool function_is_large(const smelt_dispatch_desc *desc) {
    bool large = false;
    for (int i = 0; i < SMELT_MAX_BUFFERS; i++) {
        const smelt_array *array = array_of(&desc->buffers[i]);
        if (array)
            large |= array_is_large(array->dtype, &array->shape, array->strides);
        else if (desc->buffers[i].bytes)
            large |= desc->buffers[i].size >= (size_t)INT32_MAX - SMALL_REACH;
    }
    return large;
}

static bool has_parameter(const struct entry *entry, const char *name) {
    bool found = false;
    for (int i = 0; i < entry->parameter_count; i++)
        found |=
            entry->parameters[i].kind == PARAMETER_BUFFER && strcmp(entry->parameters[i].name, name) == 0;
    return found;
}

smelt_status function_check_names(const smelt_function *function, const smelt_dispatch_desc *desc) {
    const struct entry *entry = function->entry;
    for (int i = 0; desc->names && i < SMELT_MAX_BUFFERS; i++) {
        const char *name = desc->names[i];
        if (!name || has_parameter(entry, name)) continue;
        struct text list = {0};
        for (int k = 0; k < entry->parameter_count; k++)
            if (entry->parameters[k].kind == PARAMETER_BUFFER)
                text_addf(&list, "%s%s", list.length ? ", " : "", entry->parameters[k].name);
        smelt_status status =
            fail(SMELT_ERROR_INVALID_ARGUMENT, "kernel '%s': names[%d] is '%s'; expected a buffer's name: %s",
                 entry->host_name, i, name, text_string(&list));
        text_free(&list);
        return status;
    }
    return SMELT_OK;
}
