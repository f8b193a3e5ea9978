/* Memory of GPUs as arrays hold it (struct memory_space of array.h), from a stream-ordered pool. All but
 * cuda_memory_functions is called between cuda_enter and cuda_leave. */
#ifndef SMELT_CUDA_MEMORY_H
#define SMELT_CUDA_MEMORY_H

#include "array/array.h"
#include "cuda/stream.h"

/* Sets the GPU's memory space and what its struct device has to do with arrays. */
void cuda_memory_functions(struct cuda_gpu *gpu);

/* A new row-contiguous array on the GPU, undefined contents, allocated in the order of `stream`.
 * OUT_OF_MEMORY names the array's shape, its bytes and what is free. */
smelt_status cuda_array_create(struct cuda_gpu *gpu, struct cuda_stream *stream, smelt_dtype dtype,
                               const smelt_shape *shape, smelt_array **array);

/* Copies between the host and the GPU in the stream's order. From the host: `from` may be changed once it
 * returns (the bytes went through pinned staging memory). To the host: waits. */
smelt_status cuda_copy_in(struct cuda_stream *stream, CUdeviceptr to, const void *from, size_t bytes);
smelt_status cuda_copy_out(struct cuda_stream *stream, void *to, CUdeviceptr from, size_t bytes);

/* Before a launch on `stream` uses memory that another stream used last: the one waits for the other, without
 * the host. And notes the use. `writes`: the launch may write it. INVALID_ARGUMENT for memory from before a
 * reset, or of another GPU. */
smelt_status cuda_memory_use(struct memory *memory, struct cuda_stream *stream, bool writes);

/* A short-lived block for a launch's own data (bytes, logs), taken and given back in the stream's order.
 * While the stream records, the block belongs to the recording. */
smelt_status cuda_scratch_take(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address);
void cuda_scratch_give(struct cuda_stream *stream, CUdeviceptr address);

#endif
