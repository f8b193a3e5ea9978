/* The arguments of a body's kernel: inputs as it needs them, outputs, shapes and strides. */
#ifndef SMELT_KERNEL_BOUND_H
#define SMELT_KERNEL_BOUND_H

#include "array/array.h"
#include "kernel/arguments.h"

struct bound_request {
    const smelt_kernel_desc *kernel;
    int input_count, output_count;
    const struct signature *signature;
    const struct device *device;
    const smelt_run_desc *desc;
};

/* What a launch's arguments need until it ends, or on a GPU until it is enqueued: memory there is released in
 * the stream's order. Not initialised as a whole: it is large. */
struct bound {
    const struct bound_request *request;
    int input_count, output_count;
    smelt_array *inputs[SMELT_MAX_ARGUMENTS]; /* references: the caller's arrays or copies */
    smelt_array *outputs[SMELT_MAX_ARGUMENTS];
    int32_t shapes[SMELT_MAX_ARGUMENTS][SMELT_MAX_DIMENSIONS];
    int32_t ndims[SMELT_MAX_ARGUMENTS];
};

/* The buffers that a device with its own memory takes as part of the launch (struct launch): small arguments
 * on the host that are not worth a copy. */
void bound_inlined(const struct bound_request *request, uint8_t inlined[SHAPE_MAX_INLINED]);

/* Whether any array has 2^31 bytes or nearly (array_is_large) in the memory where the launch uses it. */
bool bound_is_large(const struct bound_request *request);

/* Whether every input has the device and layout that the kernel needs, so that a launch uses the arrays
 * themselves. */
bool bound_in_place(const struct bound_request *request);

/* Output `i`: `into` with one more reference after a check (NULL: a new array), filled where the request says
 * so, on `stream`. */
smelt_status bound_output(const struct bound_request *request, int i, smelt_array *into, smelt_stream *stream,
                          smelt_array **out);

/* Whether new outputs are filled before the run. */
static inline bool bound_fills(const smelt_run_desc *desc) {
    return desc->initialise || desc->init_values;
}

/* Without inputs and outputs yet. The request outlives it. */
void bound_open(struct bound *bound, const struct bound_request *request);
void bound_close(struct bound *bound);

/* The inputs alone. */
smelt_status bound_inputs(struct bound *bound);
/* States what is in `bound`; outputs that are NULL are left out. */
void bound_state(const struct bound *bound, struct launch_arguments *arguments);

/* All of it: an arguments_binder of a struct bound. */
smelt_status bound_bind(void *bound, const struct launch *launch, struct launch_arguments *arguments);

#endif
