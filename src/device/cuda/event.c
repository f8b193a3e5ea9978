/* Events. On a CPU one has happened when it is recorded. */
#include "base/clock.h"
#include "base/trace.h"
#include "device/cuda/stream.h"

#include <stdlib.h>

struct smelt_event {
    atomic_int references;
    const struct device *device;
    struct cuda_gpu *gpu; /* NULL: a CPU's */
    uint32_t epoch;
    CUevent handle;
    atomic_bool recorded;
    _Atomic double seconds; /* on a CPU: when */
};

smelt_status smelt_event_create(const char *name, smelt_event **out) {
    const struct device *device;
    CUcontext previous;
    if (!out) return fail(SMELT_ERROR_INVALID_ARGUMENT, "event: the address for the new event is NULL");
    TRY(device_find(name, &device));
    smelt_event *event = calloc(1, sizeof *event);
    if (!event) return fail_out_of_memory(sizeof *event);
    atomic_init(&event->references, 1);
    event->device = device;
    event->gpu = cuda_gpu_of(device);
    smelt_status status = event->gpu ? cuda_enter(event->gpu, &previous) : SMELT_OK;
    if (event->gpu && status == SMELT_OK) {
        event->epoch = atomic_load(&event->gpu->epoch);
        CUresult result = event->gpu->driver->event_create(&event->handle, 0);
        if (result != CUDA_SUCCESS) status = cuda_fail(event->gpu, result, "a new event");
        cuda_leave(event->gpu, previous);
    }
    if (status == SMELT_OK)
        *out = event;
    else
        free(event);
    return status;
}

smelt_event *smelt_event_retain(smelt_event *event) {
    if (event) atomic_fetch_add(&event->references, 1);
    return event;
}

void smelt_event_release(smelt_event *event) {
    CUcontext previous;
    if (!event || atomic_fetch_sub(&event->references, 1) != 1) return;
    if (event->gpu && cuda_enter_release(event->gpu, event->epoch, &previous)) {
        event->gpu->driver->event_destroy(event->handle);
        cuda_leave(event->gpu, previous);
    }
    free(event);
}

static smelt_status refuse_stale(const smelt_event *event) {
    if (event->epoch == atomic_load(&event->gpu->epoch)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "event: it was made before device '%s' was reset, and can only be released",
                event->device->name);
}

/* Enters the event's GPU, on which it still exists. */
static smelt_status enter(const smelt_event *event, CUcontext *previous) {
    TRY(cuda_enter(event->gpu, previous));
    smelt_status status = refuse_stale(event);
    if (status != SMELT_OK) cuda_leave(event->gpu, *previous);
    return status;
}

static smelt_status refuse_recording(struct cuda_stream *stream) {
    if (!cuda_stream_records(stream)) return SMELT_OK;
    return fail(SMELT_ERROR_INVALID_ARGUMENT,
                "event: the stream is recording, and takes launches only until smelt_stream_record_end");
}

smelt_status smelt_event_record(smelt_event *event, smelt_stream *stream) {
    struct cuda_stream *cuda;
    CUcontext previous;
    if (!event) return fail(SMELT_ERROR_INVALID_ARGUMENT, "event record: event is NULL");
    if (stream && stream->device != event->device)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "event record: the event is of device '%s', the stream of '%s'", event->device->name,
                    stream->device->name);
    if (!event->gpu) {
        atomic_store(&event->seconds, clock_seconds());
        atomic_store(&event->recorded, true);
        return SMELT_OK;
    }
    TRY(enter(event, &previous));
    smelt_status status = cuda_stream_for(event->gpu, stream, &cuda);
    if (status == SMELT_OK) status = refuse_recording(cuda);
    if (status == SMELT_OK) {
        CUresult result = event->gpu->driver->event_record(event->handle, cuda->handle);
        if (result != CUDA_SUCCESS) status = cuda_fail(event->gpu, result, "an event");
    }
    if (status == SMELT_OK) atomic_store(&event->recorded, true);
    cuda_leave(event->gpu, previous);
    return status;
}

