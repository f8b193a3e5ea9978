/* The arguments of a launch of a library's function: what the caller placed at indexes, checked against the
 * compiled entry. */
#ifndef SMELT_KERNEL_FUNCTION_ARGUMENTS_H
#define SMELT_KERNEL_FUNCTION_ARGUMENTS_H

#include "kernel/arguments.h"
#include "kernel/library.h"
#include "kernel/tensor_argument.h"

/* Not initialised as a whole: it is large. */
struct function_call {
    const smelt_function *function;
    const smelt_dispatch_desc *desc;
    struct tensor_layout layouts[SMELT_MAX_BUFFERS]; /* of arguments that are tensors */
};

/* States the caller's arrays and bytes: an arguments_binder of a struct function_call. */
smelt_status function_bind(void *call, const struct launch *launch, struct launch_arguments *arguments);

/* INVALID_ARGUMENT with the valid names if the caller's names are not of buffers. */
smelt_status function_check_names(const smelt_function *function, const smelt_dispatch_desc *desc);

/* The arguments that a device with its own memory takes as part of the launch (struct launch). Others stay 0.
 */
void function_inlined(const smelt_function *function, const smelt_dispatch_desc *desc,
                      uint8_t inlined[SHAPE_MAX_INLINED]);

/* Whether any argument has 2^31 bytes or nearly (array_is_large). */
bool function_is_large(const smelt_dispatch_desc *desc);

#endif
