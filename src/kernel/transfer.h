/* Arrays in other memory than a launch's device uses: copies for the launch, and copying its results back. */
#ifndef SMELT_KERNEL_TRANSFER_H
#define SMELT_KERNEL_TRANSFER_H

#include "array/array.h"
#include "device/device.h"

/* Whether the device can use the array's memory directly. */
static inline bool array_is_at(const smelt_array *array, const struct device *device) {
    return array->memory->space == device->space;
}

/* `array` on the launch's device, with a reference for the caller: itself if it is there. */
smelt_status array_for(smelt_array *array, const struct device *device, smelt_stream *stream,
                       smelt_array **result);

#define TRANSFER_MOST (2 * SMELT_MAX_BUFFERS) /* tensors have scales */

/* Arrays that are bound together: parts of one memory stay parts of one copy, so that an array that is bound
 * twice stays one. Begins with both counts 0. */
struct transfer {
    struct moved {
        struct memory *memory; /* where it lies */
        char *low, *high;      /* the part that is bound */
        smelt_array *copy;     /* of that part, bytes, on the device */
    } moved[TRANSFER_MOST];
    int count;
    struct part {
        const smelt_array *array;
        int index, moved;
        bool written;
    } parts[TRANSFER_MOST];
    int part_count;
};

/* An array that is not on the device, with strides of 0 or more, for the buffer `index`; `written`: the
 * kernel may write it. What lies between its elements is copied with them. TRANSFER_MOST at most. */
void transfer_add(struct transfer *transfer, int index, const smelt_array *array, bool written);

/* Copies all added arrays; sets their buffers to the copies. */
smelt_status transfer_send(struct transfer *transfer, const struct device *device, smelt_stream *stream,
                           struct launch_buffer *buffers);

/* Copies written arrays back; waits for this. */
smelt_status transfer_return(const struct transfer *transfer);

void transfer_free(struct transfer *transfer);

#endif
