/* Data that a recording stream keeps for the replays. Between cuda_enter and cuda_leave. */
#ifndef SMELT_DEVICE_CUDA_RECORDING_H
#define SMELT_DEVICE_CUDA_RECORDING_H

#include "device/cuda/stream.h"

/* A launch uses this memory: it is kept until the recording is released, and each replay uses it again. */
smelt_status cuda_recording_use(struct cuda_stream *stream, struct memory *memory, bool writes);

/* A kernel is launched: each replay notes it on its stream. */
void cuda_recording_note(struct cuda_stream *stream, const char *kernel);

/* A copy of bytes of the host that lives as long as the recording. */
smelt_status cuda_recording_host(struct cuda_stream *stream, const void *from, size_t bytes,
                                 const void **kept);

/* A block on the GPU that lives as long as the recording. */
smelt_status cuda_recording_block(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address);

/* The same for copies of a launch's operands (memory.h). Launches that follow each other share a block.
 * False: there is no memory, or the recording has branches, which the GPU may run at the same time. */
bool cuda_recording_copies(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address);

/* The stream is released while it records: drops the recording. */
void cuda_recording_abandon(struct cuda_stream *stream);

#endif
