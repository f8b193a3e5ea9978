/* The fake driver: set-up, counters, devices, contexts, hooks. */
#include "fake_internal.h"

#include <stdarg.h>

#define EXPORT __attribute__((visibility("default")))

struct fake fake = {.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, .patience = 2};
/* In the block that every thread has: leak checkers cannot follow other blocks of a thread that never ends.
 */
static __thread CUcontext current __attribute__((tls_model("initial-exec")));

/* ---- Calls. */

static const char *const symbols[] = {
#define SYMBOL(name, symbol, arguments) symbol,
    CUDA_DRIVER_TABLE(SYMBOL) CUDA_DRIVER_NEWER(SYMBOL)
#undef SYMBOL
};
#define SYMBOL_COUNT (sizeof symbols / sizeof *symbols)
static uint64_t counts[SYMBOL_COUNT];
static const char *fail_symbol;
static int fail_in;
static CUresult fail_result;

static size_t find_symbol(const char *symbol) {
    for (size_t i = 0; i < SYMBOL_COUNT; i++)
        if (strcmp(symbols[i], symbol) == 0) return i;
    violate("'%s' is not in the table of functions", symbol);
    return 0;
}

CUresult call_begin(const char *symbol, int needs) {
    pthread_mutex_lock(&fake.lock);
    counts[find_symbol(symbol)]++;
    if (fail_symbol && strcmp(fail_symbol, symbol) == 0 && --fail_in == 0) {
        fail_symbol = NULL;
        return fail_result;
    }
    if (needs >= NEEDS_INIT && !fake.initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs < NEEDS_CONTEXT) return CUDA_SUCCESS;
    if (!current || !current->retained) {
        violate("%s is called without a context", symbol);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return current_device()->sticky;
}

CUresult call_end(CUresult result) {
    pthread_mutex_unlock(&fake.lock);
    return result;
}

struct fake_device *current_device(void) {
    return &fake.devices[current->device];
}

int current_device_index(void) {
    return current ? current->device : 0;
}

void violate(const char *format, ...) {
    va_list arguments;
    if (*fake.violation) return;
    va_start(arguments, format);
    vsnprintf(fake.violation, sizeof fake.violation, format, arguments);
    va_end(arguments);
}

void clock_join(struct clock *clock, const struct clock *other) {
    for (int i = 0; i < fake.stream_count; i++)
        if (clock->done[i] < other->done[i]) clock->done[i] = other->done[i];
}

/* ---- Objects. */

void *object_new(enum kind kind, size_t size) {
    struct object *object = calloc(1, size);
    if (!object) abort();
    object->kind = kind;
    object->device = current_device_index();
    object->next = fake.objects;
    fake.objects = object;
    return object;
}

bool object_check(void *handle, enum kind kind, const char *symbol) {
    struct object *object = fake.objects;
    while (object && object != handle) object = object->next;
    if (object && object->kind == kind && !object->dead) return true;
    violate("%s: the handle %s", symbol,
            !object                ? "is none"
            : object->kind != kind ? "is of another kind"
                                   : "was destroyed, or lost by a reset");
    return false;
}

/* ---- Devices. */

static long setting(const char *name, long usual) {
    const char *value = getenv(name);
    return value && *value ? atol(value) : usual;
}

EXPORT CUresult cuInit(unsigned flags) {
    CALL("cuInit", NEEDS_NOTHING);
    if (flags) GIVE(CUDA_ERROR_INVALID_VALUE);
    if (fake.initialised) GIVE(CUDA_SUCCESS);
    const char *capability = getenv("FAKE_CUDA_CAPABILITY");
    fake.device_count = (int)setting("FAKE_CUDA_DEVICES", 1);
    fake.memory = (uint64_t)setting("FAKE_CUDA_MEMORY", 256 << 20);
    fake.pools = setting("FAKE_CUDA_POOLS", 1);
    fake.deferred |= setting("FAKE_CUDA_DEFERRED", 0) != 0;
    fake.real_clock = setting("FAKE_CUDA_CLOCK", 0) != 0;
    if (fake.device_count > FAKE_MOST_DEVICES) fake.device_count = FAKE_MOST_DEVICES;
    if (!fake.device_count) GIVE(CUDA_ERROR_NO_DEVICE);
    for (int i = 0; i < fake.device_count; i++) {
        fake.devices[i].context.device = fake.devices[i].pool.device = i;
        fake.devices[i].capability = capability && *capability ? atoi(capability) : 90;
        if (capability && strchr(capability, ',')) capability = strchr(capability, ',') + 1;
    }
    fake.initialised = true;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuDriverGetVersion(int *version) {
    CALL("cuDriverGetVersion", NEEDS_NOTHING);
    *version = 13000;
    GIVE(CUDA_SUCCESS);
}

static const struct {
    CUresult result;
    const char *name, *text;
} errors[] = {
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {FAKE_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"}};

static CUresult describe(CUresult result, const char **text, bool name) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].result == result) {
            *text = name ? errors[i].name : errors[i].text;
            return CUDA_SUCCESS;
        }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorName(CUresult result, const char **name) {
    return describe(result, name, true);
}

EXPORT CUresult cuGetErrorString(CUresult result, const char **text) {
    return describe(result, text, false);
}

EXPORT CUresult cuDeviceGetCount(int *count) {
    CALL("cuDeviceGetCount", NEEDS_INIT);
    *count = fake.device_count;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CALL("cuDeviceGet", NEEDS_INIT);
    if (ordinal < 0 || ordinal >= fake.device_count) GIVE(CUDA_ERROR_INVALID_VALUE);
    *device = ordinal;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    CALL("cuDeviceGetName", NEEDS_INIT);
    snprintf(name, (size_t)length, "Fake GPU %c", 'A' + device);
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    CALL("cuDeviceGetAttribute", NEEDS_INIT);
    switch (attribute) {
    case CUDA_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        break;
    case CUDA_MULTIPROCESSOR_COUNT:
        *value = 132;
        break;
    case CUDA_COMPUTE_CAPABILITY_MAJOR:
        *value = fake.devices[device].capability / 10;
        break;
    case CUDA_COMPUTE_CAPABILITY_MINOR:
        *value = fake.devices[device].capability % 10;
        break;
    case CUDA_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = 227 * 1024;
        break;
    case CUDA_MEMORY_POOLS_SUPPORTED:
        *value = fake.pools;
        break;
    default:
        GIVE(CUDA_ERROR_INVALID_VALUE);
    }
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    CALL("cuDeviceTotalMem_v2", NEEDS_INIT);
    (void)device;
    *bytes = fake.memory;
    GIVE(CUDA_SUCCESS);
}

/* ---- Contexts. */

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CALL("cuDevicePrimaryCtxRetain", NEEDS_INIT);
    if (fake.gone) GIVE(fake.gone);
    *context = &fake.devices[device].context;
    (*context)->retained++;
    GIVE(CUDA_SUCCESS);
}

static void lose_all(int device) {
    for (struct object *object = fake.objects; object; object = object->next) {
        if (object->device != device || object->dead) continue;
        if (object->kind == KIND_BLOCK) block_release((struct block *)object);
        if (object->kind == KIND_PINNED) free(((struct pinned *)object)->memory);
        object->dead = true;
    }
    struct fake_device *lost = &fake.devices[device];
    lost->legacy = NULL;
    lost->used = lost->reserved = 0;
    lost->cached_count = 0;
    lost->sticky = CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    CALL("cuDevicePrimaryCtxRelease_v2", NEEDS_INIT);
    struct CUctx_st *context = &fake.devices[device].context;
    if (!context->retained) violate("the context is released more often than retained");
    if (context->retained && --context->retained == 0) lose_all(device);
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    CALL("cuDevicePrimaryCtxReset_v2", NEEDS_INIT);
    lose_all(device);
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    CALL("cuCtxSetCurrent", NEEDS_INIT);
    current = context;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
    CALL("cuCtxGetCurrent", NEEDS_INIT);
    *context = current;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuCtxSetLimit(int limit, size_t value) {
    CALL("cuCtxSetLimit", NEEDS_CONTEXT);
    (void)limit;
    (void)value;
    GIVE(CUDA_SUCCESS);
}

/* ---- Hooks. */

static uint64_t hook_calls(const char *symbol) {
    uint64_t sum = 0;
    pthread_mutex_lock(&fake.lock);
    for (size_t i = 0; i < SYMBOL_COUNT; i++) sum += counts[i];
    if (symbol) sum = counts[find_symbol(symbol)];
    pthread_mutex_unlock(&fake.lock);
    return sum;
}

static void hook_forget_calls(void) {
    pthread_mutex_lock(&fake.lock);
    memset(counts, 0, sizeof counts);
    pthread_mutex_unlock(&fake.lock);
}

static void hook_fail_call(const char *symbol, int n, CUresult result) {
    pthread_mutex_lock(&fake.lock);
    fail_symbol = symbols[find_symbol(symbol)];
    fail_in = n;
    fail_result = result;
    pthread_mutex_unlock(&fake.lock);
}

static void hook_fault(CUresult result) {
    pthread_mutex_lock(&fake.lock);
    fake.next_fault = result;
    pthread_mutex_unlock(&fake.lock);
}

static void hook_fault_for_good(CUresult result) {
    hook_fault(result);
    fake.for_good = true;
}

static void hook_patience(unsigned questions) {
    pthread_mutex_lock(&fake.lock);
    fake.patience = questions;
    pthread_mutex_unlock(&fake.lock);
}

static void hook_deferred(bool on) {
    pthread_mutex_lock(&fake.lock);
    fake.deferred = on;
    for (int i = 0; i < fake.stream_count && !on; i++)
        if (!fake.streams[i]->object.dead) run_all(fake.streams[i]);
    pthread_mutex_unlock(&fake.lock);
}

static void hook_launch(fake_launch_hook *hook, void *context) {
    pthread_mutex_lock(&fake.lock);
    fake.launch_hook = hook;
    fake.launch_context = context;
    pthread_mutex_unlock(&fake.lock);
}

static void hook_pause(void) {
    static const struct timespec moment = {.tv_nsec = 1000000};
    pthread_mutex_unlock(&fake.lock);
    nanosleep(&moment, NULL);
    pthread_mutex_lock(&fake.lock);
}

static void hook_touch(CUdeviceptr address, bool writes) {
    struct block *block = block_at((void *)(uintptr_t)address);
    if (!running || !running_stream)
        violate("touch is called outside a launch");
    else if (!block)
        violate("kernel '%s' uses %p, which is no memory of the GPU", running->function->name,
                (void *)(uintptr_t)address);
    else
        block_use(block, running, running_stream->index, writes);
}

static const char *hook_violation(void) {
    return *fake.violation ? fake.violation : NULL;
}

static void hook_forget_violation(void) {
    *fake.violation = 0;
}

static int hook_alive(const char *kind) {
    static const char *const names[KIND_COUNT] = {"block", "pinned", "stream", "event",
                                                  "graph", "module", "link"};
    int count = 0;
    pthread_mutex_lock(&fake.lock);
    for (struct object *object = fake.objects; object; object = object->next) {
        /* Memory freed in stream order is not alive, whether its turn has come or not; the stream NULL
         * belongs to the device. */
        bool gone = object->kind == KIND_BLOCK && ((struct block *)object)->given;
        for (int i = 0; i < fake.device_count; i++) gone |= (void *)object == fake.devices[i].legacy;
        count += !object->dead && !gone && strcmp(names[object->kind], kind) == 0;
    }
    pthread_mutex_unlock(&fake.lock);
    return count;
}

static uint64_t hook_used(int device) {
    return fake.devices[device].used;
}

EXPORT const struct fake_cuda *fake_cuda_hooks(void) {
    static const struct fake_cuda hooks = {.calls = hook_calls,
                                           .forget_calls = hook_forget_calls,
                                           .fail_call = hook_fail_call,
                                           .fault = hook_fault,
                                           .fault_for_good = hook_fault_for_good,
                                           .deferred = hook_deferred,
                                           .patience = hook_patience,
                                           .launch = hook_launch,
                                           .touch = hook_touch,
                                           .pause = hook_pause,
                                           .violation = hook_violation,
                                           .forget_violation = hook_forget_violation,
                                           .alive = hook_alive,
                                           .used = hook_used};
    return &hooks;
}
