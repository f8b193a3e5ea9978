#include "kernel/transfer.h"
#include "kernel/dispatch.h"

/* Parts begin where the widest vectors may: their elements keep their alignment in the copy. */
#define PART_ALIGNMENT 128

smelt_status array_for(smelt_array *array, const struct device *device, smelt_stream *stream,
                       smelt_array **result) {
    if (array_is_at(array, device)) {
        *result = smelt_array_retain(array);
        return SMELT_OK;
    }
    return smelt_array_to(array, device->space ? device->name : "cpu", stream, result);
}

static int find(const struct transfer *transfer, const smelt_array *array) {
    int i = 0;
    while (i < transfer->count && transfer->moved[i].memory != array->memory) i++;
    return i;
}

void transfer_add(struct transfer *transfer, int index, const smelt_array *array, bool written) {
    int i = find(transfer, array);
    struct moved *moved = &transfer->moved[i];
    char *start = array->memory->start, *low;
    size_t span = array_span(array, &low);
    char *high = low + span;
    size_t before = (uintptr_t)low % PART_ALIGNMENT;
    low = before <= (size_t)(low - start) ? low - before : start;
    if (i == transfer->count) {
        *moved = (struct moved){array->memory, low, high, NULL};
        transfer->count++;
    }
    if (low < moved->low) moved->low = low;
    if (high > moved->high) moved->high = high;
    transfer->parts[transfer->part_count++] = (struct part){array, index, i, written};
}

/* Bytes at an address within a memory, for copies: an array that is not counted, and not released. */
static smelt_array bytes_at(struct memory *memory, char *data, int64_t bytes) {
    return (smelt_array){.references = 1,
                         .dtype = SMELT_UINT8,
                         .shape = {.ndim = 1, .size = {bytes}},
                         .strides = {1},
                         .size = bytes,
                         .data = data,
                         .memory = memory};
}

/* The elements of an array that was added, on the device. */
static struct launch_buffer copy_of(const struct transfer *transfer, const struct part *part) {
    const struct moved *moved = &transfer->moved[part->moved];
    struct launch_buffer buffer = launch_buffer_of(moved->copy);
    char *low;
    buffer.bytes = array_span(part->array, &low);
    buffer.offset += (size_t)(low - moved->low);
    return buffer;
}

smelt_status transfer_send(struct transfer *transfer, const struct device *device, smelt_stream *stream,
                           struct launch_buffer *buffers) {
    for (int i = 0; i < transfer->count; i++) {
        struct moved *moved = &transfer->moved[i];
        smelt_array part = bytes_at(moved->memory, moved->low, moved->high - moved->low);
        TRY(array_for(&part, device, stream, &moved->copy));
    }
    for (int i = 0; i < transfer->part_count; i++)
        buffers[transfer->parts[i].index] = copy_of(transfer, &transfer->parts[i]);
    return SMELT_OK;
}

smelt_status transfer_return(const struct transfer *transfer) {
    for (int i = 0; i < transfer->part_count; i++) {
        if (!transfer->parts[i].written) continue;
        const smelt_array *array = transfer->parts[i].array;
        struct launch_buffer copy = copy_of(transfer, &transfer->parts[i]);
        int64_t bytes = (int64_t)copy.bytes;
        char *low;
        (void)array_span(array, &low);
        smelt_array to = bytes_at(array->memory, low, bytes),
                    from = bytes_at(copy.memory, launch_address(&copy), bytes);
        TRY(smelt_array_copy(&to, &from));
    }
    return SMELT_OK;
}

void transfer_free(struct transfer *transfer) {
    for (int i = 0; i < transfer->count; i++) smelt_array_release(transfer->moved[i].copy);
}
