#include "kernel/tensor_argument.h"
#include "array/dtype.h"
#include "array/format.h"

#include <string.h>

const struct tensor_binding *tensor_of_parameter(const struct image *image, int i) {
    for (int t = 0; t < image->tensor_count; t++)
        if (image->tensors[t].parameter == i) return &image->tensors[t];
    return NULL;
}

bool tensor_is_used(const struct launch *launch, const struct tensor_binding *tensor) {
    bool used = false;
    for (int i = 0; i < launch->image->binding_count; i++) {
        const struct binding *binding = launch_binding(launch, i);
        int index = binding->index;
        used |= binding->kind == BINDING_BUFFER &&
                (index == tensor->index || index == tensor->index + TENSOR_LAYOUT ||
                 index == tensor->index + TENSOR_SCALES);
    }
    return used;
}

/* What the kernel and the caller have, dimension 0 first. */
struct shape_given {
    int rank;
    int64_t extents[SMELT_MAX_DIMENSIONS], strides[SMELT_MAX_DIMENSIONS]; /* of elements */
};

static smelt_status check_extents(const struct subject *subject, const struct tensor_binding *tensor,
                                  const struct shape_given *given) {
    if (given->rank != tensor->rank)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    SUBJECT " is a tensor of rank %d; expected as many dimensions, got %d",
                    SUBJECT_OF(subject), tensor->rank, given->rank);
    for (int d = 0; d < tensor->rank; d++) {
        if (tensor->extents[d] >= 0 && given->extents[d] != tensor->extents[d])
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        SUBJECT " has the static extent %lld in dimension %d (0 is the innermost); got %lld",
                        SUBJECT_OF(subject), (long long)tensor->extents[d], d, (long long)given->extents[d]);
        if (given->extents[d] > tensor->most)
            return fail(SMELT_ERROR_LIMIT,
                        "kernel '%s': the extent of dimension %d (0 is the innermost) of buffer %d ('%s') is "
                        "%lld; its index type holds at most %lld",
                        subject->kernel, d, subject->index, subject->parameter, (long long)given->extents[d],
                        (long long)tensor->most);
        if (given->strides[d] < 0)
            return fail(SMELT_ERROR_INVALID_ARGUMENT,
                        SUBJECT
                        ": the stride of dimension %d (0 is the innermost) is %lld, expected 0 or more",
                        SUBJECT_OF(subject), d, (long long)given->strides[d]);
    }
    if (given->extents[0] > 1 && given->strides[0] != 1)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    SUBJECT
                    ": the elements of dimension 0, the innermost, are %lld apart; a tensor's must be "
                    "adjacent: copy the array",
                    SUBJECT_OF(subject), (long long)given->strides[0]);
    return SMELT_OK;
}

static void write_layout(const struct shape_given *given, struct tensor_layout *layout) {
    for (int d = 0; d < given->rank; d++) {
        layout->words[d] = given->extents[d];
        layout->words[given->rank + d] = given->strides[d];
        layout->words[2 * given->rank + d] = 0;
    }
}

static bool suits(int element, smelt_dtype dtype) {
    if (element_is_packed(element)) return dtype == SMELT_UINT8 || dtype == SMELT_INT8;
    bool integers = dtype_is_integer((smelt_dtype)element) && dtype_is_integer(dtype);
    return (int)dtype == element ||
           (integers && smelt_dtype_bytes(dtype) == smelt_dtype_bytes((smelt_dtype)element));
}

smelt_status tensor_of_array(const struct subject *subject, const struct tensor_binding *tensor,
                             const smelt_array *array, struct tensor_layout *layout) {
    struct shape_given given = {.rank = array->shape.ndim};
    const char *element = smelt_element_name(tensor->element);
    if (!suits(tensor->element, array->dtype))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    SUBJECT " is a tensor of %s; expected an array of %s, got %s", SUBJECT_OF(subject),
                    element, element_is_packed(tensor->element) ? "its bytes (uint8)" : element,
                    smelt_dtype_name(array->dtype));
    if (tensor->scales)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    SUBJECT " is a tensor with scales of %s, which an array lacks; expected a tensor",
                    SUBJECT_OF(subject), smelt_element_name(tensor->scales));
    int in_byte = element_is_packed(tensor->element) ? 8 / smelt_element_bits(tensor->element) : 1;
    for (int d = 0; d < given.rank; d++) {
        int axis = given.rank - 1 - d;
        given.extents[d] = array->shape.size[axis] * (d == 0 ? in_byte : 1);
        given.strides[d] = array->strides[axis] * (d == 0 ? 1 : in_byte);
    }
    TRY(check_extents(subject, tensor, &given));
    write_layout(&given, layout);
    return SMELT_OK;
}

static smelt_status check_scales(const struct subject *subject, const struct tensor_binding *binding,
                                 const struct tensor_plane *scales) {
    if (scales->element != binding->scales)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, SUBJECT " is a tensor with %s%s; got one with %s%s",
                    SUBJECT_OF(subject), binding->scales ? "scales of " : "no scales",
                    binding->scales ? smelt_element_name(binding->scales) : "",
                    scales->element ? "scales of " : "no scales",
                    scales->element ? smelt_element_name(scales->element) : "");
    for (int d = 0; binding->scales && d < binding->rank; d++)
        if (scales->block[d] != binding->blocks[d])
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                SUBJECT
                " has a scale per %lld elements of dimension %d (0 is the innermost); got one per %lld",
                SUBJECT_OF(subject), (long long)binding->blocks[d], d, (long long)scales->block[d]);
    return SMELT_OK;
}

smelt_status tensor_of_tensor(const struct subject *subject, const struct tensor_binding *binding,
                              const smelt_tensor *tensor, struct tensor_layout *layout) {
    const struct tensor_plane *data = &tensor->planes[SMELT_PLANE_DATA],
                              *scales = &tensor->planes[SMELT_PLANE_SCALES];
    struct shape_given given = {.rank = tensor->ndim};
    if (data->element != binding->element)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, SUBJECT " is a tensor of %s; got one of %s",
                    SUBJECT_OF(subject), smelt_element_name(binding->element),
                    smelt_element_name(data->element));
    memcpy(given.extents, data->extents, sizeof given.extents);
    memcpy(given.strides, data->strides, sizeof given.strides);
    TRY(check_extents(subject, binding, &given));
    TRY(check_scales(subject, binding, scales));
    write_layout(&given, layout);
    for (int d = 0; d < given.rank; d++) layout->words[2 * given.rank + d] = scales->strides[d];
    return SMELT_OK;
}
