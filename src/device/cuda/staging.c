#include "device/cuda/staging.h"
#include "device/cuda/recording.h"
#include "device/cuda/stream.h"
#include "device/cuda/timeline.h"

#include <string.h>

void cuda_staging_open(struct cuda_staging *staging) {
    pthread_mutex_init(&staging->lock, NULL);
    pthread_cond_init(&staging->given, NULL);
}

void cuda_staging_forget(struct cuda_staging *staging) {
    memset(staging->slots, 0, sizeof staging->slots);
}

/* ---- Slots. */

static void give(struct cuda_staging *staging, struct cuda_staging_slot *slot) {
    pthread_mutex_lock(&staging->lock);
    slot->taken = false;
    pthread_cond_signal(&staging->given);
    pthread_mutex_unlock(&staging->lock);
}

/* A slot for the calling thread, which may still be in flight; NULL if all are taken and `wait` is false. A
 * thread that holds one must not wait: others may do the same. Idle ones first, so that few are ever made. */
static struct cuda_staging_slot *take(struct cuda_staging *staging, bool wait) {
    struct cuda_staging_slot *found = NULL;
    pthread_mutex_lock(&staging->lock);
    for (;;) {
        for (int pass = 0; pass < 3 && !found; pass++)
            for (int i = 0; i < CUDA_STAGING_SLOTS && !found; i++) {
                struct cuda_staging_slot *slot = &staging->slots[i];
                if (slot->taken) continue;
                bool suits = pass == 0   ? slot->host && !slot->in_flight
                             : pass == 1 ? !slot->host
                                         : slot->in_flight;
                if (suits) found = slot;
            }
        if (found || !wait) break;
        pthread_cond_wait(&staging->given, &staging->lock);
    }
    if (found) found->taken = true;
    pthread_mutex_unlock(&staging->lock);
    return found;
}

/* Makes a taken slot's memory if it has none, and waits for the copy that used it last. */
static smelt_status prepare(struct cuda_gpu *gpu, struct cuda_staging_slot *slot) {
    const struct cuda_driver *driver = gpu->driver;
    if (slot->in_flight) {
        CUDA_TRY(gpu, driver->event_wait(slot->done), "a copy from the host");
        slot->in_flight = false;
    }
    if (slot->host) return SMELT_OK;
    void *host;
    CUDA_TRY(gpu, driver->host_allocate(&host, CUDA_STAGING_BYTES, CUDA_HOST_ALLOCATE_PORTABLE),
             "%zu bytes of pinned host memory", CUDA_STAGING_BYTES);
    CUresult result = driver->event_create(&slot->done, CUDA_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) {
        driver->host_release(host);
        return cuda_fail(gpu, result, "an event");
    }
    slot->host = host;
    return SMELT_OK;
}

static size_t piece_of(size_t bytes) {
    return bytes < CUDA_STAGING_BYTES ? bytes : CUDA_STAGING_BYTES;
}

/* ---- To the GPU. */

static smelt_status copy_piece_in(struct cuda_stream *stream, CUdeviceptr to, const char *from,
                                  size_t bytes) {
    struct cuda_gpu *gpu = stream->gpu;
    struct cuda_staging_slot *slot = take(&gpu->staging, true);
    smelt_status status = prepare(gpu, slot);
    if (status == SMELT_OK) {
        memcpy(slot->host, from, bytes);
        CUresult result = gpu->driver->copy_in(to, slot->host, bytes, stream->handle);
        if (result == CUDA_SUCCESS) {
            slot->in_flight = true;
            result = gpu->driver->event_record(slot->done, stream->handle);
        }
        if (result != CUDA_SUCCESS)
            status = cuda_fail(gpu, result, "a copy of %zu bytes from the host", bytes);
    }
    give(&gpu->staging, slot);
    return status;
}

