/* Pinned host memory through which copies between host and GPU go: the GPU reads and writes it by itself,
 * while the host fills or empties another piece. */
#ifndef SMELT_DEVICE_CUDA_STAGING_H
#define SMELT_DEVICE_CUDA_STAGING_H

#include "device/cuda/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct cuda_gpu;
struct cuda_stream;

/* Pieces of this size keep the bus busy, and a few of them hide the host's part. */
#define CUDA_STAGING_BYTES ((size_t)4 << 20)
#define CUDA_STAGING_SLOTS 4

/* One piece, allocated when first needed. */
struct cuda_staging_slot {
    char *host;
    CUevent done;   /* behind the copy that uses it */
    bool in_flight; /* there is such a copy */
    bool taken;     /* by a thread */
};

struct cuda_staging {
    pthread_mutex_t lock;
    pthread_cond_t given; /* a slot has come back */
    struct cuda_staging_slot slots[CUDA_STAGING_SLOTS];
};

void cuda_staging_open(struct cuda_staging *staging);

/* The GPU was reset: the slots went with it. */
void cuda_staging_forget(struct cuda_staging *staging);

/* Between cuda_enter and cuda_leave. Copies in the stream's order. From the host: `from` may change once it
 * returns. To the host: waits; INVALID_ARGUMENT while the stream records. */
smelt_status cuda_copy_in(struct cuda_stream *stream, CUdeviceptr to, const void *from, size_t bytes);
smelt_status cuda_copy_out(struct cuda_stream *stream, void *to, CUdeviceptr from, size_t bytes);

#endif
