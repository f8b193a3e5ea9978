/* Streams, events and recordings behind their public handles. */
#ifndef SMELT_CUDA_STREAM_H
#define SMELT_CUDA_STREAM_H

#include "cuda/context.h"

/* Kernels launched since the stream was last waited for: the latest of them. A fault is one of theirs. */
#define CUDA_PENDING_NAMES 8

struct cuda_stream {
    struct cuda_gpu *gpu;
    uint32_t epoch;
    CUstream handle;
    bool owned; /* made here; else the caller's native stream */
    pthread_mutex_t lock;
    char pending[CUDA_PENDING_NAMES][64];
    uint64_t pending_count; /* all of them, also those whose names were pushed out */
};

struct smelt_stream {
    atomic_int references;
    const struct device *device;
    struct cuda_stream *cuda; /* NULL: a CPU's, on which everything has ended when its call returns */
};

/* The GPU's own in-order stream, for calls that name none. */
smelt_status cuda_default_stream(struct cuda_gpu *gpu, struct cuda_stream **stream);

/* The stream of a launch on `device`: `stream` (INVALID_ARGUMENT if it is another device's), or the default.
 */
smelt_status cuda_stream_for(struct cuda_gpu *gpu, smelt_stream *stream, struct cuda_stream **out);

/* Notes a kernel that was launched, for the sentence about a fault. */
void cuda_stream_note(struct cuda_stream *stream, const char *kernel);

/* Waits until all that was enqueued has ended. FAULT names the kernel, or those it may have been. */
smelt_status cuda_stream_finish(struct cuda_stream *stream);

#endif
