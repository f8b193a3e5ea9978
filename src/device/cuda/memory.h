/* Memory of GPUs, from a stream-ordered pool, and the order in which streams use it. Call all of this between
 * cuda_enter and cuda_leave. */
#ifndef SMELT_DEVICE_CUDA_MEMORY_H
#define SMELT_DEVICE_CUDA_MEMORY_H

#include "device/cuda/staging.h"
#include "device/cuda/stream.h"

#define CUDA_READERS 4

/* memory->use: who used it last. Since the last launch that may have written it, some streams may have read
 * it. */
struct cuda_use {
    struct cuda_gpu *gpu;
    uint32_t epoch;
    pthread_mutex_t lock;
    struct cuda_stream *writer; /* NULL: none yet. References, these and the readers'. */
    struct cuda_stream *readers[CUDA_READERS];
    int reader_count;
    struct cuda_stream *home;      /* of borrowed memory whose owner continues in a stream's order; or NULL */
    CUdeviceptr block;             /* of smelt's own pool; 0: the caller's memory */
    struct cuda_use *next, **link; /* in the list of the GPU's blocks, under its `blocks_lock` */
};

/* Before a reset: frees the blocks that arrays still hold, which the pool would keep, as it belongs to the
 * device and not to the context. On a lost GPU nothing can be freed. Requires that no other thread uses the
 * GPU, and its current context. */
void cuda_memory_give_all(struct cuda_gpu *gpu);

/* A new row-contiguous array on the GPU, undefined contents, allocated in the order of `stream`.
 * OUT_OF_MEMORY names the array's shape, its bytes and what is free. */
smelt_status cuda_array_create(struct cuda_gpu *gpu, struct cuda_stream *stream, smelt_dtype dtype,
                               const smelt_shape *shape, smelt_array **array);

/* Before a launch on `stream` uses memory that another stream used last: the stream waits for the other,
 * without the host. Records the use. `writes`: the launch may write it. INVALID_ARGUMENT for memory from
 * before a reset. */
smelt_status cuda_memory_use(struct memory *memory, struct cuda_stream *stream, bool writes);

/* Whether the stream that wrote it last has ended. Need not be between cuda_enter and cuda_leave. */
smelt_status cuda_memory_is_ready(struct memory *memory, bool *ready);

/* struct memory_space's `order`, on a stream of the memory's GPU. */
smelt_status cuda_memory_order(struct memory *memory, struct cuda_stream *stream, bool home);
/* The same where no other stream uses the memory, so that the driver has nothing to do: the GPU need not be
 * entered. False: nothing was done. */
bool cuda_memory_order_alone(struct memory *memory, struct cuda_stream *stream, bool home);

/* struct memory_space. */
smelt_status cuda_memory_adopt(const struct memory_space *space, struct memory *memory);
void cuda_memory_release(struct memory *memory);

/* A short-lived block for a launch's own data (bytes, logs), taken and released in the stream's order. While
 * the stream records, the block belongs to the recording. */
smelt_status cuda_scratch_take(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address);
/* The same for copies that make a launch faster, which it need not have: false without a message if there is
 * no memory. All launches that a stream records share one block. */
bool cuda_copies_take(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address);
void cuda_scratch_give(struct cuda_stream *stream, CUdeviceptr address);

/* Bytes that can be allocated: the driver's free bytes, and the pool's unused ones. */
smelt_status cuda_memory_free(struct cuda_gpu *gpu, uint64_t *free_bytes, uint64_t *total);

#endif
