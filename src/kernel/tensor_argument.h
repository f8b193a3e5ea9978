/* Arguments that are tensors: what the caller bound, checked against the kernel's parameter, and its layout.
 */
#ifndef SMELT_KERNEL_TENSOR_ARGUMENT_H
#define SMELT_KERNEL_TENSOR_ARGUMENT_H

#include "tensor/tensor.h"
#include "kernel/dispatch.h"

/* Extents, strides, strides of scales: the buffer TENSOR_LAYOUT behind the elements' (abi/image.h). */
struct tensor_layout {
    int64_t words[3 * SMELT_MAX_DIMENSIONS];
};

/* The parameter in messages: "kernel 'f': buffer 3 ('x')". */
struct subject {
    const char *kernel;
    int index;
    const char *parameter;
};
#define SUBJECT "kernel '%s': buffer %d ('%s')"
#define SUBJECT_OF(s) (s)->kernel, (s)->index, (s)->parameter

/* The parameter number `i` as a tensor; NULL: it is none. */
const struct tensor_binding *tensor_of_parameter(const struct image *image, int i);

/* Whether the code needs any of its buffers. */
bool tensor_is_used(const struct launch *launch, const struct tensor_binding *tensor);

/* Fills `layout` for an array; INVALID_ARGUMENT if it does not suit the parameter: elements of
 * another type (bytes suit packed formats), another rank, static extents that differ, a last dimension that
 * is not dense, or scales, which an array lacks. */
smelt_status tensor_of_array(const struct subject *subject, const struct tensor_binding *tensor,
                             const smelt_array *array, struct tensor_layout *layout);

/* The same of a tensor, whose element type, extents and scales must be the parameter's. */
smelt_status tensor_of_tensor(const struct subject *subject, const struct tensor_binding *binding,
                              const smelt_tensor *tensor, struct tensor_layout *layout);

#endif