smelt_status cuda_copy_in(struct cuda_stream *stream, CUdeviceptr to, const void *from, size_t bytes) {
    if (bytes && cuda_stream_records(stream)) {
        const void *kept;
        TRY(cuda_recording_host(stream, from, bytes, &kept));
        CUDA_TRY(stream->gpu, stream->gpu->driver->copy_in(to, kept, bytes, stream->handle),
                 "a recorded copy of %zu bytes from the host", bytes);
        return SMELT_OK;
    }
    if (bytes && cuda_stream_is_captured(stream))
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "device '%s': %zu bytes of the host's memory are to be copied on a stream that its owner "
                    "captures; copy them before the capture begins",
                    stream->gpu->name, bytes);
    struct cuda_mark mark = cuda_mark_begin(stream);
    smelt_status status = SMELT_OK;
    for (size_t at = 0; at < bytes && status == SMELT_OK; at += CUDA_STAGING_BYTES)
        status = copy_piece_in(stream, to + at, (const char *)from + at, piece_of(bytes - at));
    cuda_mark_end_bytes(stream, &mark, "copy from host", bytes);
    return status;
}

/* ---- From the GPU. */

/* Pieces on their way, oldest first: as many as there are slots free. */
struct arrivals {
    struct {
        struct cuda_staging_slot *slot;
        size_t at, bytes;
    } pieces[CUDA_STAGING_SLOTS];
    int first, count;
};

static smelt_status send(struct cuda_stream *stream, struct arrivals *arrivals,
                         struct cuda_staging_slot *slot, CUdeviceptr from, size_t at, size_t bytes) {
    struct cuda_gpu *gpu = stream->gpu;
    TRY(prepare(gpu, slot));
    CUresult result = gpu->driver->copy_out(slot->host, from + at, bytes, stream->handle);
    if (result == CUDA_SUCCESS) {
        slot->in_flight = true;
        result = gpu->driver->event_record(slot->done, stream->handle);
    }
    if (result != CUDA_SUCCESS) return cuda_fail(gpu, result, "a copy of %zu bytes to the host", bytes);
    int last = (arrivals->first + arrivals->count++) % CUDA_STAGING_SLOTS;
    arrivals->pieces[last].slot = slot;
    arrivals->pieces[last].at = at;
    arrivals->pieces[last].bytes = bytes;
    return SMELT_OK;
}

/* The oldest piece, waited for and copied. */
static smelt_status receive(struct cuda_gpu *gpu, struct arrivals *arrivals, char *to) {
    int first = arrivals->first;
    struct cuda_staging_slot *slot = arrivals->pieces[first].slot;
    CUresult result = gpu->driver->event_wait(slot->done);
    if (result == CUDA_SUCCESS) {
        slot->in_flight = false;
        memcpy(to + arrivals->pieces[first].at, slot->host, arrivals->pieces[first].bytes);
    }
    arrivals->first = (first + 1) % CUDA_STAGING_SLOTS;
    arrivals->count--;
    give(&gpu->staging, slot);
    return result == CUDA_SUCCESS ? SMELT_OK : cuda_fail(gpu, result, "a copy to the host");
}

smelt_status cuda_copy_out(struct cuda_stream *stream, void *to, CUdeviceptr from, size_t bytes) {
    struct cuda_gpu *gpu = stream->gpu;
    struct arrivals arrivals = {.count = 0};
    smelt_status status = SMELT_OK;
    if (cuda_stream_records(stream))
        return fail(
            SMELT_ERROR_INVALID_ARGUMENT,
            "stream: it is recording, so it has no results to read; expected a stream whose recording has "
            "ended");
    uint64_t before = cuda_stream_pending(stream);
    struct cuda_mark mark = cuda_mark_begin(stream);
    for (size_t at = 0; status == SMELT_OK && (at < bytes || arrivals.count);) {
        struct cuda_staging_slot *slot = at < bytes ? take(&gpu->staging, !arrivals.count) : NULL;
        if (!slot) {
            status = receive(gpu, &arrivals, to);
            continue;
        }
        size_t piece = piece_of(bytes - at);
        status = send(stream, &arrivals, slot, from, at, piece);
        if (status != SMELT_OK) give(&gpu->staging, slot);
        at += piece;
        if (at < bytes) continue;
        cuda_mark_end_bytes(stream, &mark, "copy to host", bytes);
        mark.capture = 0;
    }
    /* Not all was enqueued. */
    cuda_mark_end_bytes(stream, &mark, "copy to host", bytes);
    /* After a failure: the next user of the slot waits for pending copies. */
    for (int i = 0; i < arrivals.count; i++)
        give(&gpu->staging, arrivals.pieces[(arrivals.first + i) % CUDA_STAGING_SLOTS].slot);
    if (status == SMELT_OK && bytes) cuda_stream_settle(stream, before);
    return status;
}
