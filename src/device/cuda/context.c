#include "base/trace.h"
#include "device/cuda/context.h"
#include "device/cuda/launch.h"
#include "device/cuda/memory.h"
#include "device/cuda/space.h"
#include "device/cuda/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Processes. CUDA works in the one that started it: not in children it forks off, which must not come
 * to wait for locks of threads that they do not have. */

static atomic_bool started, forked;

static void in_child(void) {
    if (atomic_load(&started)) atomic_store(&forked, true);
}

/* ---- Finding. */

static smelt_status reset(const struct device *device);

static struct cuda_gpu gpus[CUDA_MOST_DEVICES];
static int gpu_count;
static char none_reason[1200];

static void describe_failure(const struct cuda_driver *driver, CUresult result, char *text, size_t size) {
    const char *name = NULL, *meaning = NULL;
    driver->error_name(result, &name);
    driver->error_text(result, &meaning);
    if (!name)
        snprintf(text, size, "error %d", result);
    else
        snprintf(text, size, "%s (%s)", name, meaning ? meaning : "not explained");
}

static const char *read_attributes(struct cuda_gpu *gpu, CUdevice handle) {
    const struct cuda_driver *driver = gpu->driver;
    int major = 0, minor = 0, shared = 0, threads = 0, multiprocessors = 0, pools = 0;
    size_t bytes = 0;
    char name[100] = "";
    const struct {
        int attribute, *value;
    } wanted[] = {{CUDA_COMPUTE_CAPABILITY_MAJOR, &major},           {CUDA_COMPUTE_CAPABILITY_MINOR, &minor},
                  {CUDA_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared}, {CUDA_MAX_THREADS_PER_BLOCK, &threads},
                  {CUDA_MULTIPROCESSOR_COUNT, &multiprocessors},     {CUDA_MEMORY_POOLS_SUPPORTED, &pools}};
    static char reason[300];
    CUresult result = CUDA_SUCCESS;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && result == CUDA_SUCCESS; i++)
        result = driver->device_attribute(wanted[i].value, wanted[i].attribute, handle);
    if (result == CUDA_SUCCESS) result = driver->device_name(name, sizeof name, handle);
    if (result == CUDA_SUCCESS) result = driver->device_memory(&bytes, handle);
    if (result != CUDA_SUCCESS) {
        char failure[200];
        describe_failure(driver, result, failure, sizeof failure);
        snprintf(reason, sizeof reason, "GPU %d cannot be queried: %s", gpu->ordinal, failure);
        return reason;
    }
    gpu->capability = 10 * major + minor;
    gpu->memory_bytes = bytes;
    gpu->device.target = cuda_target_chosen(gpu->capability);
    gpu->early = cuda_early_chosen();
    if (!gpu->device.target) {
        snprintf(reason, sizeof reason, "GPU %d, %s, has compute capability %d.%d; 8.0 or higher is needed",
                 gpu->ordinal, name, major, minor);
        return reason;
    }
    if (!pools) {
        snprintf(reason, sizeof reason, "GPU %d, %s, does not support memory pools in this configuration",
                 gpu->ordinal, name);
        return reason;
    }
    gpu->device.threadgroup_limit = (uint64_t)shared;
    gpu->device.thread_limit = threads < 1024 ? (uint32_t)threads : 1024;
    gpu->device.multiprocessors = (uint32_t)multiprocessors;
    snprintf(gpu->name, sizeof gpu->name, "cuda:%d", gpu->ordinal);
    snprintf(gpu->description, sizeof gpu->description,
             "%s, compute capability %d.%d, %d multiprocessors, %.1f GiB", name, major, minor,
             multiprocessors, (double)bytes / (1 << 30));
    return NULL;
}

static int driver_version(const struct device *device) {
    int version = 0;
    const struct cuda_driver *driver = cuda_gpu_of(device)->driver;
    return driver->driver_version(&version) == CUDA_SUCCESS ? version : 0;
}

