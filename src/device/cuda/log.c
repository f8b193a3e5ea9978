#include "device/cuda/log.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* As many lines as are kept of a launch always fit. */
static uint64_t capacity_of(const struct flight *flight) {
    return (uint64_t)flight->code->head.image.log_words * SMELT_MAX_LOG_LINES;
}

smelt_status cuda_log_open(struct flight *flight, CUdeviceptr *address) {
    struct cuda_gpu *gpu = flight->gpu;
    struct cuda_log head = {.capacity = capacity_of(flight)};
    size_t bytes = sizeof head + head.capacity * sizeof(uint64_t);
    TRY(flight_scratch(flight, bytes, address));
    CUDA_TRY(gpu, gpu->driver->fill_8(*address, 0, bytes, flight->stream->handle), "the log of kernel '%s'",
             flight->executable->name);
    return cuda_copy_in(flight->stream, *address, &head, sizeof head);
}

/* ---- Texts. Most lines share theirs: texts are kept by address. */

#define KEPT_TEXTS 64
#define LONGEST_TEXT 1024

struct reader {
    struct flight *flight;
    struct kept_text {
        uint64_t address;
        size_t asked, bytes;
        char text[LONGEST_TEXT];
    } kept[KEPT_TEXTS];
};

/* No more than the memory there has. */
static size_t limit(const struct cuda_driver *driver, uint64_t address, size_t bytes) {
    CUdeviceptr start = 0;
    size_t size = 0;
    if (driver->address_range(&start, &size, address) != CUDA_SUCCESS) return bytes;
    uint64_t left = start + size - address;
    return address >= start && left < bytes ? (size_t)left : bytes;
}

/* Text that cannot be read is empty: the address was the kernel's own idea. */
static size_t read_text(void *context, char *to, uint64_t address, size_t bytes) {
    struct reader *reader = context;
    const struct cuda_driver *driver = reader->flight->gpu->driver;
    struct kept_text *kept = &reader->kept[address / 8 % KEPT_TEXTS];
    if (bytes > LONGEST_TEXT) bytes = LONGEST_TEXT;
    if (kept->address != address || kept->asked < bytes) {
        size_t there = limit(driver, address, bytes);
        CUstream stream = reader->flight->stream->handle;
        bool read = driver->copy_out(kept->text, address, there, stream) == CUDA_SUCCESS &&
                    driver->stream_wait(stream) == CUDA_SUCCESS;
        kept->address = address;
        kept->asked = bytes;
        kept->bytes = read ? strnlen(kept->text, there) : 0;
    }
    size_t length = kept->bytes < bytes ? kept->bytes : bytes;
    memcpy(to, kept->text, length);
    return length;
}

/* ---- Records. */

struct log_place cuda_log_place(const struct flight *flight, uint64_t group, uint32_t index) {
    const struct launch *request = flight->request;
    const uint32_t *groups = flight->parameters.head.groups;
    struct log_place place = {.group = group, .index = index};
    uint32_t rest = index;
    for (int d = 0; d < 3; d++) {
        uint64_t position = d < 2 ? group % groups[d] : group;
        uint64_t first = position * request->group_size[d];
        uint64_t left = request->grid[d] - first;
        uint32_t own = left < request->group_size[d] ? (uint32_t)left : request->group_size[d];
        place.thread[d] = (uint32_t)first + (d < 2 ? rest % own : rest);
        rest /= own;
        group /= groups[d];
    }
    return place;
}

static void read_records(struct flight *flight, const uint64_t *words, uint64_t count, struct launch_log *log,
                         struct reader *reader) {
    const uint32_t *groups = flight->parameters.head.groups;
    uint64_t all_groups = (uint64_t)groups[0] * groups[1] * groups[2];
    for (uint64_t at = 0; at + CUDA_LOG_HEADER <= count;) {
        uint64_t n = words[at], group = words[at + 1], index = words[at + 2];
        /* The first record that did not fit would begin with zeros. */
        if (!n || n > count - at - CUDA_LOG_HEADER || group >= all_groups || index >= flight->threads) break;
        struct log_place place = cuda_log_place(flight, group, (uint32_t)index);
        launch_log_add(log, &place, (uint32_t)n, words + at + CUDA_LOG_HEADER, read_text, reader);
        at += CUDA_LOG_HEADER + n;
    }
}

static smelt_status read_words(struct flight *flight, CUdeviceptr address, const struct cuda_log *head) {
    uint64_t capacity = capacity_of(flight);
    uint64_t count = head->used < capacity ? head->used : capacity;
    uint64_t *words = malloc(count * sizeof *words + 1);
    struct reader *reader = calloc(1, sizeof *reader);
    smelt_status status = words && reader ? SMELT_OK : fail_out_of_memory(count * sizeof *words);
    if (status == SMELT_OK && count)
        status = cuda_copy_out(flight->stream, words, address + offsetof(struct cuda_log, words),
                               count * sizeof *words);
    if (status == SMELT_OK) {
        reader->flight = flight;
        read_records(flight, words, count, &flight->log, reader);
    }
    free(reader);
    free(words);
    return status;
}

smelt_status cuda_log_read(struct flight *flight, CUdeviceptr address) {
    struct cuda_log head;
    TRY(cuda_copy_out(flight->stream, &head, address, sizeof head));
    launch_log_open(&flight->log);
    flight->logged = true;
    smelt_status status = head.lines ? read_words(flight, address, &head) : SMELT_OK;
    flight->log.dropped = head.lines > flight->log.kept ? head.lines - flight->log.kept : 0;
    return status;
}

void cuda_log_deliver(struct flight *flight) {
    launch_log_deliver(&flight->log, flight->executable->name, flight->request->info);
}
