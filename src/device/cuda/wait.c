/* Launches that are waited for: kernels that may run too long, that log, or that are measured. */
#include "base/alarm.h"
#include "base/interrupt.h"
#include "base/watch.h"
#include "device/cuda/flight.h"
#include "device/cuda/log.h"
#include "device/cuda/outside.h"

/* ---- Time-outs. The flag that the kernel's loops look at lies in the GPU's memory (struct cuda_stop). When
 * time is over, or the call is interrupted, it is set by a copy on another stream, which the GPU makes while
 * the kernel runs. */

struct watch {
    struct flight *flight;
    CUstream beside;
    struct alarm *alarm;
    struct interrupt_watch *interrupt; /* NULL: the call has none */
    _Atomic bool expired, interrupted;
};

/* On the thread of alarms or interrupts. The launch waits for the kernel, within cuda_enter: the GPU is not
 * reset meanwhile. */
static void set_flag(struct watch *watch) {
    static const uint32_t set = 1;
    struct cuda_gpu *gpu = watch->flight->gpu;
    CUcontext previous = NULL;
    if (gpu->driver->context_get(&previous) != CUDA_SUCCESS) return;
    (void)gpu->driver->context_set(gpu->context);
    (void)gpu->driver->copy_in(watch->flight->parameters.head.stop, &set, sizeof set, watch->beside);
    (void)gpu->driver->context_set(previous);
}

static void expire(void *context) {
    struct watch *watch = context;
    atomic_store(&watch->expired, true);
    set_flag(watch);
}

static void interrupt(void *context) {
    struct watch *watch = context;
    atomic_store(&watch->interrupted, true);
    set_flag(watch);
}

/* The driver's own wait cannot be interrupted. */
static smelt_status wait_for_earlier(struct cuda_stream *stream) {
    static const struct timespec pause = {.tv_nsec = 100000};
    if (!interrupt_of_call()) return cuda_stream_finish(stream);
    for (;;) {
        bool done;
        TRY(cuda_stream_query(stream, &done));
        if (done) return SMELT_OK;
        TRY(interrupt_check());
        nanosleep(&pause, NULL);
    }
}

static smelt_status arm(struct watch *watch, double seconds) {
    TRY(alarm_arm(seconds, expire, watch, &watch->alarm));
    if (!interrupt_of_call()) return SMELT_OK;
    smelt_status status = interrupt_watch_open(interrupt_of_call(), interrupt, watch, &watch->interrupt);
    if (status != SMELT_OK) alarm_disarm(watch->alarm);
    return status;
}

/* Gives the launch a struct cuda_stop, and fills it with zeros in the stream's order. */
static smelt_status clear_stop(struct flight *flight) {
    CUdeviceptr stop;
    TRY(flight_scratch(flight, sizeof(struct cuda_stop), &stop));
    flight->parameters.head.stop = stop;
    CUDA_TRY(flight->gpu,
             flight->gpu->driver->fill_32(stop, 0, sizeof(struct cuda_stop) / 4, flight->stream->handle),
             "the stop flag of kernel '%s'", flight->executable->name);
    return SMELT_OK;
}

static smelt_status watch_open(struct watch *watch, struct flight *flight) {
    struct cuda_gpu *gpu = flight->gpu;
    watch->flight = flight;
    /* Excludes earlier work, and clears the flag before it may be set. */
    TRY(wait_for_earlier(flight->stream));
    CUDA_TRY(gpu, gpu->driver->stream_create(&watch->beside, CUDA_STREAM_NON_BLOCKING),
             "the time-out of kernel '%s'", flight->executable->name);
    smelt_status status = arm(watch, flight->request->timeout);
    if (status != SMELT_OK) (void)gpu->driver->stream_destroy(watch->beside);
    return status;
}

