/* The fake driver: blocks of memory, the pool, pinned memory of the host, copies and fills. */
#include "fake_internal.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- Blocks. */

struct block *block_at(const void *address) {
    for (struct object *object = fake.objects; object; object = object->next) {
        struct block *block = (struct block *)object;
        if (object->kind == KIND_BLOCK && !object->dead && (const char *)address >= block->memory &&
            (const char *)address < block->memory + block->bytes)
            return block;
    }
    return NULL;
}

/* Records a use of a block whose turn has come; false, and a violation, if it is wrong. */
bool block_use(struct block *block, const struct work *work, int stream, bool writes) {
    const struct clock *before = &work->before;
    if (block->object.device != fake.streams[stream]->object.device && work->kind != WORK_COPY)
        violate("work of a stream of device %d uses memory of device %d", fake.streams[stream]->object.device,
                block->object.device);
    if (block->released) violate("memory is used after it was given back");
    if (block->writer < 0 && work->kind != WORK_ALLOCATE) violate("memory is used before it is allocated");
    if (block->writer >= 0 && before->done[block->writer] < block->written && block->writer != stream)
        violate("stream %d uses memory that stream %d wrote (or allocated), in no order", stream,
                block->writer);
    for (int i = 0; i < fake.stream_count && writes; i++)
        if (i != stream && before->done[i] < block->reads.done[i])
            violate("stream %d writes memory (or gives it back) that stream %d read, in no order", stream, i);
    if (*fake.violation) return false;
    if (writes) {
        block->writer = stream;
        block->written = work->place;
    } else {
        block->reads.done[stream] = work->place;
    }
    return true;
}

void block_release(struct block *block) {
    if (!block->released) free(block->memory);
    block->released = true;
}

EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    CALL("cuDeviceGetDefaultMemPool", NEEDS_INIT);
    *pool = &fake.devices[device].pool;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
    CALL("cuMemPoolSetAttribute", NEEDS_INIT);
    if (attribute != CUDA_POOL_RELEASE_THRESHOLD) GIVE(CUDA_ERROR_INVALID_VALUE);
    memcpy(&pool->threshold, value, sizeof pool->threshold);
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
    CALL("cuMemPoolGetAttribute", NEEDS_INIT);
    struct fake_device *device = &fake.devices[pool->device];
    const uint64_t *source = attribute == CUDA_POOL_RESERVED            ? &device->reserved
                             : attribute == CUDA_POOL_USED              ? &device->used
                             : attribute == CUDA_POOL_RELEASE_THRESHOLD ? &pool->threshold
                                                                        : NULL;
    if (!source) GIVE(CUDA_ERROR_INVALID_VALUE);
    memcpy(value, source, sizeof *source);
    GIVE(CUDA_SUCCESS);
}

#ifndef FAKE_CUDA_OLD
EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes) {
    CALL("cuMemPoolTrimTo", NEEDS_INIT);
    (void)bytes;
    fake.devices[pool->device].cached_count = 0;
    fake.devices[pool->device].reserved = fake.devices[pool->device].used;
    GIVE(CUDA_SUCCESS);
}
#endif

EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    CALL("cuMemGetInfo_v2", NEEDS_CONTEXT);
    *free_bytes = fake.memory - current_device()->reserved;
    *total = fake.memory;
    GIVE(CUDA_SUCCESS);
}

/* Takes a block of the pool, or device memory for a new one. */
static bool reserve(struct fake_device *device, size_t bytes) {
    for (int i = 0; i < device->cached_count; i++)
        if (device->cached[i] == bytes) {
            device->cached[i] = device->cached[--device->cached_count];
            return true;
        }
    if (bytes > fake.memory - device->reserved) return false;
    device->reserved += bytes;
    return true;
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream handle) {
    CALL("cuMemAllocAsync", NEEDS_CONTEXT);
    struct CUstream_st *stream = stream_of(handle, "cuMemAllocAsync");
    struct fake_device *device = current_device();
    if (!stream) GIVE(FAKE_INVALID_HANDLE);
    if (!bytes) GIVE(CUDA_ERROR_INVALID_VALUE);
    if (stream->capture) violate("memory is allocated by a recording");
    if (!reserve(device, bytes)) GIVE(CUDA_ERROR_OUT_OF_MEMORY);
    device->used += bytes;
    struct block *block = object_new(KIND_BLOCK, sizeof *block);
    block->memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    block->bytes = bytes;
    block->writer = -1;
    if (!block->memory) abort();
    memset(block->memory, 0xa5, bytes);
    enqueue(stream, WORK_ALLOCATE)->block = block;
    enqueued(stream);
    *address = (CUdeviceptr)(uintptr_t)block->memory;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
    CALL("cuMemFreeAsync", NEEDS_CONTEXT);
    struct CUstream_st *stream = stream_of(handle, "cuMemFreeAsync");
    struct block *block = block_at((void *)(uintptr_t)address);
    if (!stream) GIVE(FAKE_INVALID_HANDLE);
    if (!block || block->memory != (char *)(uintptr_t)address || block->given) {
        violate("cuMemFreeAsync: %p is no block, or was given back", (void *)(uintptr_t)address);
        GIVE(CUDA_ERROR_INVALID_VALUE);
    }
    block->given = true;
    enqueue(stream, WORK_RELEASE)->block = block;
    enqueued(stream);
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *start, size_t *bytes, CUdeviceptr address) {
    CALL("cuMemGetAddressRange_v2", NEEDS_CONTEXT);
    struct block *block = block_at((void *)(uintptr_t)address);
    if (!block) GIVE(FAKE_NOT_FOUND);
    *start = (CUdeviceptr)(uintptr_t)block->memory;
    *bytes = block->bytes;
    GIVE(CUDA_SUCCESS);
}

