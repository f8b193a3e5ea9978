/* The GPUs of this machine: their properties, primary contexts and state. */
#ifndef SMELT_DEVICE_CUDA_CONTEXT_H
#define SMELT_DEVICE_CUDA_CONTEXT_H

#include "array/array.h"
#include "device/cuda/staging.h"
#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>

#define CUDA_MOST_DEVICES (MOST_DEVICES - 2)

struct cuda_stream;
struct cuda_use;

/* One GPU. Never freed. */
struct cuda_gpu {
    struct device device; /* name "cuda:0", target, limits: its row in the table of devices */
    struct memory_space space;
    const struct cuda_driver *driver;
    int ordinal;
    CUdevice handle;
    char name[16], description[160];
    int capability; /* 90 for 9.0 */
    bool early;     /* launches may start before the previous one on their stream has ended */
    uint64_t memory_bytes;
    pthread_rwlock_t use; /* read from cuda_enter to cuda_leave; written by a reset */
    pthread_mutex_t opening;
    pthread_mutex_t blocks_lock;
    struct cuda_use *blocks; /* the blocks of the pool that arrays hold */
    pthread_mutex_t lock;    /* of `loss`, the list of streams and their number */
    atomic_bool opened;      /* context, pool and default stream exist */
    _Atomic uint32_t epoch;  /* counts resets: what was made in an earlier one is gone (modules, memory,
                                streams) */
    atomic_bool lost;        /* every call fails with `loss`, until it is reset */
    char loss[768];          /* the sentence of how it was lost, written before `lost` is set */
    bool lost_for_good;      /* a reset did not help; written while nothing uses the GPU */
    CUcontext context;
    CUmemoryPool pool;
    struct cuda_stream *default_stream;
    struct cuda_stream *streams; /* all that are in use */
    uint32_t streams_made;
    struct cuda_module *left_loaded; /* released during a capture: module.h */
    atomic_bool left_running;        /* kernels may run on streams that have left the list */
    struct cuda_staging staging;
};

/* choose.c — gpu_target_of(capability), or the lower target that SMELT_CUDA_TARGET names. */
const char *cuda_target_chosen(int capability);
/* … whether launches may start before the previous one on their stream has ended (SMELT_CUDA_EARLY). */
bool cuda_early_chosen(void);

/* GPUs that can be used, found at the first call; *count 0 and a reason (a sentence without its end) if there
 * are none. */
struct cuda_gpu *cuda_gpus(int *count, const char **reason);

/* The GPU behind a device of the table; NULL for others. */
struct cuda_gpu *cuda_gpu_of(const struct device *device);

/* The GPU whose memory it is. */
static inline struct cuda_gpu *cuda_gpu_of_space(const struct memory_space *space) {
    return (struct cuda_gpu *)((char *)space - offsetof(struct cuda_gpu, space));
}

/* Makes the GPU's context the calling thread's for the calls that follow, opening it at the first.
 * DEVICE_LOST after a fault, until it is reset; NO_DEVICE in a child of the process that opened it.
 * cuda_leave restores the thread's own context: callers may also use CUDA. Pairs may be nested. Until
 * cuda_leave the GPU is not reset. */
smelt_status cuda_enter(struct cuda_gpu *gpu, CUcontext *previous);
void cuda_leave(struct cuda_gpu *gpu, CUcontext previous);

/* The same for two GPUs, of which `gpu` is the current one then; they may be one. */
struct cuda_entry {
    struct cuda_gpu *gpus[3];
    CUcontext previous[3];
    int count;
};
smelt_status cuda_enter_both(struct cuda_gpu *gpu, struct cuda_gpu *other, struct cuda_entry *entry);
void cuda_leave_both(struct cuda_entry *entry);

/* Whether cuda_enter would succeed, without calls of the driver. */
bool cuda_is_ready(struct cuda_gpu *gpu);

/* The same, to release objects of `epoch`: false, without touching the thread's message, if a reset has
 * destroyed them. */
bool cuda_enter_release(struct cuda_gpu *gpu, uint32_t epoch, CUcontext *previous);

/* Records what a failed release means for the GPU; keeps the thread's message. */
void cuda_note(struct cuda_gpu *gpu, CUresult result);

/* The status and sentence of a driver call that failed: `what` is its subject, as a noun ("kernel 'x'", "the
 * copy of 12 bytes"). OUT_OF_MEMORY; LIMIT for launches that need too many resources; FAULT for errors of a
 * kernel, with the names of those that were running: the GPU is then lost; INTERNAL for others. Names the
 * driver's error. */
smelt_status cuda_fail(struct cuda_gpu *gpu, CUresult result, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

#define CUDA_TRY(gpu, call, ...)                                                          \
    do {                                                                                  \
        CUresult cuda_result = (call);                                                    \
        if (cuda_result != CUDA_SUCCESS) return cuda_fail(gpu, cuda_result, __VA_ARGS__); \
    } while (0)

#endif