/* Fills the next entry; the reason why it cannot be used, or NULL. */
static const char *add_gpu(const struct cuda_driver *driver, int ordinal) {
    struct cuda_gpu *gpu = &gpus[gpu_count];
    memset(gpu, 0, sizeof *gpu);
    gpu->driver = driver;
    gpu->ordinal = ordinal;
    if (driver->device_get(&gpu->handle, ordinal) != CUDA_SUCCESS)
        return "the driver gives no handle of the GPU";
    const char *reason = read_attributes(gpu, gpu->handle);
    if (reason) return reason;
    pthread_rwlock_init(&gpu->use, NULL);
    pthread_mutex_init(&gpu->opening, NULL);
    pthread_mutex_init(&gpu->blocks_lock, NULL);
    pthread_mutex_init(&gpu->lock, NULL);
    cuda_staging_open(&gpu->staging);
    gpu->device.name = gpu->name;
    gpu->device.description = gpu->description;
    gpu->device.engine = ENGINE_PTX;
    gpu->device.tests = true;
    cuda_device_functions(&gpu->device);
    cuda_space_functions(gpu);
    gpu->device.streams = &cuda_streams;
    gpu->device.events = &cuda_events;
    gpu->device.recordings = &cuda_recordings;
    gpu->device.wait = cuda_wait;
    gpu->device.reset = reset;
    gpu->device.driver_version = driver_version;
    gpu_count++;
    return NULL;
}

static void find(void) {
    const char *reason;
    pthread_atfork(NULL, NULL, in_child);
    const struct cuda_driver *driver = cuda_driver(&reason);
    if (!driver) {
        snprintf(none_reason, sizeof none_reason, "%s", reason);
        return;
    }
    int count = 0;
    char failure[200];
    atomic_store(&started, true);
    CUresult result = driver->init(0);
    if (result == CUDA_SUCCESS) result = driver->device_count(&count);
    if (result != CUDA_SUCCESS) {
        describe_failure(driver, result, failure, sizeof failure);
        snprintf(none_reason, sizeof none_reason, "the driver cannot be initialised: %s", failure);
        return;
    }
    if (!count) snprintf(none_reason, sizeof none_reason, "the driver finds no GPU");
    for (int i = 0; i < count && gpu_count < CUDA_MOST_DEVICES; i++) {
        reason = add_gpu(driver, i);
        if (reason && !*none_reason) snprintf(none_reason, sizeof none_reason, "%s", reason);
    }
}

struct cuda_gpu *cuda_gpus(int *count, const char **reason) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find);
    *count = gpu_count;
    *reason = none_reason;
    return gpus;
}

struct cuda_gpu *cuda_gpu_of(const struct device *device) {
    const char *address = (const char *)device;
    if (address < (const char *)gpus || address >= (const char *)(gpus + CUDA_MOST_DEVICES)) return NULL;
    return (struct cuda_gpu *)device;
}

/* ---- Failures. */

/* What kernels did that end with these errors; the driver gives them from then on, whatever is asked of it.
 */
static const struct {
    CUresult result;
    const char *deed;
} faults[] = {
    {CUDA_ERROR_ILLEGAL_ADDRESS, "accessed invalid memory"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "accessed memory at a misaligned address"},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, "accessed memory through an address of another space"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "ran longer than the driver allows"},
    {CUDA_ERROR_ASSERT, "ended itself"},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, "overflowed its stack"},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, "executed an illegal instruction"},
    {CUDA_ERROR_INVALID_PC, "jumped to an invalid address"},
    {CUDA_ERROR_LAUNCH_FAILED, "failed"},
};

static const char *fault_deed(CUresult result) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (faults[i].result == result) return faults[i].deed;
    return NULL;
}

/* The GPU failed by itself, or its context was destroyed by someone else in the process. */
static bool is_loss(CUresult result) {
    return result == CUDA_ERROR_ECC_UNCORRECTABLE || result == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
           result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT ||
           result == CUDA_ERROR_DEINITIALIZED || result == CUDA_ERROR_NOT_INITIALIZED;
}

/* Marks the GPU as lost; false if it was. The sentence is kept for all later calls. */
static bool lose(struct cuda_gpu *gpu, CUresult result) {
    char failure[200], kernels[400] = "";
    const char *deed = fault_deed(result);
    describe_failure(gpu->driver, result, failure, sizeof failure);
    pthread_mutex_lock(&gpu->lock);
    bool first = !atomic_load(&gpu->lost);
    if (first) {
        int count = cuda_stream_suspects(gpu, kernels, sizeof kernels);
        if (!deed)
            snprintf(gpu->loss, sizeof gpu->loss, "device '%s' failed: %s", gpu->name, failure);
        else
            snprintf(gpu->loss, sizeof gpu->loss, "%s on device '%s' %s: %s",
                     count ? kernels : "a kernel that smelt did not launch", gpu->name, deed, failure);
        atomic_store_explicit(&gpu->lost, true, memory_order_release);
    }
    pthread_mutex_unlock(&gpu->lock);
    return first;
}

