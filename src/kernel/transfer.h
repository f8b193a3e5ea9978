/* Arrays that lie elsewhere than a launch's device wants them: copies there for the launch, and what it wrote
 * brought back. */
#ifndef SMELT_KERNEL_TRANSFER_H
#define SMELT_KERNEL_TRANSFER_H

#include "array/array.h"
#include "device/device.h"

/* Does the device use the array's memory as it is? */
static inline bool array_is_at(const smelt_array *array, const struct device *device) {
    return array->memory->space == device->space;
}

/* `array` on the launch's device, with a reference for the caller: itself if it is there. */
smelt_status array_for(smelt_array *array, const struct device *device, smelt_stream *stream,
                       smelt_array **result);

/* Arrays that are bound together: parts of one memory stay parts of one copy, so that a kernel that is given
 * an array twice finds it so. Begins as zeros. */
struct transfer {
    struct moved {
        struct memory *memory; /* where it lies */
        char *low, *high;      /* the part that is bound */
        smelt_array *copy;     /* of that part, bytes, on the device */
    } moved[SMELT_MAX_BUFFERS];
    int count;
    struct result {
        const smelt_array *array;
        int moved;
    } results[SMELT_MAX_BUFFERS];
    int result_count;
};

/* An array that is not on the device, row-contiguous; `written`: the kernel may write it. */
void transfer_add(struct transfer *transfer, const smelt_array *array, bool written);

/* Makes the copies of all that were added. */
smelt_status transfer_send(struct transfer *transfer, const struct device *device, smelt_stream *stream);

/* The array's elements on the device. */
struct launch_buffer transfer_buffer(const struct transfer *transfer, const smelt_array *array);

/* Brings back what was written; waits for it. */
smelt_status transfer_return(const struct transfer *transfer);

void transfer_free(struct transfer *transfer);

#endif
