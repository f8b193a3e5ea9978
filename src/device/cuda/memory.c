#include "device/cuda/memory.h"
#include "device/cuda/recording.h"

#include <stdlib.h>

/* ---- Blocks. */

smelt_status cuda_memory_free(struct cuda_gpu *gpu, uint64_t *free_bytes, uint64_t *total) {
    size_t unreserved = 0, all = 0;
    uint64_t reserved = 0, used = 0;
    CUresult result = gpu->driver->memory_info(&unreserved, &all);
    if (result == CUDA_SUCCESS) result = gpu->driver->pool_get(gpu->pool, CUDA_POOL_RESERVED, &reserved);
    if (result == CUDA_SUCCESS) result = gpu->driver->pool_get(gpu->pool, CUDA_POOL_USED, &used);
    if (result != CUDA_SUCCESS) return cuda_fail(gpu, result, "the amount of memory");
    *free_bytes = unreserved + (reserved - used);
    *total = all;
    return SMELT_OK;
}

/* Where there is no room, the pool may hold blocks of other sizes, and blocks that are given back in the
 * order of streams that have not come so far: everything is waited for, and the pool emptied. *full: still
 * none. */
static smelt_status allocate(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address, bool *full) {
    struct cuda_gpu *gpu = stream->gpu;
    *full = false;
    CUresult result = gpu->driver->allocate(address, bytes, stream->handle);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        TRY(cuda_finish_all(gpu));
        CUDA_TRY(gpu, gpu->driver->pool_trim(gpu->pool, 0), "the pool of memory");
        result = gpu->driver->allocate(address, bytes, stream->handle);
    }
    *full = result == CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS && !*full) return cuda_fail(gpu, result, "a block of %zu bytes", bytes);
    return SMELT_OK;
}

/* ---- Memory of a captured stream's owner. */

static bool find_lender(struct cuda_stream *stream, smelt_stream_memory *memory) {
    pthread_mutex_lock(&stream->lock);
    *memory = stream->memory;
    pthread_mutex_unlock(&stream->lock);
    return memory->take && cuda_stream_is_captured(stream);
}

struct lent {
    smelt_stream_memory memory;
    void *address;
};

static void give_back(void *context) {
    struct lent *lent = context;
    lent->memory.give(lent->memory.context, lent->address);
    free(lent);
}

static smelt_status borrow(struct cuda_stream *stream, const smelt_stream_memory *memory, size_t bytes,
                           CUdeviceptr *address) {
    void *taken = memory->take(memory->context, stream->handle, bytes ? bytes : 1);
    if (!taken)
        return fail(SMELT_ERROR_OUT_OF_MEMORY,
                    "device '%s': the owner of the captured stream has no block of %zu bytes",
                    stream->gpu->name, bytes);
    *address = (CUdeviceptr)(uintptr_t)taken;
    return SMELT_OK;
}

smelt_status cuda_scratch_take(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address) {
    struct cuda_gpu *gpu = stream->gpu;
    uint64_t free_bytes, total;
    bool full;
    smelt_stream_memory lender;
    if (cuda_stream_records(stream)) return cuda_recording_block(stream, bytes, address);
    if (find_lender(stream, &lender)) return borrow(stream, &lender, bytes, address);
    TRY(allocate(stream, bytes ? bytes : 1, address, &full));
    if (!full) return SMELT_OK;
    TRY(cuda_memory_free(gpu, &free_bytes, &total));
    return fail(
        SMELT_ERROR_OUT_OF_MEMORY,
        "a launch on device '%s' needs a block of %zu bytes: out of memory, %llu of %llu bytes are free",
        gpu->name, bytes, (unsigned long long)free_bytes, (unsigned long long)total);
}

bool cuda_copies_take(struct cuda_stream *stream, size_t bytes, CUdeviceptr *address) {
    smelt_stream_memory lender;
    if (cuda_stream_records(stream)) return cuda_recording_copies(stream, bytes, address);
    if (cuda_stream_is_captured(stream)) {
        /* A graph of the stream's owner has memory of the owner's alone. */
        void *lent = find_lender(stream, &lender) ? lender.take(lender.context, stream->handle, bytes) : NULL;
        *address = (CUdeviceptr)(uintptr_t)lent;
        return lent;
    }
    return stream->gpu->driver->allocate(address, bytes, stream->handle) == CUDA_SUCCESS;
}

void cuda_scratch_give(struct cuda_stream *stream, CUdeviceptr address) {
    smelt_stream_memory lender;
    if (cuda_stream_records(stream)) return;
    if (find_lender(stream, &lender))
        lender.give(lender.context, (void *)(uintptr_t)address);
    else
        cuda_note(stream->gpu, stream->gpu->driver->release(address, stream->handle));
}