static smelt_status fail_lost(struct cuda_gpu *gpu) {
    if (gpu->lost_for_good)
        return fail(SMELT_ERROR_DEVICE_LOST,
                    "device '%s' is lost, and the driver gives this process no new context on it; start a "
                    "new process: %s",
                    gpu->name, gpu->loss);
    return fail(SMELT_ERROR_DEVICE_LOST,
                "device '%s' is lost; start a new process, or try smelt_device_reset, which destroys "
                "everything on it: %s",
                gpu->name, gpu->loss);
}

smelt_status cuda_fail(struct cuda_gpu *gpu, CUresult result, const char *what, ...) {
    char subject[700], failure[200];
    va_list arguments;
    va_start(arguments, what);
    vsnprintf(subject, sizeof subject, what, arguments);
    va_end(arguments);
    if (fault_deed(result) || is_loss(result)) {
        bool first = lose(gpu, result);
        if (!first || !fault_deed(result)) return fail_lost(gpu);
        return fail(SMELT_ERROR_FAULT,
                    "%s; the device is lost to this process unless smelt_device_reset restores it",
                    gpu->loss);
    }
    describe_failure(gpu->driver, result, failure, sizeof failure);
    smelt_status status = result == CUDA_ERROR_OUT_OF_MEMORY             ? SMELT_ERROR_OUT_OF_MEMORY
                          : result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ? SMELT_ERROR_LIMIT
                                                                         : SMELT_ERROR_INTERNAL;
    return fail(status, "%s on device '%s': the driver returns %s", subject, gpu->name, failure);
}

void cuda_note(struct cuda_gpu *gpu, CUresult result) {
    if (fault_deed(result) || is_loss(result)) (void)lose(gpu, result);
}

/* ---- Contexts. */

static smelt_status open_context(struct cuda_gpu *gpu) {
    const struct cuda_driver *driver = gpu->driver;
    CUcontext previous = NULL;
    /* Memory that is given back stays in the pool: taking it from the system again would make each allocation
     * wait for the GPU. It is trimmed when it is needed (memory.c). */
    uint64_t threshold = UINT64_MAX;
    CUDA_TRY(gpu, driver->context_retain(&gpu->context, gpu->handle), "the context");
    CUresult result = driver->context_get(&previous);
    if (result == CUDA_SUCCESS) result = driver->context_set(gpu->context);
    if (result == CUDA_SUCCESS) result = driver->default_pool(&gpu->pool, gpu->handle);
    if (result == CUDA_SUCCESS) result = driver->pool_set(gpu->pool, CUDA_POOL_RELEASE_THRESHOLD, &threshold);
    smelt_status status = result == CUDA_SUCCESS ? cuda_stream_open(gpu, NULL, true, &gpu->default_stream)
                                                 : cuda_fail(gpu, result, "the context");
    driver->context_set(previous);
    if (status != SMELT_OK) {
        driver->context_release(gpu->handle);
        gpu->context = NULL;
    }
    return status;
}

/* With gpu->use held for reading. */
static smelt_status ready(struct cuda_gpu *gpu) {
    smelt_status status = SMELT_OK;
    if (atomic_load_explicit(&gpu->lost, memory_order_acquire)) return fail_lost(gpu);
    if (atomic_load_explicit(&gpu->opened, memory_order_acquire)) return SMELT_OK;
    pthread_mutex_lock(&gpu->opening);
    if (!atomic_load(&gpu->opened)) {
        struct trace_span span = trace_begin();
        status = open_context(gpu);
        trace_end_plain(span, "device", "open GPU");
        if (status == SMELT_OK) atomic_store_explicit(&gpu->opened, true, memory_order_release);
    }
    pthread_mutex_unlock(&gpu->opening);
    return status;
}

static smelt_status fail_forked(struct cuda_gpu *gpu) {
    return fail(SMELT_ERROR_NO_DEVICE,
                "device '%s' cannot be used in this process: it was forked from one that uses GPUs; fork "
                "before the first use of a GPU, or start a new program",
                gpu->name);
}

/* How often the thread has entered, and its mode outside: in a library's usual mode, allocating and releasing
 * memory on one stream would end a capture of another. */
static __thread int inside, outer_mode;

static void make_current(struct cuda_gpu *gpu, CUcontext *previous) {
    if (!inside++) {
        outer_mode = CUDA_CAPTURE_RELAXED;
        gpu->driver->capture_mode(&outer_mode);
    }
    *previous = NULL;
    gpu->driver->context_get(previous);
    if (*previous != gpu->context) gpu->driver->context_set(gpu->context);
}

smelt_status cuda_enter(struct cuda_gpu *gpu, CUcontext *previous) {
    if (atomic_load_explicit(&forked, memory_order_relaxed)) return fail_forked(gpu);
    pthread_rwlock_rdlock(&gpu->use);
    smelt_status status = ready(gpu);
    if (status == SMELT_OK)
        make_current(gpu, previous);
    else
        pthread_rwlock_unlock(&gpu->use);
    return status;
}