smelt_status smelt_event_wait(smelt_event *event) {
    CUcontext previous;
    if (!event) return fail(SMELT_ERROR_INVALID_ARGUMENT, "event wait: event is NULL");
    if (!event->gpu) return SMELT_OK;
    TRY(enter(event, &previous));
    struct trace_span span = trace_begin();
    CUresult result = event->gpu->driver->event_wait(event->handle);
    trace_end_plain(span, "wait", "wait for event");
    smelt_status status =
        result == CUDA_SUCCESS ? SMELT_OK : cuda_fail(event->gpu, result, "waiting for an event");
    cuda_leave(event->gpu, previous);
    return status;
}

smelt_status smelt_event_is_done(smelt_event *event, bool *done) {
    CUcontext previous;
    if (!event || !done)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "event is done: %s is NULL", event ? "done" : "event");
    if (!event->gpu) {
        *done = true;
        return SMELT_OK;
    }
    TRY(enter(event, &previous));
    CUresult result = event->gpu->driver->event_query(event->handle);
    smelt_status status = SMELT_OK;
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
        *done = result == CUDA_SUCCESS;
    else
        status = cuda_fail(event->gpu, result, "asking whether an event has happened");
    cuda_leave(event->gpu, previous);
    return status;
}

/* The stream may be of another GPU than the event. */
static smelt_status follow(struct cuda_gpu *gpu, smelt_stream *stream, const smelt_event *event) {
    struct cuda_stream *cuda;
    TRY(refuse_stale(event));
    TRY(cuda_stream_for(gpu, stream, &cuda));
    TRY(refuse_recording(cuda));
    CUDA_TRY(gpu, gpu->driver->stream_wait_event(cuda->handle, event->handle, 0),
             "a stream's waiting for an event");
    return SMELT_OK;
}

smelt_status smelt_stream_wait_event(smelt_stream *stream, smelt_event *event) {
    struct cuda_entry entry;
    if (!event) return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream wait event: event is NULL");
    if (!event->gpu) return SMELT_OK;
    /* A CPU's stream is its caller. */
    if (stream && !stream->cuda) return smelt_event_wait(event);
    struct cuda_gpu *gpu = stream ? cuda_gpu_of(stream->device) : event->gpu;
    TRY(cuda_enter_both(gpu, event->gpu, &entry));
    smelt_status status = follow(gpu, stream, event);
    cuda_leave_both(&entry);
    return status;
}

smelt_status smelt_event_seconds(smelt_event *start, smelt_event *end, double *seconds) {
    float milliseconds;
    CUcontext previous;
    if (!start || !end || !seconds)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "event seconds: %s is NULL",
                    !start ? "start"
                    : !end ? "end"
                           : "seconds");
    if (start->device != end->device)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "event seconds: start is of device '%s', end of '%s'; expected events of one device",
                    start->device->name, end->device->name);
    if (!atomic_load(&start->recorded) || !atomic_load(&end->recorded))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "event seconds: %s has not been recorded",
                    atomic_load(&start->recorded) ? "end" : "start");
    if (!start->gpu) {
        *seconds = atomic_load(&end->seconds) - atomic_load(&start->seconds);
        return SMELT_OK;
    }
    TRY(smelt_event_wait(start));
    TRY(smelt_event_wait(end));
    TRY(enter(end, &previous));
    CUresult result = end->gpu->driver->event_elapsed(&milliseconds, start->handle, end->handle);
    smelt_status status =
        result == CUDA_SUCCESS ? SMELT_OK : cuda_fail(end->gpu, result, "the time between two events");
    cuda_leave(end->gpu, previous);
    if (status == SMELT_OK) *seconds = (double)milliseconds * 1e-3;
    return status;
}
