#include "cuda/memory.h"

static smelt_status memory_info(const struct device *device, uint64_t *free_bytes, uint64_t *total_bytes) {
    struct cuda_gpu *gpu = cuda_gpu_of(device);
    CUcontext previous;
    size_t free_now = 0, total = 0;
    uint64_t reserved = 0, used = 0;
    TRY(cuda_enter(gpu, &previous));
    CUresult result = gpu->driver->memory_info(&free_now, &total);
    /* What the pool holds and no array uses is free to be allocated. */
    if (result == CUDA_SUCCESS) result = gpu->driver->pool_get(gpu->pool, CUDA_POOL_RESERVED, &reserved);
    if (result == CUDA_SUCCESS) result = gpu->driver->pool_get(gpu->pool, CUDA_POOL_USED, &used);
    smelt_status status = result == CUDA_SUCCESS ? SMELT_OK : cuda_fail(gpu, result, "the amount of memory");
    cuda_leave(gpu, previous);
    *free_bytes = free_now + (reserved - used);
    *total_bytes = total;
    return status;
}

void cuda_memory_functions(struct cuda_gpu *gpu) {
    gpu->space.device = gpu->name;
    gpu->device.space = &gpu->space;
    gpu->device.memory = memory_info;
}