bool cuda_is_ready(struct cuda_gpu *gpu) {
    return !atomic_load_explicit(&forked, memory_order_relaxed) &&
           atomic_load_explicit(&gpu->opened, memory_order_acquire) &&
           !atomic_load_explicit(&gpu->lost, memory_order_acquire);
}

bool cuda_enter_release(struct cuda_gpu *gpu, uint32_t epoch, CUcontext *previous) {
    if (atomic_load_explicit(&forked, memory_order_relaxed)) return false;
    if (atomic_load(&gpu->epoch) != epoch) return false;
    pthread_rwlock_rdlock(&gpu->use);
    bool there = atomic_load(&gpu->opened) && !atomic_load(&gpu->lost) && atomic_load(&gpu->epoch) == epoch;
    if (there)
        make_current(gpu, previous);
    else
        pthread_rwlock_unlock(&gpu->use);
    return there;
}

void cuda_leave(struct cuda_gpu *gpu, CUcontext previous) {
    if (previous != gpu->context) gpu->driver->context_set(previous);
    int mode = outer_mode;
    if (!--inside) gpu->driver->capture_mode(&mode);
    pthread_rwlock_unlock(&gpu->use);
}

/* In one order, whoever asks for them; the one that is to be current once more, last. */
smelt_status cuda_enter_both(struct cuda_gpu *gpu, struct cuda_gpu *other, struct cuda_entry *entry) {
    bool first = gpu->ordinal < other->ordinal;
    struct cuda_gpu *const wanted[] = {first ? gpu : other, first ? other : gpu, gpu};
    entry->count = 0;
    for (int i = gpu == other ? 2 : 0; i < 3; i++) {
        smelt_status status = cuda_enter(wanted[i], &entry->previous[entry->count]);
        if (status != SMELT_OK) {
            cuda_leave_both(entry);
            return status;
        }
        entry->gpus[entry->count++] = wanted[i];
    }
    return SMELT_OK;
}

void cuda_leave_both(struct cuda_entry *entry) {
    while (entry->count) {
        entry->count--;
        cuda_leave(entry->gpus[entry->count], entry->previous[entry->count]);
    }
}

/* After a fault of a kernel drivers give a process no context any more (580 does not, neither a primary nor
 * another one): the reset succeeds, and the next call has the old error. */
static bool gives_new_context(struct cuda_gpu *gpu) {
    CUcontext context;
    if (gpu->driver->context_retain(&context, gpu->handle) != CUDA_SUCCESS) return false;
    gpu->driver->context_release(gpu->handle);
    return true;
}

static smelt_status reset(const struct device *device) {
    struct cuda_gpu *gpu = cuda_gpu_of(device);
    if (atomic_load(&forked)) return fail_forked(gpu);
    if (inside)
        return fail(SMELT_ERROR_INVALID_ARGUMENT,
                    "device '%s' cannot be reset from a callback of a launch before the launch has ended",
                    gpu->name);
    smelt_status status = SMELT_OK;
    pthread_rwlock_wrlock(&gpu->use);
    if (atomic_load(&gpu->opened)) {
        CUcontext previous = NULL;
        gpu->driver->context_get(&previous);
        gpu->driver->context_set(gpu->context);
        cuda_memory_give_all(gpu);
        gpu->driver->context_set(previous == gpu->context ? NULL : previous);
        CUresult result = gpu->driver->context_reset(gpu->handle);
        /* Our reference to the context outlives it. */
        CUresult released = gpu->driver->context_release(gpu->handle);
        if (result != CUDA_SUCCESS) {
            char failure[200];
            describe_failure(gpu->driver, result, failure, sizeof failure);
            status = fail(SMELT_ERROR_DEVICE_LOST, "device '%s' cannot be reset: the driver returns %s",
                          gpu->name, failure);
        }
        (void)released;
    }
    if (status == SMELT_OK) {
        atomic_fetch_add(&gpu->epoch, 1);
        if (gpu->default_stream) cuda_stream_release(gpu->default_stream);
        gpu->default_stream = NULL;
        gpu->context = NULL;
        cuda_staging_forget(&gpu->staging);
        atomic_store(&gpu->opened, false);
        gpu->lost_for_good = atomic_load(&gpu->lost) && !gives_new_context(gpu);
        if (gpu->lost_for_good)
            status = fail_lost(gpu);
        else
            atomic_store(&gpu->lost, false);
    }
    pthread_rwlock_unlock(&gpu->use);
    return status;
}
