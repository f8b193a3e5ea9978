/* Events of GPUs. */
#include "base/trace.h"
#include "device/cuda/stream.h"

#include <stdlib.h>

struct cuda_event {
    struct smelt_event common;
    uint32_t epoch;
    CUevent handle;
};

static struct cuda_gpu *gpu_of(const smelt_event *event) {
    return cuda_gpu_of(event->device);
}

static struct cuda_event *own(smelt_event *event) {
    return (struct cuda_event *)event;
}

static smelt_status create(const struct device *device, smelt_event **out) {
    struct cuda_gpu *gpu = cuda_gpu_of(device);
    CUcontext previous;
    struct cuda_event *event = calloc(1, sizeof *event);
    if (!event) return fail_out_of_memory(sizeof *event);
    smelt_status status = cuda_enter(gpu, &previous);
    if (status == SMELT_OK) {
        event->epoch = atomic_load(&gpu->epoch);
        CUresult result = gpu->driver->event_create(&event->handle, 0);
        if (result != CUDA_SUCCESS) status = cuda_fail(gpu, result, "a new event");
        cuda_leave(gpu, previous);
    }
    if (status == SMELT_OK)
        *out = &event->common;
    else
        free(event);
    return status;
}

static void destroy(smelt_event *event) {
    struct cuda_gpu *gpu = gpu_of(event);
    CUcontext previous;
    if (cuda_enter_release(gpu, own(event)->epoch, &previous)) {
        gpu->driver->event_destroy(own(event)->handle);
        cuda_leave(gpu, previous);
    }
    free(event);
}

static smelt_status refuse_stale(smelt_event *event) {
    if (own(event)->epoch == atomic_load(&gpu_of(event)->epoch)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "event: it was created before device '%s' was reset, and can only be released",
                event->device->name);
}

/* Enters the event's GPU, on which it still exists. */
static smelt_status enter(smelt_event *event, CUcontext *previous) {
    TRY(cuda_enter(gpu_of(event), previous));
    smelt_status status = refuse_stale(event);
    if (status != SMELT_OK) cuda_leave(gpu_of(event), *previous);
    return status;
}

static smelt_status refuse_recording(struct cuda_stream *stream) {
    if (!cuda_stream_records(stream)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "event: the stream is recording, and takes launches only until smelt_stream_record_end");
}

static smelt_status record(smelt_event *event, smelt_stream *handle) {
    struct cuda_gpu *gpu = gpu_of(event);
    struct cuda_stream *stream;
    CUcontext previous;
    TRY(enter(event, &previous));
    smelt_status status = cuda_stream_for(gpu, handle, &stream);
    if (status == SMELT_OK) status = refuse_recording(stream);
    if (status == SMELT_OK) {
        CUresult result = gpu->driver->event_record(own(event)->handle, stream->handle);
        if (result != CUDA_SUCCESS) status = cuda_fail(gpu, result, "an event");
    }
    cuda_leave(gpu, previous);
    return status;
}

static smelt_status wait(smelt_event *event) {
    struct cuda_gpu *gpu = gpu_of(event);
    CUcontext previous;
    TRY(enter(event, &previous));
    struct trace_span span = trace_begin();
    CUresult result = gpu->driver->event_wait(own(event)->handle);
    trace_end_plain(span, "wait", "wait for event");
    smelt_status status = result == CUDA_SUCCESS ? SMELT_OK : cuda_fail(gpu, result, "waiting for an event");
    cuda_leave(gpu, previous);
    return status;
}

static smelt_status is_done(smelt_event *event, bool *done) {
    struct cuda_gpu *gpu = gpu_of(event);
    CUcontext previous;
    TRY(enter(event, &previous));
    CUresult result = gpu->driver->event_query(own(event)->handle);
    smelt_status status = SMELT_OK;
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
        *done = result == CUDA_SUCCESS;
    else
        status = cuda_fail(gpu, result, "querying an event");
    cuda_leave(gpu, previous);
    return status;
}

static smelt_status follow_within(struct cuda_gpu *gpu, smelt_stream *handle, smelt_event *event) {
    struct cuda_stream *stream;
    TRY(refuse_stale(event));
    TRY(cuda_stream_for(gpu, handle, &stream));
    TRY(refuse_recording(stream));
    CUDA_TRY(gpu, gpu->driver->stream_wait_event(stream->handle, own(event)->handle, 0),
             "making a stream wait for an event");
    return SMELT_OK;
}

/* The stream may be of another GPU than the event. */
static smelt_status follow(smelt_stream *handle, smelt_event *event) {
    struct cuda_gpu *gpu = handle ? cuda_gpu_of(handle->device) : gpu_of(event);
    struct cuda_entry entry;
    TRY(cuda_enter_both(gpu, gpu_of(event), &entry));
    smelt_status status = follow_within(gpu, handle, event);
    cuda_leave_both(&entry);
    return status;
}

static smelt_status seconds(smelt_event *start, smelt_event *end, double *result) {
    struct cuda_gpu *gpu = gpu_of(end);
    float milliseconds;
    CUcontext previous;
    TRY(wait(start));
    TRY(wait(end));
    TRY(enter(end, &previous));
    CUresult elapsed = gpu->driver->event_elapsed(&milliseconds, own(start)->handle, own(end)->handle);
    smelt_status status =
        elapsed == CUDA_SUCCESS ? SMELT_OK : cuda_fail(gpu, elapsed, "the time between two events");
    cuda_leave(gpu, previous);
    if (status == SMELT_OK) *result = (double)milliseconds * 1e-3;
    return status;
}

const struct event_functions cuda_events = {.create = create,
                                            .destroy = destroy,
                                            .record = record,
                                            .wait = wait,
                                            .is_done = is_done,
                                            .follow = follow,
                                            .seconds = seconds};