/* ---- Arrays. */

static struct cuda_use *use_create(struct cuda_gpu *gpu) {
    struct cuda_use *use = malloc(sizeof *use);
    if (!use) return NULL;
    *use = (struct cuda_use){.gpu = gpu, .epoch = atomic_load(&gpu->epoch)};
    pthread_mutex_init(&use->lock, NULL);
    return use;
}

static void list_block(struct cuda_use *use, CUdeviceptr block) {
    struct cuda_gpu *gpu = use->gpu;
    use->block = block;
    pthread_mutex_lock(&gpu->blocks_lock);
    use->next = gpu->blocks;
    use->link = &gpu->blocks;
    if (use->next) use->next->link = &use->next;
    gpu->blocks = use;
    pthread_mutex_unlock(&gpu->blocks_lock);
}

static void unlist_block(struct cuda_use *use) {
    struct cuda_gpu *gpu = use->gpu;
    pthread_mutex_lock(&gpu->blocks_lock);
    if (use->link) *use->link = use->next;
    if (use->link && use->next) use->next->link = use->link;
    use->link = NULL;
    pthread_mutex_unlock(&gpu->blocks_lock);
}

void cuda_memory_give_all(struct cuda_gpu *gpu) {
    bool lost = atomic_load(&gpu->lost);
    if (!lost) gpu->driver->context_wait();
    pthread_mutex_lock(&gpu->blocks_lock);
    for (struct cuda_use *use = gpu->blocks; use; use = use->next) {
        use->link = NULL;
        if (!lost) gpu->driver->release(use->block, gpu->default_stream->handle);
    }
    gpu->blocks = NULL;
    pthread_mutex_unlock(&gpu->blocks_lock);
    if (lost) return;
    gpu->driver->context_wait();
    gpu->driver->pool_trim(gpu->pool, 0);
}

/* An array over a block that `stream` writes first. NULL: no memory on the host. */
static smelt_array *array_over_block(struct cuda_stream *stream, smelt_dtype dtype, const smelt_shape *shape,
                                     int64_t size, CUdeviceptr address) {
    struct memory *memory = memory_new();
    struct cuda_use *use = memory ? use_create(stream->gpu) : NULL;
    smelt_array *made = use ? array_over(memory, dtype, shape, NULL, size, (char *)(uintptr_t)address) : NULL;
    if (!made) {
        free(use);
        free(memory);
        return NULL;
    }
    memory->start = made->data;
    memory->bytes = (size_t)size * smelt_dtype_bytes(dtype);
    memory->space = &stream->gpu->space;
    memory->use = use;
    use->writer = cuda_stream_retain(stream);
    return made;
}

static smelt_status create_over_lent(struct cuda_stream *stream, const smelt_stream_memory *lender,
                                     smelt_dtype dtype, const smelt_shape *shape, int64_t size,
                                     smelt_array **array) {
    CUdeviceptr address;
    TRY(borrow(stream, lender, (size_t)size * smelt_dtype_bytes(dtype), &address));
    struct lent *lent = malloc(sizeof *lent);
    smelt_array *made = lent ? array_over_block(stream, dtype, shape, size, address) : NULL;
    if (!made) {
        lender->give(lender->context, (void *)(uintptr_t)address);
        free(lent);
        return fail_out_of_memory(sizeof *made);
    }
    *lent = (struct lent){*lender, (void *)(uintptr_t)address};
    made->memory->borrowed = true;
    made->memory->release = give_back;
    made->memory->context = lent;
    ((struct cuda_use *)made->memory->use)->home = cuda_stream_retain(stream);
    *array = made;
    return SMELT_OK;
}

smelt_status cuda_array_create(struct cuda_gpu *gpu, struct cuda_stream *stream, smelt_dtype dtype,
                               const smelt_shape *shape, smelt_array **array) {
    int64_t size;
    CUdeviceptr address;
    bool full;
    TRY(shape_check("array", dtype, shape, &size));
    size_t bytes = (size_t)size * smelt_dtype_bytes(dtype);
    smelt_stream_memory lender;
    /* A recording's allocations exist before its first replay. */
    if (cuda_stream_records(stream)) stream = gpu->default_stream;
    if (find_lender(stream, &lender)) return create_over_lent(stream, &lender, dtype, shape, size, array);
    /* An empty array still gets an address. */
    TRY(allocate(stream, bytes ? bytes : 1, &address, &full));
    if (full) {
        uint64_t free_bytes, total;
        TRY(cuda_memory_free(gpu, &free_bytes, &total));
        return fail(SMELT_ERROR_OUT_OF_MEMORY,
                    "an array of shape %s of %s needs %zu bytes on device '%s': out of memory, %llu of %llu "
                    "bytes are free",
                    shape_print(shape).text, smelt_dtype_name(dtype), bytes, gpu->name,
                    (unsigned long long)free_bytes, (unsigned long long)total);
    }
    smelt_array *made = array_over_block(stream, dtype, shape, size, address);
    if (!made) {
        cuda_note(gpu, gpu->driver->release(address, stream->handle));
        return fail_out_of_memory(sizeof *made);
    }
    list_block(made->memory->use, address);
    *array = made;
    return SMELT_OK;
}

