#include "device/cuda/stream.h"
#include "device/cuda/recording.h"
#include "device/cuda/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening and closing. */

smelt_status cuda_stream_open(struct cuda_gpu *gpu, CUstream native, bool owned, struct cuda_stream **out) {
    const struct cuda_driver *driver = gpu->driver;
    struct cuda_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return fail_out_of_memory(sizeof *stream);
    stream->gpu = gpu;
    stream->epoch = atomic_load(&gpu->epoch);
    stream->handle = native;
    stream->owned = owned;
    atomic_init(&stream->references, 1);
    CUresult result = driver->event_create(&stream->marker, CUDA_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS && owned) {
        result = driver->stream_create(&stream->handle, CUDA_STREAM_NON_BLOCKING);
        if (result != CUDA_SUCCESS) driver->event_destroy(stream->marker);
    }
    if (result != CUDA_SUCCESS) {
        free(stream);
        return cuda_fail(gpu, result, "a new stream");
    }
    pthread_mutex_init(&stream->lock, NULL);
    pthread_mutex_lock(&gpu->lock);
    stream->number = gpu->streams_made++;
    stream->next = gpu->streams;
    if (gpu->streams) gpu->streams->previous = stream;
    gpu->streams = stream;
    pthread_mutex_unlock(&gpu->lock);
    *out = stream;
    return SMELT_OK;
}

struct cuda_stream *cuda_stream_retain(struct cuda_stream *stream) {
    atomic_fetch_add(&stream->references, 1);
    return stream;
}

static void close_handle(struct cuda_stream *stream) {
    const struct cuda_driver *driver = stream->gpu->driver;
    pthread_mutex_lock(&stream->lock);
    CUresult result = CUDA_SUCCESS;
    if (!stream->closed) {
        /* An event of a capture is none for others. */
        if (!cuda_stream_is_captured(stream)) result = driver->event_record(stream->marker, stream->handle);
        if (stream->owned) driver->stream_destroy(stream->handle);
        stream->closed = true;
    }
    pthread_mutex_unlock(&stream->lock);
    cuda_note(stream->gpu, result);
}

void cuda_stream_close(struct cuda_stream *stream) {
    if (stream->epoch == atomic_load(&stream->gpu->epoch)) close_handle(stream);
}

void cuda_stream_release(struct cuda_stream *stream) {
    if (atomic_fetch_sub(&stream->references, 1) != 1) return;
    struct cuda_gpu *gpu = stream->gpu;
    CUcontext previous;
    if (stream->pending_count) atomic_store(&gpu->left_running, true);
    if (cuda_enter_release(gpu, stream->epoch, &previous)) {
        close_handle(stream);
        gpu->driver->event_destroy(stream->marker);
        cuda_leave(gpu, previous);
    }
    pthread_mutex_lock(&gpu->lock);
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        gpu->streams = stream->next;
    if (stream->next) stream->next->previous = stream->previous;
    pthread_mutex_unlock(&gpu->lock);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

/* ---- Which stream. */

smelt_status cuda_stream_for(struct cuda_gpu *gpu, smelt_stream *stream, struct cuda_stream **out) {
    *out = gpu->default_stream;
    if (!stream) return SMELT_OK;
    if (stream->device != &gpu->device)
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream: it belongs to device '%s', expected one of '%s'",
                    stream->device->name, gpu->name);
    struct cuda_stream *own = cuda_stream_of(stream);
    if (own->epoch != atomic_load(&gpu->epoch))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "stream: it was created before device '%s' was reset, and can only be released",
                    gpu->name);
    *out = own;
    return SMELT_OK;
}

smelt_status cuda_stream_enter(struct cuda_gpu *gpu, smelt_stream *handle, struct cuda_stream **stream,
                               CUcontext *previous) {
    TRY(cuda_enter(gpu, previous));
    smelt_status status = cuda_stream_for(gpu, handle, stream);
    if (status != SMELT_OK) cuda_leave(gpu, *previous);
    return status;
}

/* ---- Suspects of a fault. */

void cuda_stream_note(struct cuda_stream *stream, const char *kernel) {
    if (cuda_stream_records(stream)) {
        cuda_recording_note(stream, kernel);
        return;
    }
    pthread_mutex_lock(&stream->lock);
    char *slot = stream->pending[stream->pending_count++ % CUDA_PENDING_NAMES];
    size_t length = strnlen(kernel, sizeof stream->pending[0] - 1);
    memcpy(slot, kernel, length);
    slot[length] = 0;
    pthread_mutex_unlock(&stream->lock);
}

