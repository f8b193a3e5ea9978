/* The times of work on a GPU, for traces: events around each piece of work, read when the trace is stopped,
 * or earlier if there are many. Without a trace nothing is recorded. */
#ifndef SMELT_DEVICE_CUDA_TIMELINE_H
#define SMELT_DEVICE_CUDA_TIMELINE_H

#include "base/trace.h"
#include "device/cuda/stream.h"

/* A piece of work, from before it is enqueued until it is. */
struct cuda_mark {
    uint32_t capture; /* 0: not traced */
    CUevent start;
};

/* Between cuda_enter and cuda_leave. Nothing is marked on a stream that records: its launches have not their
 * time now. */
struct cuda_mark cuda_mark_begin_traced(struct cuda_stream *stream);

static inline struct cuda_mark cuda_mark_begin(struct cuda_stream *stream) {
    return trace_capture() ? cuda_mark_begin_traced(stream) : (struct cuda_mark){0, NULL};
}

/* A slice for the work enqueued since, with its name, category and arguments, which it takes; its time is
 * filled in later. Only for marks with a capture. */
void cuda_mark_end(struct cuda_stream *stream, const struct cuda_mark *mark, struct trace_slice *slice);

/* A copy or fill of so many bytes; does nothing without a capture. */
void cuda_mark_end_bytes(struct cuda_stream *stream, const struct cuda_mark *mark, const char *name,
                         size_t bytes);

/* The trace ends: waits for all marked work and adds its slices. */
void cuda_timeline_finish(uint32_t capture);

#endif
