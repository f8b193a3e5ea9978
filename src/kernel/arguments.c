#include "kernel/arguments.h"
#include "kernel/dispatch.h"

void arguments_begin(struct launch_arguments *arguments, const struct device *device) {
    arguments->device = device;
    arguments->transfer.count = arguments->transfer.part_count = 0;
}

void arguments_bytes(struct launch_arguments *arguments, int index, const void *bytes, size_t size) {
    arguments->buffers[index] = launch_buffer_of_bytes(bytes, size);
}

void arguments_array(struct launch_arguments *arguments, int index, const smelt_array *array, bool written) {
    struct launch_buffer *buffer = &arguments->buffers[index];
    char *low;
    *buffer = launch_buffer_of(array);
    buffer->span = array_span(array, &low);
    buffer->before = (size_t)(array->data - low);
    if (!array_is_at(array, arguments->device)) transfer_add(&arguments->transfer, index, array, written);
}

smelt_status arguments_run(struct launch *launch, arguments_binder *bind, void *context) {
    struct launch_arguments arguments;
    TRY(launch_prepare(launch));
    arguments_begin(&arguments, launch->device);
    TRY(bind(context, launch, &arguments));
    smelt_status status =
        transfer_send(&arguments.transfer, launch->device, launch->stream, arguments.buffers);
    launch->buffers = arguments.buffers;
    if (status == SMELT_OK) status = launch_run(launch);
    if (status == SMELT_OK) status = transfer_return(&arguments.transfer);
    transfer_free(&arguments.transfer);
    return status;
}
