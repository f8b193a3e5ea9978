/* Streams behind their handles (src/device/stream.h). Events are in event.c, recordings in recording.c. */
#ifndef SMELT_DEVICE_CUDA_STREAM_H
#define SMELT_DEVICE_CUDA_STREAM_H

#include "device/cuda/context.h"
#include "device/stream.h"

extern const struct stream_functions cuda_streams;
extern const struct event_functions cuda_events;
extern const struct recording_functions cuda_recordings;

/* Kernels launched since the stream was last waited for: the latest of them. A fault is one of theirs. */
#define CUDA_PENDING_NAMES 8

/* Reference-counted: the public handle has a reference, and so has all memory that the stream used last. */
struct cuda_stream {
    struct cuda_gpu *gpu;
    struct cuda_stream *next, *previous; /* gpu->streams, under the GPU's lock */
    atomic_int references;
    uint32_t epoch;
    CUstream handle;
    bool owned;                 /* created here; else the caller's native stream */
    pthread_mutex_t lock;       /* of what follows */
    smelt_stream_memory memory; /* of a native stream while it is captured; or zeros */
    bool closed;                /* the handle is gone; `marker` is behind the last that was enqueued */
    CUevent marker;
    _Atomic(struct cuda_recording *) recording; /* launches are being recorded, not run; `marker` is behind
                                                   what was enqueued before */
    char pending[CUDA_PENDING_NAMES][64];
    uint64_t pending_count; /* all of them, also those whose names were pushed out */
    /* Of traces (timeline.c). */
    uint32_t number;      /* of its GPU, in the order they were made */
    uint32_t traced;      /* the latest capture that has its name */
    int64_t traced_until; /* the end of its latest slice */
};

/* Behind a handle of one of the GPU's streams. */
static inline struct cuda_stream *cuda_stream_of(const smelt_stream *handle) {
    return handle->own;
}

/* Enters the GPU and gives the stream of a handle, as cuda_stream_for; on success the GPU is to be left. */
smelt_status cuda_stream_enter(struct cuda_gpu *gpu, smelt_stream *handle, struct cuda_stream **stream,
                               CUcontext *previous);

/* Call the functions below, except cuda_wait, between cuda_enter and cuda_leave. */

/* A new stream, or one over the caller's `native` one (owned false). */
smelt_status cuda_stream_open(struct cuda_gpu *gpu, CUstream native, bool owned, struct cuda_stream **stream);

struct cuda_stream *cuda_stream_retain(struct cuda_stream *stream);
/* Need not be between cuda_enter and cuda_leave. */
void cuda_stream_release(struct cuda_stream *stream);

/* Nothing more is enqueued on it; the native stream may be destroyed. */
void cuda_stream_close(struct cuda_stream *stream);

/* The stream of a launch on the GPU: `stream` (INVALID_ARGUMENT if it is another device's, or from before a
 * reset), or the GPU's own in-order stream. Borrowed. */
smelt_status cuda_stream_for(struct cuda_gpu *gpu, smelt_stream *stream, struct cuda_stream **out);

/* Records a launched kernel, for the message about a fault. */
void cuda_stream_note(struct cuda_stream *stream, const char *kernel);

/* "kernel 'a'", "one of the kernels 'a', 'b'" or "": the kernels launched on the GPU and not waited for. Call
 * it with the GPU's lock held. Returns the number of kernels. */
int cuda_stream_suspects(struct cuda_gpu *gpu, char *text, size_t size);

/* The count of cuda_stream_note; and records that all kernels counted by then have ended. */
uint64_t cuda_stream_pending(struct cuda_stream *stream);
void cuda_stream_settle(struct cuda_stream *stream, uint64_t pending);

/* Waits for everything on the GPU, except recording and captured streams. */
smelt_status cuda_finish_all(struct cuda_gpu *gpu);

/* Waits for all launches on the GPU, and not for what others do there: they may be capturing a stream.
 * *ended: false if launches were made on a stream that is captured now; they may still run. */
smelt_status cuda_finish_launches(struct cuda_gpu *gpu, bool *ended);

/* smelt_device_wait. */
smelt_status cuda_wait(const struct device *device);

/* Later work on `stream` waits for the current work on `other`; the caller does not, unless `stream` is
 * captured. The streams may be of different GPUs. */
smelt_status cuda_stream_follow(struct cuda_stream *stream, struct cuda_stream *other);
/* The same, keeping the thread's message. */
CUresult cuda_stream_follow_quietly(struct cuda_stream *stream, struct cuda_stream *other);
/* The same for a stream that its owner may be closing: nothing is enqueued on one that is closed or records,
 * and *open is false. */
CUresult cuda_stream_follow_if_open(struct cuda_stream *stream, struct cuda_stream *other, bool *open);

/* Waits for all enqueued work. FAULT names the kernel, or the possible ones. INVALID_ARGUMENT while it is
 * recording. */
smelt_status cuda_stream_finish(struct cuda_stream *stream);
/* Whether it has ended. Does not wait; fails like cuda_stream_wait. */
smelt_status cuda_stream_query(struct cuda_stream *stream, bool *done);

/* Is it recording? Only the thread that records may rely on the answer. */
bool cuda_stream_records(struct cuda_stream *stream);
/* Is it a stream of the caller's, which the caller is capturing? */
bool cuda_stream_is_captured(const struct cuda_stream *stream);
/* The same of one that may be closed. */
bool cuda_stream_is_captured_now(struct cuda_stream *stream);

#endif
