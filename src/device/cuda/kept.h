/* Bytes of the host for launches on captured streams: a graph is launched again and again, while the host
 * changes its memory. */
#ifndef SMELT_DEVICE_CUDA_KEPT_H
#define SMELT_DEVICE_CUDA_KEPT_H

#include "device/cuda/memory.h"

/* The address of a block on the GPU with these bytes, which stays until the process ends or the GPU is reset.
 * Equal bytes have one block. The call waits for the copy. */
smelt_status cuda_kept_bytes(struct cuda_gpu *gpu, const void *bytes, size_t size, CUdeviceptr *address);

#endif