/* ---- Pinned memory. */

struct pinned *pinned_at(const void *address, size_t bytes) {
    for (struct object *object = fake.objects; object; object = object->next) {
        struct pinned *pinned = (struct pinned *)object;
        if (object->kind == KIND_PINNED && !object->dead && (const char *)address >= pinned->memory &&
            (const char *)address + bytes <= pinned->memory + pinned->bytes)
            return pinned;
    }
    return NULL;
}

EXPORT CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    CALL("cuMemHostAlloc", NEEDS_CONTEXT);
    (void)flags;
    struct pinned *pinned = object_new(KIND_PINNED, sizeof *pinned);
    pinned->memory = malloc(bytes);
    pinned->bytes = bytes;
    if (!pinned->memory) abort();
    *address = pinned->memory;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuMemFreeHost(void *address) {
    CALL("cuMemFreeHost", NEEDS_CONTEXT);
    struct pinned *pinned = pinned_at(address, 1);
    if (!pinned) {
        violate("cuMemFreeHost: %p is not pinned memory", address);
        GIVE(CUDA_ERROR_INVALID_VALUE);
    }
    free(pinned->memory);
    pinned->object.dead = true;
    GIVE(CUDA_SUCCESS);
}

/* ---- Copies and fills. */

static CUresult copy(const char *symbol, CUstream handle, char *to, const char *from, size_t bytes) {
    struct CUstream_st *stream = stream_of(handle, symbol);
    if (!stream) return FAKE_INVALID_HANDLE;
    struct block *target = block_at(to), *source = block_at(from);
    bool leaves = !target && !pinned_at(to, bytes);
    bool comes = !source && !pinned_at(from, bytes);
    if ((target && (target->given || to + bytes > target->memory + target->bytes)) ||
        (source && (source->given || from + bytes > source->memory + source->bytes)) ||
        (!target && !source)) {
        violate("%s: %zu bytes from %p to %p are not within blocks of the GPU", symbol, bytes,
                (const void *)from, (void *)to);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream->capture && (leaves || comes))
        violate("%s: a recording uses memory that is not pinned", symbol);
    struct work *work = enqueue(stream, WORK_COPY);
    work->to = to;
    work->from = from;
    work->bytes = bytes;
    if (comes) {
        work->own = malloc(bytes + 1);
        if (!work->own) abort();
        memcpy(work->own, from, bytes);
        work->from = work->own;
    }
    enqueued(stream);
    if (leaves) {
        run_all(stream);
        clock_join(&fake.host, &stream->clock);
    }
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    CALL("cuMemcpyHtoDAsync_v2", NEEDS_CONTEXT);
    GIVE(copy("cuMemcpyHtoDAsync_v2", stream, (char *)(uintptr_t)to, from, bytes));
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CALL("cuMemcpyDtoHAsync_v2", NEEDS_CONTEXT);
    GIVE(copy("cuMemcpyDtoHAsync_v2", stream, to, (char *)(uintptr_t)from, bytes));
}

EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CALL("cuMemcpyDtoDAsync_v2", NEEDS_CONTEXT);
    struct block *a = block_at((void *)(uintptr_t)to), *b = block_at((void *)(uintptr_t)from);
    if (a && b && a->object.device != b->object.device)
        violate("cuMemcpyDtoDAsync_v2 copies between two devices");
    GIVE(copy("cuMemcpyDtoDAsync_v2", stream, (char *)(uintptr_t)to, (char *)(uintptr_t)from, bytes));
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                                  CUcontext from_context, size_t bytes, CUstream stream) {
    CALL("cuMemcpyPeerAsync", NEEDS_CONTEXT);
    struct block *a = block_at((void *)(uintptr_t)to), *b = block_at((void *)(uintptr_t)from);
    if (!a || !b || a->object.device != to_context->device || b->object.device != from_context->device)
        violate("cuMemcpyPeerAsync: the contexts are not those of the memory");
    GIVE(copy("cuMemcpyPeerAsync", stream, (char *)(uintptr_t)to, (char *)(uintptr_t)from, bytes));
}

static CUresult fill(const char *symbol, CUdeviceptr to, uint32_t value, uint32_t width, size_t count,
                     CUstream handle) {
    struct CUstream_st *stream = stream_of(handle, symbol);
    struct block *block = block_at((void *)(uintptr_t)to);
    if (!stream) return FAKE_INVALID_HANDLE;
    if (!block || block->given || to % width ||
        (char *)(uintptr_t)to + width * count > block->memory + block->bytes) {
        violate("%s: %zu times %u bytes at %p are not within a block of the GPU", symbol, count, width,
                (void *)(uintptr_t)to);
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct work *work = enqueue(stream, WORK_FILL);
    work->to = (char *)(uintptr_t)to;
    work->value = value;
    work->width = width;
    work->bytes = width * count;
    enqueued(stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
    CALL("cuMemsetD8Async", NEEDS_CONTEXT);
    GIVE(fill("cuMemsetD8Async", to, value, 1, count, stream));
}

EXPORT CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
    CALL("cuMemsetD16Async", NEEDS_CONTEXT);
    GIVE(fill("cuMemsetD16Async", to, value, 2, count, stream));
}

EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
    CALL("cuMemsetD32Async", NEEDS_CONTEXT);
    GIVE(fill("cuMemsetD32Async", to, value, 4, count, stream));
}
