/* The GPUs of this machine: what they are, their primary contexts, and whether they still work. */
#ifndef SMELT_CUDA_CONTEXT_H
#define SMELT_CUDA_CONTEXT_H

#include "cuda/driver.h"
#include "kernel/device.h"

#include <pthread.h>
#include <stdatomic.h>

#define CUDA_MOST_DEVICES 16

struct cuda_stream;

/* One GPU. Never freed. */
struct cuda_gpu {
    struct device device; /* name "cuda:0", target, limits: what the table of devices holds */
    const struct cuda_driver *driver;
    int ordinal;
    CUdevice handle;
    char name[16], description[160];
    int capability; /* 90 for 9.0 */
    int multiprocessors;
    uint64_t memory_bytes;
    pthread_mutex_t lock; /* to open, lose and reset it */
    atomic_bool opened;
    _Atomic uint32_t
        epoch;       /* counts resets: what was made in an earlier one is gone (modules, memory, streams) */
    atomic_int lost; /* a smelt_status that every call gives; 0: it works */
    char loss[512];  /* the sentence of how it was lost */
    CUcontext context;
    struct cuda_stream *default_stream;
};

/* GPUs that can be used, found at the first call; *count 0 and a reason if there are none. */
struct cuda_gpu *cuda_gpus(int *count, const char **reason);

/* The GPU behind a device of the table; NULL for others. */
struct cuda_gpu *cuda_gpu_of(const struct device *device);

/* Makes the GPU's context the calling thread's for the calls that follow, opening it at the first.
 * DEVICE_LOST after a fault, until it is reset. The thread's own context comes back with cuda_leave: callers
 * may use CUDA, too. */
smelt_status cuda_enter(struct cuda_gpu *gpu, CUcontext *previous);
void cuda_leave(struct cuda_gpu *gpu, CUcontext previous);

/* The status and sentence of a driver call that failed: `what` was being done ("kernel 'x'", "an array of
 * …"). OUT_OF_MEMORY; FAULT for errors a kernel made, after which the GPU is lost; INTERNAL for others. Names
 * the driver's error. */
smelt_status cuda_fail(struct cuda_gpu *gpu, CUresult result, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

#define CUDA_TRY(gpu, call, ...)                                                          \
    do {                                                                                  \
        CUresult cuda_result = (call);                                                    \
        if (cuda_result != CUDA_SUCCESS) return cuda_fail(gpu, cuda_result, __VA_ARGS__); \
    } while (0)

#endif