smelt_status cuda_memory_adopt(const struct memory_space *space, struct memory *memory) {
    memory->use = use_create(cuda_gpu_of_space(space));
    if (!memory->use) return fail_out_of_memory(sizeof(struct cuda_use));
    memory->space = space;
    return SMELT_OK;
}

/* ---- The order of uses. */

static void forget_readers(struct cuda_use *use) {
    for (int i = 0; i < use->reader_count; i++) cuda_stream_release(use->readers[i]);
    use->reader_count = 0;
}

static smelt_status follow_readers(struct cuda_use *use, struct cuda_stream *stream) {
    for (int i = 0; i < use->reader_count; i++) TRY(cuda_stream_follow(stream, use->readers[i]));
    return SMELT_OK;
}

static smelt_status note_write(struct cuda_use *use, struct cuda_stream *stream) {
    if (use->writer) TRY(cuda_stream_follow(stream, use->writer));
    TRY(follow_readers(use, stream));
    forget_readers(use);
    if (use->writer == stream) return SMELT_OK;
    if (use->writer) cuda_stream_release(use->writer);
    use->writer = cuda_stream_retain(stream);
    return SMELT_OK;
}

static smelt_status note_read(struct cuda_use *use, struct cuda_stream *stream) {
    if (use->writer == stream) return SMELT_OK;
    for (int i = 0; i < use->reader_count; i++)
        if (use->readers[i] == stream) return SMELT_OK;
    if (use->writer) TRY(cuda_stream_follow(stream, use->writer));
    if (use->reader_count == CUDA_READERS) {
        /* This one comes after all of them, and so represents them. */
        TRY(follow_readers(use, stream));
        forget_readers(use);
    }
    use->readers[use->reader_count++] = cuda_stream_retain(stream);
    return SMELT_OK;
}

smelt_status cuda_memory_use(struct memory *memory, struct cuda_stream *stream, bool writes) {
    struct cuda_use *use = memory->use;
    if (use->epoch != atomic_load(&use->gpu->epoch))
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "array: it was created before device '%s' was reset, and can only be released",
                    use->gpu->name);
    if (cuda_stream_records(stream)) return cuda_recording_use(stream, memory, writes);
    pthread_mutex_lock(&use->lock);
    smelt_status status = writes ? note_write(use, stream) : note_read(use, stream);
    pthread_mutex_unlock(&use->lock);
    return status;
}

smelt_status cuda_memory_is_ready(struct memory *memory, bool *ready) {
    struct cuda_use *use = memory->use;
    CUcontext previous;
    TRY(cuda_enter(use->gpu, &previous));
    pthread_mutex_lock(&use->lock);
    struct cuda_stream *writer = use->writer ? cuda_stream_retain(use->writer) : NULL;
    pthread_mutex_unlock(&use->lock);
    smelt_status status = SMELT_OK;
    if (use->epoch != atomic_load(&use->gpu->epoch))
        status = fail(SMELT_ERROR_INVALID_ARGUMENT,
                      "array: it was created before device '%s' was reset, and can only be released",
                      use->gpu->name);
    /* The replays of a recording stream write this, on other streams; and graphs what is captured. */
    else if (writer && writer->epoch == use->epoch && !cuda_stream_records(writer) &&
             !cuda_stream_is_captured_now(writer))
        status = cuda_stream_query(writer, ready);
    else
        *ready = true;
    if (writer) cuda_stream_release(writer);
    cuda_leave(use->gpu, previous);
    return status;
}

/* With the lock held. */
static void set_home(struct cuda_use *use, struct cuda_stream *stream) {
    if (use->home == stream) return;
    if (use->home) cuda_stream_release(use->home);
    use->home = cuda_stream_retain(stream);
}

smelt_status cuda_memory_order(struct memory *memory, struct cuda_stream *stream, bool home) {
    struct cuda_use *use = memory->use;
    TRY(cuda_memory_use(memory, stream, true));
    if (!home) return SMELT_OK;
    pthread_mutex_lock(&use->lock);
    set_home(use, stream);
    pthread_mutex_unlock(&use->lock);
    return SMELT_OK;
}

