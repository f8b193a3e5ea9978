#include "device/cuda/recording.h"
#include "device/cuda/memory.h"
#include "device/cuda/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct used {
    struct memory *memory;
    bool writes;
};

/* Kept until the recording is released. */
struct kept {
    struct kept *next;
    void *host;        /* pinned; or … */
    CUdeviceptr block; /* … on the GPU */
};

struct cuda_recording {
    struct smelt_recording common;
    struct cuda_gpu *gpu;
    uint32_t epoch;
    pthread_mutex_t lock; /* of what follows: one replay is enqueued at a time */
    CUgraphExec executable;
    CUevent done; /* behind the latest replay */
    bool replayed;
    struct used *used;
    int used_count, used_capacity;
    struct kept *kept;
    CUdeviceptr copies; /* one of `kept` */
    size_t copies_bytes;
    bool branches; /* launches need not follow each other */
    char names[CUDA_PENDING_NAMES][64];
    int name_count;
    int64_t launches;
};

/* ---- While it records. */

smelt_status cuda_recording_use(struct cuda_stream *stream, struct memory *memory, bool writes) {
    struct cuda_recording *recording = atomic_load(&stream->recording);
    smelt_status status = SMELT_OK;
    int i = 0;
    pthread_mutex_lock(&recording->lock);
    while (i < recording->used_count && recording->used[i].memory != memory) i++;
    if (i == recording->used_capacity) {
        int capacity = i ? 2 * i : 16;
        struct used *grown = realloc(recording->used, (size_t)capacity * sizeof *grown);
        if (grown) {
            recording->used = grown;
            recording->used_capacity = capacity;
        } else {
            status = fail_out_of_memory((size_t)capacity * sizeof *grown);
        }
    }
    if (status == SMELT_OK && i == recording->used_count) {
        memory_retain(memory);
        recording->used[recording->used_count++] = (struct used){memory, false};
    }
    if (status == SMELT_OK) recording->used[i].writes |= writes;
    pthread_mutex_unlock(&recording->lock);
    return status;
}

void cuda_recording_note(struct cuda_stream *stream, const char *kernel) {
    struct cuda_recording *recording = atomic_load(&stream->recording);
    int i = 0;
    pthread_mutex_lock(&recording->lock);
    recording->launches++;
    while (i < recording->name_count &&
           strncmp(recording->names[i], kernel, sizeof *recording->names - 1) != 0)
        i++;
    if (i < CUDA_PENDING_NAMES) {
        snprintf(recording->names[i], sizeof recording->names[i], "%s", kernel);
        if (i == recording->name_count) recording->name_count++;
    }
    pthread_mutex_unlock(&recording->lock);
}

/* Under the recording's lock. */
static smelt_status keep_locked(struct cuda_recording *recording, void *host, CUdeviceptr block) {
    struct kept *kept = malloc(sizeof *kept);
    if (!kept) return fail_out_of_memory(sizeof *kept);
    *kept = (struct kept){.host = host, .block = block, .next = recording->kept};
    recording->kept = kept;
    return SMELT_OK;
}

static smelt_status keep(struct cuda_recording *recording, void *host, CUdeviceptr block) {
    pthread_mutex_lock(&recording->lock);
    smelt_status status = keep_locked(recording, host, block);
    pthread_mutex_unlock(&recording->lock);
    return status;
}

smelt_status cuda_recording_host(struct cuda_stream *stream, const void *from, size_t bytes,
                                 const void **kept) {
    struct cuda_gpu *gpu = stream->gpu;
    void *host;
    CUDA_TRY(gpu, gpu->driver->host_allocate(&host, bytes, CUDA_HOST_ALLOCATE_PORTABLE),
             "%zu bytes of pinned host memory", bytes);
    smelt_status status = keep(atomic_load(&stream->recording), host, 0);
    if (status != SMELT_OK) {
        gpu->driver->host_release(host);
        return status;
    }
    memcpy(host, from, bytes);
    *kept = host;
    return SMELT_OK;
}

