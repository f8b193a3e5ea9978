#include "device/cuda/space.h"
#include "device/cuda/memory.h"
#include "device/cuda/timeline.h"

#include <stdio.h>
#include <string.h>

static CUdeviceptr address_of(const char *pointer) {
    return (CUdeviceptr)(uintptr_t)pointer;
}

static smelt_status create(const struct memory_space *space, smelt_stream *asked, smelt_dtype dtype,
                           const smelt_shape *shape, smelt_array **array) {
    struct cuda_stream *stream;
    CUcontext previous;
    TRY(cuda_stream_enter(cuda_gpu_of_space(space), asked, &stream, &previous));
    smelt_status status = cuda_array_create(cuda_gpu_of_space(space), stream, dtype, shape, array);
    cuda_leave(cuda_gpu_of_space(space), previous);
    return status;
}

/* The host's part: a copy to the host waits, others are enqueued. */
static void trace(struct trace_span span, const char *what, const struct memory_space *space, size_t bytes,
                  smelt_status status) {
    char name[80];
    struct trace_slice slice = {.category = "copy", .name = name};
    snprintf(name, sizeof name, "%s %s", what, space->device);
    trace_string(&slice, "device", space->device);
    trace_integer(&slice, "bytes", (int64_t)bytes);
    trace_status(&slice, status);
    trace_end(span, &slice);
}

static smelt_status order(struct memory *memory, smelt_stream *asked, bool home) {
    struct cuda_gpu *gpu = cuda_gpu_of_space(memory->space);
    struct cuda_stream *stream;
    CUcontext previous;
    /* The common case: a tensor of the stream that comes or goes. */
    if (asked && asked->device == &gpu->device && cuda_is_ready(gpu) &&
        cuda_memory_order_alone(memory, cuda_stream_of(asked), home))
        return SMELT_OK;
    TRY(cuda_stream_enter(gpu, asked, &stream, &previous));
    smelt_status status = cuda_memory_order(memory, stream, home);
    cuda_leave(gpu, previous);
    return status;
}

/* ---- Copies. */

static smelt_status refuse_recording(struct cuda_stream *stream) {
    if (!cuda_stream_records(stream)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream: it is recording, and a replay could not copy from the "
                                              "host again; expected arrays on the device");
}

static smelt_status copy_in(struct memory *memory, smelt_stream *asked, char *to, const void *from,
                            size_t bytes) {
    struct cuda_gpu *gpu = cuda_gpu_of_space(memory->space);
    struct cuda_stream *stream;
    CUcontext previous;
    struct trace_span span = trace_begin();
    TRY(cuda_stream_enter(cuda_gpu_of_space(memory->space), asked, &stream, &previous));
    smelt_status status = refuse_recording(stream);
    if (status == SMELT_OK) status = cuda_memory_use(memory, stream, true);
    if (status == SMELT_OK) status = cuda_copy_in(stream, address_of(to), from, bytes);
    cuda_leave(gpu, previous);
    if (span.capture) trace(span, "copy to", memory->space, bytes, status);
    return status;
}

static smelt_status copy_out(struct memory *memory, smelt_stream *asked, void *to, const char *from,
                             size_t bytes) {
    struct cuda_gpu *gpu = cuda_gpu_of_space(memory->space);
    struct cuda_stream *stream;
    CUcontext previous;
    struct trace_span span = trace_begin();
    TRY(cuda_stream_enter(cuda_gpu_of_space(memory->space), asked, &stream, &previous));
    smelt_status status = cuda_memory_use(memory, stream, false);
    if (status == SMELT_OK) status = cuda_copy_out(stream, to, address_of(from), bytes);
    cuda_leave(gpu, previous);
    if (span.capture) trace(span, "copy from", memory->space, bytes, status);
    return status;
}

/* From another GPU: its context is there while the driver copies. */
static smelt_status copy_between(struct cuda_stream *stream, CUdeviceptr to, struct cuda_gpu *source_gpu,
                                 CUdeviceptr from, size_t bytes) {
    struct cuda_gpu *gpu = stream->gpu;
    char name[80];
    struct cuda_mark mark = cuda_mark_begin(stream);
    CUresult result =
        gpu->driver->copy_between(to, gpu->context, from, source_gpu->context, bytes, stream->handle);
    snprintf(name, sizeof name, "copy from %s", source_gpu->name);
    cuda_mark_end_bytes(stream, &mark, name, bytes);
    CUDA_TRY(gpu, result, "a copy of %zu bytes from device '%s'", bytes, source_gpu->name);
    return SMELT_OK;
}

static smelt_status copy_on(struct cuda_stream *stream, CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    struct cuda_mark mark = cuda_mark_begin(stream);
    CUresult result = stream->gpu->driver->copy_within(to, from, bytes, stream->handle);
    cuda_mark_end_bytes(stream, &mark, "copy", bytes);
    CUDA_TRY(stream->gpu, result, "a copy of %zu bytes within the device", bytes);
    return SMELT_OK;
}