bool cuda_memory_order_alone(struct memory *memory, struct cuda_stream *stream, bool home) {
    struct cuda_use *use = memory->use;
    uint32_t epoch = atomic_load(&use->gpu->epoch);
    if (use->epoch != epoch || stream->epoch != epoch || cuda_stream_records(stream)) return false;
    pthread_mutex_lock(&use->lock);
    /* Releasing another home may need the driver. */
    bool alone = (!use->writer || use->writer == stream) && !use->reader_count &&
                 !(home && use->home && use->home != stream);
    if (alone && !use->writer) use->writer = cuda_stream_retain(stream);
    if (alone && home) set_home(use, stream);
    pthread_mutex_unlock(&use->lock);
    return alone;
}

/* ---- Release. */

static void wait_for_user(struct cuda_stream *stream) {
    const struct cuda_driver *driver = stream->gpu->driver;
    CUcontext previous;
    if (!cuda_enter_release(stream->gpu, stream->epoch, &previous)) return;
    pthread_mutex_lock(&stream->lock);
    bool marked = stream->closed || cuda_stream_records(stream);
    bool captured = !stream->closed && cuda_stream_is_captured(stream);
    pthread_mutex_unlock(&stream->lock);
    if (!captured)
        cuda_note(stream->gpu,
                  marked ? driver->event_wait(stream->marker) : driver->stream_wait(stream->handle));
    cuda_leave(stream->gpu, previous);
}

/* The memory is its owner's again when nothing that was enqueued uses it any more. */
static void wait_for_users(struct cuda_use *use) {
    if (use->writer) wait_for_user(use->writer);
    for (int i = 0; i < use->reader_count; i++) wait_for_user(use->readers[i]);
}

/* The owner's stream continues after them. */
static void hand_over(struct cuda_use *use) {
    struct cuda_stream *home = use->home;
    bool open = true;
    CUresult result = CUDA_SUCCESS;
    if (use->writer) result = cuda_stream_follow_if_open(home, use->writer, &open);
    for (int i = 0; i < use->reader_count && open && result == CUDA_SUCCESS; i++)
        result = cuda_stream_follow_if_open(home, use->readers[i], &open);
    cuda_note(use->gpu, result);
    if (!open || result != CUDA_SUCCESS) wait_for_users(use);
}

/* In the order of the one stream that used it: what is allocated there next can be the same block without
 * anybody's waiting. */
static bool release_on_writer(struct cuda_use *use, CUdeviceptr address) {
    struct cuda_stream *writer = use->writer;
    if (!writer || use->reader_count || writer->gpu != use->gpu || writer->epoch != use->epoch) return false;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&writer->lock); /* until then nobody closes it */
    bool open = !writer->closed && !cuda_stream_records(writer);
    if (open) result = use->gpu->driver->release(address, writer->handle);
    pthread_mutex_unlock(&writer->lock);
    cuda_note(use->gpu, result);
    return open;
}

/* In the order of the GPU's own stream, after all that used it. */
static void release_block(struct cuda_use *use, CUdeviceptr address) {
    struct cuda_gpu *gpu = use->gpu;
    struct cuda_stream *stream = gpu->default_stream;
    CUresult result = CUDA_SUCCESS;
    if (release_on_writer(use, address)) return;
    if (use->writer) result = cuda_stream_follow_quietly(stream, use->writer);
    for (int i = 0; i < use->reader_count && result == CUDA_SUCCESS; i++)
        result = cuda_stream_follow_quietly(stream, use->readers[i]);
    cuda_note(gpu, result);
    if (result != CUDA_SUCCESS) wait_for_users(use);
    cuda_note(gpu, gpu->driver->release(address, stream->handle));
}

/* Whether its owner's stream alone used borrowed memory, and so need not be told of its release. */
static bool stays_in_order(const struct memory *memory) {
    const struct cuda_use *use = memory->use;
    return memory->borrowed && use->home && !use->reader_count && (!use->writer || use->writer == use->home);
}

void cuda_memory_release(struct memory *memory) {
    struct cuda_use *use = memory->use;
    CUcontext previous;
    if (!memory->borrowed) unlist_block(use);
    if (!stays_in_order(memory) && cuda_enter_release(use->gpu, use->epoch, &previous)) {
        if (!memory->borrowed)
            release_block(use, (CUdeviceptr)(uintptr_t)memory->start);
        else if (memory->release && use->home)
            hand_over(use);
        else if (memory->release)
            wait_for_users(use);
        cuda_leave(use->gpu, previous);
    }
    if (use->writer) cuda_stream_release(use->writer);
    if (use->home) cuda_stream_release(use->home);
    forget_readers(use);
    pthread_mutex_destroy(&use->lock);
    free(use);
}