/* Taken on the default stream, whose order the first replay follows. */
smelt_status cuda_recording_block(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address) {
    struct cuda_gpu *gpu = stream->gpu;
    TRY(cuda_scratch_take(gpu->default_stream, bytes, address));
    smelt_status status = keep(atomic_load(&stream->recording), NULL, *address);
    if (status != SMELT_OK) cuda_scratch_give(gpu->default_stream, *address);
    return status;
}

/* Under the recording's lock. */
static bool grow_copies(struct cuda_recording *recording, size_t bytes) {
    struct cuda_gpu *gpu = recording->gpu;
    CUdeviceptr block;
    if (gpu->driver->allocate(&block, bytes, gpu->default_stream->handle) != CUDA_SUCCESS) return false;
    if (keep_locked(recording, NULL, block) != SMELT_OK) {
        cuda_scratch_give(gpu->default_stream, block);
        return false;
    }
    recording->copies = block;
    recording->copies_bytes = bytes;
    return true;
}

bool cuda_recording_copies(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address) {
    struct cuda_recording *recording = atomic_load(&stream->recording);
    pthread_mutex_lock(&recording->lock);
    bool there = !recording->branches && (bytes <= recording->copies_bytes || grow_copies(recording, bytes));
    *address = recording->copies;
    pthread_mutex_unlock(&recording->lock);
    return there;
}

/* ---- Beginning and ending. */

static void release_kept(struct cuda_recording *recording) {
    struct cuda_gpu *gpu = recording->gpu;
    const struct cuda_driver *driver = gpu->driver;
    CUcontext previous;
    bool there = cuda_enter_release(gpu, recording->epoch, &previous);
    if (there) {
        CUresult result = CUDA_SUCCESS;
        if (recording->kept && recording->replayed) result = driver->event_wait(recording->done);
        if (recording->executable) driver->graph_executable_destroy(recording->executable);
        if (recording->done) driver->event_destroy(recording->done);
        for (struct kept *k = recording->kept; k && result == CUDA_SUCCESS; k = k->next) {
            if (k->host)
                driver->host_release(k->host);
            else
                cuda_scratch_give(gpu->default_stream, k->block);
        }
        cuda_note(gpu, result);
        cuda_leave(gpu, previous);
    }
    for (struct kept *k = recording->kept, *next; k; k = next) {
        next = k->next;
        free(k);
    }
}

static void recording_free(struct cuda_recording *recording) {
    release_kept(recording);
    for (int i = 0; i < recording->used_count; i++) memory_release(recording->used[i].memory);
    pthread_mutex_destroy(&recording->lock);
    free(recording->used);
    free(recording);
}

static smelt_status begin(struct cuda_stream *stream) {
    struct cuda_gpu *gpu = stream->gpu;
    const struct cuda_driver *driver = gpu->driver;
    if (cuda_stream_records(stream))
        return fail(SMELT_ERROR_INVALID_ARGUMENT, "stream record: the stream is already recording");
    if (!stream->handle)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "stream record: CUDA's default stream cannot record; expected a stream of its own");
    struct cuda_recording *recording = calloc(1, sizeof *recording);
    if (!recording) return fail_out_of_memory(sizeof *recording);
    atomic_init(&recording->common.references, 1);
    recording->common.device = &gpu->device;
    recording->gpu = gpu;
    recording->epoch = stream->epoch;
    pthread_mutex_init(&recording->lock, NULL);
    CUresult result = driver->event_create(&recording->done, CUDA_EVENT_DISABLE_TIMING);
    if (result == CUDA_SUCCESS) {
        /* From now on waits for the stream cover the work enqueued so far. */
        pthread_mutex_lock(&stream->lock);
        result = driver->event_record(stream->marker, stream->handle);
        if (result == CUDA_SUCCESS) result = driver->capture_begin(stream->handle, CUDA_CAPTURE_RELAXED);
        if (result == CUDA_SUCCESS) atomic_store(&stream->recording, recording);
        pthread_mutex_unlock(&stream->lock);
    }
    if (result == CUDA_SUCCESS) return SMELT_OK;
    recording_free(recording);
    return cuda_fail(gpu, result, "a recording");
}