static smelt_status copy_within(struct memory *memory, smelt_stream *asked, char *to, struct memory *source,
                                const char *from, size_t bytes) {
    struct cuda_gpu *gpu = cuda_gpu_of_space(memory->space), *source_gpu = cuda_gpu_of_space(source->space);
    struct cuda_stream *stream;
    struct cuda_entry entry;
    struct trace_span span = trace_begin();
    TRY(cuda_enter_both(gpu, source_gpu, &entry));
    smelt_status status = cuda_stream_for(gpu, asked, &stream);
    if (status == SMELT_OK) status = cuda_memory_use(source, stream, false);
    if (status == SMELT_OK) status = cuda_memory_use(memory, stream, true);
    if (status == SMELT_OK)
        status = gpu == source_gpu
                     ? copy_on(stream, address_of(to), address_of(from), bytes)
                     : copy_between(stream, address_of(to), source_gpu, address_of(from), bytes);
    cuda_leave_both(&entry);
    if (span.capture)
        trace(span, gpu == source_gpu ? "copy within" : "copy between GPUs to", memory->space, bytes, status);
    return status;
}

/* ---- Fills. */

/* The widest that the driver fills with. */
#define MOST_FILL 4
/* What is copied from the host of a wider pattern; the rest is copied from there. */
#define FIRST_PATTERNS ((size_t)64 << 10)

static smelt_status fill_wide(struct cuda_stream *stream, CUdeviceptr to, const void *pattern, size_t width,
                              size_t bytes) {
    struct cuda_gpu *gpu = stream->gpu;
    char patterns[4096];
    size_t done = 0;
    for (size_t at = 0; at < sizeof patterns; at += width) memcpy(patterns + at, pattern, width);
    while (done < bytes && done < FIRST_PATTERNS) {
        size_t piece = bytes - done < sizeof patterns ? bytes - done : sizeof patterns;
        TRY(cuda_copy_in(stream, to + done, patterns, piece));
        done += piece;
    }
    while (done < bytes) {
        size_t piece = bytes - done < done ? bytes - done : done;
        CUDA_TRY(gpu, gpu->driver->copy_within(to + done, to, piece, stream->handle), "a fill of %zu bytes",
                 bytes);
        done += piece;
    }
    return SMELT_OK;
}

static smelt_status fill_bytes(struct cuda_stream *stream, CUdeviceptr to, const void *pattern, size_t width,
                               size_t count) {
    const struct cuda_driver *driver = stream->gpu->driver;
    size_t bytes = width * count;
    uint32_t word = 0;
    uint16_t half = 0;
    CUresult result;
    /* Zero of 8 bytes is zero of 4. */
    if (width > MOST_FILL && memcmp(pattern, (const char *)pattern + MOST_FILL, MOST_FILL) == 0)
        width = MOST_FILL;
    if (width > MOST_FILL) return fill_wide(stream, to, pattern, width, bytes);
    memcpy(&half, pattern, width < sizeof half ? width : sizeof half);
    memcpy(&word, pattern, width < sizeof word ? width : sizeof word);
    if (width == 4)
        result = driver->fill_32(to, word, bytes / 4, stream->handle);
    else if (width == 2)
        result = driver->fill_16(to, half, bytes / 2, stream->handle);
    else
        result = driver->fill_8(to, *(const unsigned char *)pattern, bytes, stream->handle);
    if (result != CUDA_SUCCESS) return cuda_fail(stream->gpu, result, "a fill of %zu bytes", bytes);
    return SMELT_OK;
}

static smelt_status fill(struct memory *memory, smelt_stream *asked, char *to, const void *pattern,
                         size_t width, size_t count) {
    struct cuda_stream *stream;
    CUcontext previous;
    struct trace_span span = trace_begin();
    TRY(cuda_stream_enter(cuda_gpu_of_space(memory->space), asked, &stream, &previous));
    smelt_status status = cuda_memory_use(memory, stream, true);
    struct cuda_mark mark = {0, NULL};
    if (status == SMELT_OK) {
        mark = cuda_mark_begin(stream);
        status = fill_bytes(stream, address_of(to), pattern, width, count);
    }
    cuda_mark_end_bytes(stream, &mark, "fill", width * count);
    cuda_leave(cuda_gpu_of_space(memory->space), previous);
    if (span.capture) trace(span, "fill on", memory->space, width * count, status);
    return status;
}

/* ---- The device's. */

static smelt_status create_array(const struct device *device, smelt_stream *stream, smelt_dtype dtype,
                                 const smelt_shape *shape, const double *value, smelt_array **array) {
    smelt_array *made;
    TRY(create(device->space, stream, dtype, shape, &made));
    smelt_status status = value ? array_fill_on(made, stream, *value) : SMELT_OK;
    if (status == SMELT_OK)
        *array = made;
    else
        smelt_array_release(made);
    return status;
}

static smelt_status memory_amount(const struct device *device, uint64_t *free_bytes, uint64_t *total) {
    struct cuda_gpu *gpu = cuda_gpu_of(device);
    CUcontext previous;
    TRY(cuda_enter(gpu, &previous));
    smelt_status status = cuda_memory_free(gpu, free_bytes, total);
    cuda_leave(gpu, previous);
    return status;
}

void cuda_space_functions(struct cuda_gpu *gpu) {
    gpu->space = (struct memory_space){.device = gpu->name,
                                       .create = create,
                                       .adopt = cuda_memory_adopt,
                                       .order = order,
                                       .copy_in = copy_in,
                                       .copy_out = copy_out,
                                       .copy_within = copy_within,
                                       .fill = fill,
                                       .is_ready = cuda_memory_is_ready,
                                       .release = cuda_memory_release};
    gpu->device.space = &gpu->space;
    gpu->device.create_array = create_array;
    gpu->device.memory = memory_amount;
}
