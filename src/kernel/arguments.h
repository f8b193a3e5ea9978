/* One call of a kernel or function: its arguments by buffer index, and the launch that runs with them.
 * bound.c states the arguments of bodies, function.c those of functions; everything else is shared. */
#ifndef SMELT_KERNEL_ARGUMENTS_H
#define SMELT_KERNEL_ARGUMENTS_H

#include "kernel/transfer.h"
#include "source/signature.h"

/* Not initialised as a whole: it is large. */
struct launch_arguments {
    const struct device *device;
    struct launch_buffer buffers[SIGNATURE_MAX_ARGUMENTS]; /* by index */
    struct transfer transfer;                              /* arrays that are not in the device's memory */
};

void arguments_begin(struct launch_arguments *arguments, const struct device *device);

/* Bytes that the kernel only reads, and that live until the launch has run. */
void arguments_bytes(struct launch_arguments *arguments, int index, const void *bytes, size_t size);

/* An array: in place, or elsewhere, with strides of 0 or more, and copied for the launch; `written`: copied
 * back too. */
void arguments_array(struct launch_arguments *arguments, int index, const smelt_array *array, bool written);

/* States the arguments of a launch that has its code; the context keeps what they need. */
typedef smelt_status arguments_binder(void *context, const struct launch *launch,
                                      struct launch_arguments *arguments);

/* Prepares the launch, binds its arguments and runs it. A launch on a CPU has ended on return, and so has one
 * that writes arrays in other memory. */
smelt_status arguments_run(struct launch *launch, arguments_binder *bind, void *context);

#endif
