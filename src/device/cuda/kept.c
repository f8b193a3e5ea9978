/* Blocks with bytes of launches that graphs of the stream's owner contain (kept.h). */
#include "device/cuda/kept.h"

#include <stdlib.h>
#include <string.h>

struct kept {
    struct kept *next;
    struct cuda_gpu *gpu;
    uint32_t epoch;
    smelt_array *array;
    size_t size;
    unsigned char bytes[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *all;

static struct kept *find(struct cuda_gpu *gpu, const void *bytes, size_t size) {
    struct kept *k = all;
    while (k && !(k->gpu == gpu && k->epoch == atomic_load(&gpu->epoch) && k->size == size &&
                  memcmp(k->bytes, bytes, size) == 0))
        k = k->next;
    return k;
}

static smelt_status add(struct cuda_gpu *gpu, const void *bytes, size_t size, struct kept **made) {
    struct cuda_stream *stream = gpu->default_stream;
    struct kept *k = malloc(sizeof *k + size);
    if (!k) return fail_out_of_memory(sizeof *k + size);
    *k = (struct kept){.next = all, .gpu = gpu, .epoch = atomic_load(&gpu->epoch), .size = size};
    memcpy(k->bytes, bytes, size);
    smelt_shape shape = {1, {(int64_t)size}};
    smelt_status status = cuda_array_create(gpu, stream, SMELT_UINT8, &shape, &k->array);
    if (status == SMELT_OK) {
        status = cuda_copy_in(stream, (CUdeviceptr)(uintptr_t)k->array->data, bytes, size);
        if (status == SMELT_OK) status = cuda_stream_finish(stream);
        if (status != SMELT_OK) smelt_array_release(k->array);
    }
    if (status != SMELT_OK) {
        free(k);
        return status;
    }
    *made = all = k;
    return SMELT_OK;
}

smelt_status cuda_kept_bytes(struct cuda_gpu *gpu, const void *bytes, size_t size, CUdeviceptr *address) {
    smelt_status status = SMELT_OK;
    pthread_mutex_lock(&lock);
    struct kept *k = find(gpu, bytes, size);
    if (!k) status = add(gpu, bytes, size, &k);
    if (status == SMELT_OK) *address = (CUdeviceptr)(uintptr_t)k->array->data;
    pthread_mutex_unlock(&lock);
    return status;
}