/* Takes the recording from the stream. */
static struct cuda_recording *stop(struct cuda_stream *stream, CUgraph *graph, CUresult *result) {
    pthread_mutex_lock(&stream->lock);
    struct cuda_recording *recording = atomic_load(&stream->recording);
    if (recording) *result = stream->gpu->driver->capture_end(stream->handle, graph);
    atomic_store(&stream->recording, NULL);
    pthread_mutex_unlock(&stream->lock);
    return recording;
}

static smelt_status end(struct cuda_stream *stream, smelt_recording **out) {
    struct cuda_gpu *gpu = stream->gpu;
    CUgraph graph = NULL;
    CUresult result = CUDA_SUCCESS;
    struct cuda_recording *recording = stop(stream, &graph, &result);
    if (!recording)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "stream record: the stream is not recording; call smelt_stream_record_begin first");
    if (result == CUDA_SUCCESS) result = gpu->driver->graph_instantiate(&recording->executable, graph, 0);
    if (graph) gpu->driver->graph_destroy(graph);
    if (result == CUDA_SUCCESS) {
        *out = &recording->common;
        return SMELT_OK;
    }
    recording_free(recording);
    return cuda_fail(gpu, result, "the recorded launches");
}

void cuda_recording_abandon(struct cuda_stream *stream) {
    CUgraph graph = NULL;
    CUresult result;
    struct cuda_recording *recording = stop(stream, &graph, &result);
    if (graph) stream->gpu->driver->graph_destroy(graph);
    if (recording) recording_free(recording);
}

static smelt_status record_begin(smelt_stream *handle) {
    struct cuda_stream *stream;
    CUcontext previous;
    TRY(cuda_stream_enter(cuda_gpu_of(handle->device), handle, &stream, &previous));
    smelt_status status = begin(stream);
    cuda_leave(stream->gpu, previous);
    return status;
}

static smelt_status record_end(smelt_stream *handle, smelt_recording **recording) {
    struct cuda_stream *stream;
    CUcontext previous;
    TRY(cuda_stream_enter(cuda_gpu_of(handle->device), handle, &stream, &previous));
    smelt_status status = end(stream, recording);
    cuda_leave(stream->gpu, previous);
    return status;
}

/* ---- Branches. */

static smelt_status ends(smelt_stream *handle, struct recording_ends *ends) {
    struct cuda_stream *stream;
    CUcontext previous;
    TRY(cuda_stream_enter(cuda_gpu_of(handle->device), handle, &stream, &previous));
    const CUgraphNode *nodes = NULL;
    unsigned long long id;
    int recording;
    CUgraph graph;
    size_t count = 0;
    CUresult result =
        stream->gpu->driver->capture_info(stream->handle, &recording, &id, &graph, &nodes, &count);
    smelt_status status =
        result == CUDA_SUCCESS ? SMELT_OK : cuda_fail(stream->gpu, result, "a recording's branches");
    cuda_leave(stream->gpu, previous);
    TRY(status);
    ends->nodes = malloc((count + 1) * sizeof *ends->nodes);
    if (!ends->nodes) return fail_out_of_memory(count * sizeof *ends->nodes);
    if (count) memcpy(ends->nodes, nodes, count * sizeof *ends->nodes);
    ends->count = count;
    return SMELT_OK;
}