/* One name more in the list, unless it is there; how many it has then. */
static int add_suspect(const char *names[], int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return count;
    names[count] = name;
    return count + 1;
}

int cuda_stream_suspects(struct cuda_gpu *gpu, char *text, size_t size) {
    const char *names[4 * CUDA_PENDING_NAMES];
    char copies[4][CUDA_PENDING_NAMES][64];
    int count = 0, streams = 0;
    bool more = false;
    uint32_t epoch = atomic_load(&gpu->epoch);
    for (struct cuda_stream *s = gpu->streams; s; s = s->next) {
        pthread_mutex_lock(&s->lock);
        uint64_t pending = s->epoch == epoch ? s->pending_count : 0;
        if (pending > CUDA_PENDING_NAMES || (pending && streams == 4)) more = true;
        if (pending > CUDA_PENDING_NAMES) pending = CUDA_PENDING_NAMES;
        if (pending && streams < 4) {
            memcpy(copies[streams], s->pending, sizeof s->pending);
            for (uint64_t i = 0; i < pending; i++) count = add_suspect(names, count, copies[streams][i]);
            streams++;
        }
        pthread_mutex_unlock(&s->lock);
    }
    size_t used = 0;
    *text = 0;
    if (count)
        used = (size_t)snprintf(text, size, "%s '%s'", count > 1 || more ? "one of the kernels" : "kernel",
                                names[0]);
    for (int i = 1; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, ", '%s'", names[i]);
    if (more && used < size) snprintf(text + used, size - used, " or one before");
    return count;
}

/* ---- Waiting. */

static CUresult wait_for_other(struct cuda_stream *other) {
    const struct cuda_driver *driver = other->gpu->driver;
    pthread_mutex_lock(&other->lock);
    bool marked = other->closed || cuda_stream_records(other);
    pthread_mutex_unlock(&other->lock);
    return marked ? driver->event_wait(other->marker) : driver->stream_wait(other->handle);
}

bool cuda_stream_is_captured_now(struct cuda_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    bool captured = !stream->closed && cuda_stream_is_captured(stream);
    pthread_mutex_unlock(&stream->lock);
    return captured;
}

/* A capture takes no events from outside, and gives none. What is captured runs later, in an order that is
 * the owner's task. *ordered: nothing is left to do. */
static CUresult order_captured(struct cuda_stream *stream, struct cuda_stream *other, bool *ordered) {
    bool captured = cuda_stream_is_captured_now(stream), before = cuda_stream_is_captured_now(other);
    *ordered = captured != before;
    return captured && !before ? wait_for_other(other) : CUDA_SUCCESS;
}

CUresult cuda_stream_follow_quietly(struct cuda_stream *stream, struct cuda_stream *other) {
    if (stream == other || other->epoch != atomic_load(&other->gpu->epoch)) return CUDA_SUCCESS;
    struct cuda_gpu *gpu = other->gpu;
    bool ordered;
    CUresult result = order_captured(stream, other, &ordered);
    if (ordered) return result;
    pthread_mutex_lock(&other->lock);
    if (!other->closed && !cuda_stream_records(other))
        result = gpu->driver->event_record(other->marker, other->handle);
    if (result == CUDA_SUCCESS) result = gpu->driver->stream_wait_event(stream->handle, other->marker, 0);
    pthread_mutex_unlock(&other->lock);
    return result;
}

CUresult cuda_stream_follow_if_open(struct cuda_stream *stream, struct cuda_stream *other, bool *open) {
    const struct cuda_driver *driver = stream->gpu->driver;
    bool ordered;
    if (stream == other || other->epoch != atomic_load(&other->gpu->epoch)) return CUDA_SUCCESS;
    pthread_mutex_lock(&stream->lock);
    *open = !stream->closed && !cuda_stream_records(stream);
    pthread_mutex_unlock(&stream->lock);
    if (!*open) return CUDA_SUCCESS;
    CUresult result = order_captured(stream, other, &ordered);
    if (ordered) return result;
    /* One lock at a time: elsewhere the two may be the other way round. A marker that moves on in between is
     * still behind what counts here. */
    pthread_mutex_lock(&other->lock);
    if (!other->closed && !cuda_stream_records(other))
        result = driver->event_record(other->marker, other->handle);
    pthread_mutex_unlock(&other->lock);
    pthread_mutex_lock(&stream->lock);
    *open = !stream->closed && !cuda_stream_records(stream);
    if (*open && result == CUDA_SUCCESS) result = driver->stream_wait_event(stream->handle, other->marker, 0);
    pthread_mutex_unlock(&stream->lock);
    return result;
}