/* The launch's own failure goes before. */
static smelt_status watch_close(struct watch *watch, smelt_status status) {
    const struct flight *flight = watch->flight;
    const struct cuda_driver *driver = flight->gpu->driver;
    alarm_disarm(watch->alarm);
    interrupt_watch_close(watch->interrupt);
    bool expired = atomic_load(&watch->expired), interrupted = atomic_load(&watch->interrupted);
    /* The copy must have ended before its target is released. */
    if (expired || interrupted) (void)driver->stream_wait(watch->beside);
    (void)driver->stream_destroy(watch->beside);
    if (status != SMELT_OK) return status;
    return launch_end(flight->executable->name, flight->request, interrupted, expired);
}

/* ---- Time. */

struct stopwatch {
    CUevent start, end;
};

static smelt_status stopwatch_open(struct flight *flight, struct stopwatch *watch) {
    struct cuda_gpu *gpu = flight->gpu;
    CUDA_TRY(gpu, gpu->driver->event_create(&watch->start, 0), "an event");
    CUresult result = gpu->driver->event_create(&watch->end, 0);
    if (result != CUDA_SUCCESS) (void)gpu->driver->event_destroy(watch->start);
    return result == CUDA_SUCCESS ? SMELT_OK : cuda_fail(gpu, result, "an event");
}

static void stopwatch_close(struct flight *flight, struct stopwatch *watch) {
    (void)flight->gpu->driver->event_destroy(watch->start);
    (void)flight->gpu->driver->event_destroy(watch->end);
}

static smelt_status launch_and_finish(struct flight *flight) {
    TRY(flight_launch(flight));
    return cuda_stream_finish(flight->stream);
}

/* From the launch's first thread to its last. */
static smelt_status measure(struct flight *flight) {
    struct cuda_gpu *gpu = flight->gpu;
    struct stopwatch watch;
    float milliseconds = 0;
    TRY(stopwatch_open(flight, &watch));
    CUresult result = gpu->driver->event_record(watch.start, flight->stream->handle);
    smelt_status status = flight_launch(flight);
    if (status == SMELT_OK && result == CUDA_SUCCESS)
        result = gpu->driver->event_record(watch.end, flight->stream->handle);
    if (status == SMELT_OK) status = cuda_stream_finish(flight->stream);
    if (status == SMELT_OK && result == CUDA_SUCCESS)
        result = gpu->driver->event_elapsed(&milliseconds, watch.start, watch.end);
    stopwatch_close(flight, &watch);
    if (status == SMELT_OK && result != CUDA_SUCCESS)
        status = cuda_fail(gpu, result, "the measurement of kernel '%s'", flight->executable->name);
    if (status == SMELT_OK) flight->request->info->seconds = 1e-3 * (double)milliseconds;
    return status;
}

smelt_status flight_launch_and_wait(struct flight *flight) {
    const struct launch *request = flight->request;
    bool logs = flight->code->head.image.log_words != 0, tested = flight->code->head.shape.tested;
    struct watch watch = {.flight = NULL};
    CUdeviceptr log = 0;
    bool records = cuda_stream_records(flight->stream);
    if (records || cuda_stream_is_captured(flight->stream))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "kernel '%s': the stream is %s; a launch %s must be waited for and cannot be recorded",
                    flight->executable->name, records ? "recording" : "captured by its owner",
                    request->timeout > 0 ? "with a time-out"
                    : tested             ? "that is checked"
                    : logs               ? "that logs"
                                         : "with a smelt_run_info");
    if (logs) {
        TRY(cuda_log_open(flight, &log));
        flight->parameters.head.log = log;
    }
    if (request->timeout > 0 || tested) TRY(clear_stop(flight));
    if (request->timeout > 0) TRY(watch_open(&watch, flight));
    smelt_status status = request->info ? measure(flight) : launch_and_finish(flight);
    if (watch.flight) status = watch_close(&watch, status);
    /* Lines logged before a failure help to understand it; nothing can be read from a lost GPU. */
    bool readable = status == SMELT_OK || status == SMELT_ERROR_TIMEOUT || status == SMELT_ERROR_INTERRUPTED;
    if (logs && readable) {
        smelt_status read = cuda_log_read(flight, log);
        if (status == SMELT_OK) status = read;
    }
    if (tested && readable) {
        smelt_status found = cuda_outside_read(flight);
        if (found != SMELT_OK) status = found;
    }
    return status;
}