static smelt_status wait_for(smelt_stream *handle, const struct recording_ends *ends) {
    const unsigned replaces = 1;
    struct cuda_stream *stream;
    CUcontext previous;
    TRY(cuda_stream_enter(cuda_gpu_of(handle->device), handle, &stream, &previous));
    struct cuda_recording *recording = atomic_load(&stream->recording);
    pthread_mutex_lock(&recording->lock);
    recording->branches = true;
    pthread_mutex_unlock(&recording->lock);
    CUresult result = stream->gpu->driver->capture_depend(stream->handle, (CUgraphNode *)ends->nodes,
                                                          ends->count, replaces);
    smelt_status status =
        result == CUDA_SUCCESS ? SMELT_OK : cuda_fail(stream->gpu, result, "a recording's branches");
    cuda_leave(stream->gpu, previous);
    return status;
}

/* ---- Replaying. */

/* The names that are kept: not all where there are many. */
static void trace_kernels(const struct cuda_recording *recording, struct trace_slice *slice) {
    struct text names = {0};
    for (int i = 0; i < recording->name_count; i++)
        text_addf(&names, "%s%s", i ? ", " : "", recording->names[i]);
    trace_string(slice, "kernels", text_string(&names));
    trace_integer(slice, "launches", recording->launches);
    text_free(&names);
}

static smelt_status replay(struct cuda_recording *recording, struct cuda_stream *stream, uint64_t flow) {
    struct cuda_gpu *gpu = recording->gpu;
    const struct cuda_driver *driver = gpu->driver;
    if (cuda_stream_records(stream))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "recording replay: the stream is recording; recordings cannot be nested");
    /* Blocks of the recording were allocated in the default stream's order. */
    if (recording->kept && !recording->replayed) TRY(cuda_stream_follow(stream, gpu->default_stream));
    for (int i = 0; i < recording->used_count; i++)
        TRY(cuda_memory_use(recording->used[i].memory, stream, recording->used[i].writes));
    struct cuda_mark mark = cuda_mark_begin(stream);
    CUresult result = driver->graph_launch(recording->executable, stream->handle);
    if (mark.capture) {
        struct trace_slice slice = {.category = "kernel", .name = "replay", .flow_in = flow};
        trace_kernels(recording, &slice);
        cuda_mark_end(stream, &mark, &slice);
    }
    CUDA_TRY(gpu, result, "a recording");
    for (int i = 0; i < recording->name_count; i++) cuda_stream_note(stream, recording->names[i]);
    CUDA_TRY(gpu, driver->event_record(recording->done, stream->handle), "a recording");
    recording->replayed = true;
    return SMELT_OK;
}

static smelt_status replay_recording(smelt_recording *common, smelt_stream *stream) {
    struct cuda_recording *recording = (struct cuda_recording *)common;
    struct cuda_stream *cuda;
    CUcontext previous;
    struct cuda_gpu *gpu = recording->gpu;
    struct trace_span span = trace_begin();
    uint64_t flow = span.capture ? trace_flow() : 0;
    TRY(cuda_enter(gpu, &previous));
    smelt_status status = cuda_stream_for(gpu, stream, &cuda);
    if (status == SMELT_OK && recording->epoch != atomic_load(&gpu->epoch))
        status = fail(SMELT_ERROR_INVALID_ARGUMENT,
                      "recording: it was created before device '%s' was reset, and can only be released",
                      gpu->name);
    if (status == SMELT_OK) {
        pthread_mutex_lock(&recording->lock);
        status = replay(recording, cuda, flow);
        pthread_mutex_unlock(&recording->lock);
    }
    cuda_leave(gpu, previous);
    if (span.capture) {
        struct trace_slice slice = {.category = "enqueue", .name = "enqueue replay", .flow_out = flow};
        trace_string(&slice, "device", gpu->name);
        trace_integer(&slice, "launches", recording->launches);
        trace_status(&slice, status);
        trace_end(span, &slice);
    }
    return status;
}

static void destroy(smelt_recording *recording) {
    recording_free((struct cuda_recording *)recording);
}

const struct recording_functions cuda_recordings = {.begin = record_begin,
                                                    .end = record_end,
                                                    .replay = replay_recording,
                                                    .destroy = destroy,
                                                    .ends = ends,
                                                    .wait_for = wait_for};