smelt_status cuda_stream_follow(struct cuda_stream *stream, struct cuda_stream *other) {
    CUresult result = cuda_stream_follow_quietly(stream, other);
    return result == CUDA_SUCCESS ? SMELT_OK : cuda_fail(other->gpu, result, "the order of two streams");
}

bool cuda_stream_records(struct cuda_stream *stream) {
    return atomic_load_explicit(&stream->recording, memory_order_acquire);
}

bool cuda_stream_is_captured(const struct cuda_stream *stream) {
    int status = 0;
    if (stream->owned) return false;
    return stream->gpu->driver->capture_status(stream->handle, &status) != CUDA_SUCCESS || status != 0;
}

uint64_t cuda_stream_pending(struct cuda_stream *stream) {
    pthread_mutex_lock(&stream->lock);
    uint64_t pending = stream->pending_count;
    pthread_mutex_unlock(&stream->lock);
    return pending;
}

void cuda_stream_settle(struct cuda_stream *stream, uint64_t pending) {
    pthread_mutex_lock(&stream->lock);
    if (stream->pending_count == pending) stream->pending_count = 0;
    pthread_mutex_unlock(&stream->lock);
}

/* What is pending now, and whether the stream is closed. Fails, with `why` in the message, if its work does
 * not run, but is recorded. */
static smelt_status look_at(struct cuda_stream *stream, const char *why, uint64_t *pending, bool *closed) {
    pthread_mutex_lock(&stream->lock);
    *pending = stream->pending_count;
    *closed = stream->closed;
    pthread_mutex_unlock(&stream->lock);
    if (cuda_stream_records(stream))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "stream: it is recording, so %s; expected a stream whose recording has ended", why);
    if (!*closed && cuda_stream_is_captured(stream))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "stream: its owner captures it, so %s; expected a stream whose capture has ended", why);
    return SMELT_OK;
}

smelt_status cuda_stream_finish(struct cuda_stream *stream) {
    struct cuda_gpu *gpu = stream->gpu;
    uint64_t count;
    bool closed;
    TRY(look_at(stream, "there is nothing to wait for", &count, &closed));
    struct trace_span span = trace_begin();
    CUresult result =
        closed ? gpu->driver->event_wait(stream->marker) : gpu->driver->stream_wait(stream->handle);
    trace_end_plain(span, "wait", "wait for stream");
    if (result != CUDA_SUCCESS) return cuda_fail(gpu, result, "waiting for a stream");
    cuda_stream_settle(stream, count);
    return SMELT_OK;
}

smelt_status cuda_stream_query(struct cuda_stream *stream, bool *done) {
    struct cuda_gpu *gpu = stream->gpu;
    uint64_t count;
    bool closed;
    TRY(look_at(stream, "nothing runs on it", &count, &closed));
    CUresult result =
        closed ? gpu->driver->event_query(stream->marker) : gpu->driver->stream_query(stream->handle);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
        return cuda_fail(gpu, result, "querying a stream");
    *done = result == CUDA_SUCCESS;
    if (*done) cuda_stream_settle(stream, count);
    return SMELT_OK;
}

/* The GPU's streams that neither record nor are captured, each with a reference: they must outlive the wait.
 * *recording: there are others. */
static struct cuda_stream **list_streams(struct cuda_gpu *gpu, int *count, bool *recording) {
    int all = 0;
    *count = 0;
    *recording = false;
    pthread_mutex_lock(&gpu->lock);
    for (struct cuda_stream *s = gpu->streams; s; s = s->next) all++;
    struct cuda_stream **list = malloc((size_t)all * sizeof *list + 1);
    for (struct cuda_stream *s = gpu->streams; s && list; s = s->next) {
        int references = atomic_load(&s->references);
        if (s->epoch != atomic_load(&gpu->epoch)) continue;
        if (cuda_stream_records(s) || cuda_stream_is_captured_now(s)) {
            *recording = true;
            continue;
        }
        /* One whose last reference has gone is about to leave the list. */
        while (references && !atomic_compare_exchange_weak(&s->references, &references, references + 1)) {
        }
        if (references) list[(*count)++] = s;
    }
    pthread_mutex_unlock(&gpu->lock);
    return list;
}

smelt_status cuda_finish_all(struct cuda_gpu *gpu) {
    int count;
    bool recording;
    smelt_status status = SMELT_OK;
    struct cuda_stream **list = list_streams(gpu, &count, &recording);
    if (!list) return fail_out_of_memory(sizeof *list);
    /* Waiting for the whole context would end a recording. */
    if (!recording) {
        atomic_store(&gpu->left_running, false);
        struct trace_span span = trace_begin();
        CUresult result = gpu->driver->context_wait();
        trace_end_plain(span, "wait", "wait for device");
        if (result != CUDA_SUCCESS) status = cuda_fail(gpu, result, "waiting for everything");
    }
    for (int i = 0; i < count; i++) {
        if (status == SMELT_OK) status = cuda_stream_finish(list[i]);
        cuda_stream_release(list[i]);
    }
    free(list);
    return status;
}

/* Is a captured stream among the GPU's, on which kernels were launched? */
static bool captures_launches(struct cuda_gpu *gpu) {
    bool found = false;
    pthread_mutex_lock(&gpu->lock);
    for (struct cuda_stream *s = gpu->streams; s && !found; s = s->next)
        found =
            s->epoch == atomic_load(&gpu->epoch) && cuda_stream_pending(s) && cuda_stream_is_captured_now(s);
    pthread_mutex_unlock(&gpu->lock);
    return found;
}

smelt_status cuda_finish_launches(struct cuda_gpu *gpu, bool *ended) {
    int count;
    bool recording;
    smelt_status status = SMELT_OK;
    *ended = !captures_launches(gpu);
    if (!*ended) return SMELT_OK;
    if (atomic_load(&gpu->left_running)) return cuda_finish_all(gpu);
    struct cuda_stream **list = list_streams(gpu, &count, &recording);
    if (!list) return fail_out_of_memory(sizeof *list);
    for (int i = 0; i < count; i++) {
        if (status == SMELT_OK && cuda_stream_pending(list[i])) status = cuda_stream_finish(list[i]);
        cuda_stream_release(list[i]);
    }
    free(list);
    return status;
}

smelt_status cuda_wait(const struct device *device) {
    struct cuda_gpu *gpu = cuda_gpu_of(device);
    CUcontext previous;
    TRY(cuda_enter(gpu, &previous));
    smelt_status status = cuda_finish_all(gpu);
    cuda_leave(gpu, previous);
    return status;
}

/* ---- The handles' functions. */

static smelt_status open_own(const struct device *device, enum stream_kind kind, void *native, void **own) {
    struct cuda_gpu *gpu = cuda_gpu_of(device);
    struct cuda_stream *stream = NULL;
    smelt_status status = SMELT_OK;
    CUcontext previous;
    TRY(cuda_enter(gpu, &previous));
    if (kind == STREAM_USUAL)
        stream = cuda_stream_retain(gpu->default_stream);
    else
        status = cuda_stream_open(gpu, native, kind == STREAM_NEW, &stream);
    cuda_leave(gpu, previous);
    *own = stream;
    return status;
}

static void close_own(smelt_stream *handle) {
    struct cuda_stream *stream = cuda_stream_of(handle);
    CUcontext previous;
    if (!handle->usual && cuda_enter_release(stream->gpu, stream->epoch, &previous)) {
        if (cuda_stream_records(stream)) cuda_recording_abandon(stream);
        cuda_stream_close(stream);
        cuda_leave(stream->gpu, previous);
    }
    cuda_stream_release(stream);
}

static void *native(const smelt_stream *handle) {
    return cuda_stream_of(handle)->handle;
}

static smelt_status set_memory(smelt_stream *handle, const smelt_stream_memory *memory) {
    struct cuda_stream *stream = cuda_stream_of(handle);
    if (stream->owned || handle->usual)
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "memory of a stream: the stream is smelt's own; expected one from smelt_stream_from_native");
    pthread_mutex_lock(&stream->lock);
    stream->memory = memory ? *memory : (smelt_stream_memory){0};
    pthread_mutex_unlock(&stream->lock);
    return SMELT_OK;
}

static smelt_status wait(smelt_stream *handle) {
    struct cuda_stream *stream;
    CUcontext previous;
    TRY(cuda_stream_enter(cuda_gpu_of(handle->device), handle, &stream, &previous));
    smelt_status status = cuda_stream_finish(stream);
    cuda_leave(stream->gpu, previous);
    return status;
}

static smelt_status is_done(smelt_stream *handle, bool *done) {
    struct cuda_stream *stream;
    CUcontext previous;
    TRY(cuda_stream_enter(cuda_gpu_of(handle->device), handle, &stream, &previous));
    smelt_status status = cuda_stream_query(stream, done);
    cuda_leave(stream->gpu, previous);
    return status;
}

const struct stream_functions cuda_streams = {.open = open_own,
                                              .close = close_own,
                                              .native = native,
                                              .set_memory = set_memory,
                                              .wait = wait,
                                              .is_done = is_done};
