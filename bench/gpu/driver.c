#include "bench/gpu/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the driver's binary interface, which needs no header. */
enum { CAPTURE_THREAD_LOCAL = 1 };
#define FUNCTIONS(X)                                                                                   \
    X(init, "cuInit", (unsigned flags))                                                                \
    X(error_text, "cuGetErrorString", (int result, const char **text))                                 \
    X(device_get, "cuDeviceGet", (int *device, int ordinal))                                           \
    X(context_retain, "cuDevicePrimaryCtxRetain", (void **context, int device))                        \
    X(context_set, "cuCtxSetCurrent", (void *context))                                                 \
    X(context_wait, "cuCtxSynchronize", (void))                                                        \
    X(fill, "cuMemsetD8Async", (gpu_address to, unsigned char value, size_t count, void *stream))      \
    X(write, "cuMemcpyHtoDAsync_v2", (gpu_address to, const void *from, size_t bytes, void *stream))   \
    X(read, "cuMemcpyDtoHAsync_v2", (void *to, gpu_address from, size_t bytes, void *stream))          \
    X(copy_on, "cuMemcpyDtoDAsync_v2", (gpu_address to, gpu_address from, size_t bytes, void *stream)) \
    X(module_load, "cuModuleLoadDataEx",                                                               \
      (void **module, const void *image, unsigned count, int *options, void **values))                 \
    X(module_function, "cuModuleGetFunction", (void **function, void *module, const char *name))       \
    X(launch, "cuLaunchKernel",                                                                        \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,            \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **parameters,     \
       void **extra))                                                                                  \
    X(stream_create, "cuStreamCreate", (void **stream, unsigned flags))                                \
    X(stream_destroy, "cuStreamDestroy_v2", (void *stream))                                            \
    X(stream_wait, "cuStreamSynchronize", (void *stream))                                              \
    X(capture_begin, "cuStreamBeginCapture_v2", (void *stream, int mode))                              \
    X(capture_end, "cuStreamEndCapture", (void *stream, void **graph))                                 \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                                \
      (void **executable, void *graph, unsigned long long flags))                                      \
    X(graph_launch, "cuGraphLaunch", (void *executable, void *stream))

static struct {
#define MEMBER(name, symbol, arguments) int(*name) arguments;
    FUNCTIONS(MEMBER)
#undef MEMBER
    void *context, *empty;
} driver;

/* A warp's worth of threads that return at once. */
static const char empty_kernel[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                                   ".visible .entry empty()\n.maxntid 32, 1, 1\n{\n\tret;\n}\n";

static const char *failed(const char *what, int result) {
    static char sentence[256];
    const char *text = NULL;
    if (driver.error_text) (void)driver.error_text(result, &text);
    snprintf(sentence, sizeof sentence, "%s failed with %d: %s", what, result,
             text ? text : "no reason known");
    return sentence;
}

#define TRY_CALL(what, call)                          \
    do {                                              \
        int result = (call);                          \
        if (result != 0) return failed(what, result); \
    } while (0)

static const char *find_functions(void *library) {
#define FIND(name, symbol, arguments)                \
    *(void **)&driver.name = dlsym(library, symbol); \
    if (!driver.name) return "the driver has no " symbol;
    FUNCTIONS(FIND)
#undef FIND
    return NULL;
}

const char *gpu_driver_open(void) {
    if (driver.context) {
        TRY_CALL("cuCtxSetCurrent", driver.context_set(driver.context));
        return NULL;
    }
    const char *name = getenv("SMELT_CUDA_DRIVER");
    void *library = dlopen(name ? name : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return "the driver library cannot be opened";
    const char *missing = find_functions(library);
    if (missing) return missing;
    int device;
    void *context, *module;
    TRY_CALL("cuInit", driver.init(0));
    TRY_CALL("cuDeviceGet", driver.device_get(&device, 0));
    TRY_CALL("cuDevicePrimaryCtxRetain", driver.context_retain(&context, device));
    TRY_CALL("cuCtxSetCurrent", driver.context_set(context));
    TRY_CALL("cuModuleLoadDataEx", driver.module_load(&module, empty_kernel, 0, NULL, NULL));
    TRY_CALL("cuModuleGetFunction", driver.module_function(&driver.empty, module, "empty"));
    driver.context = context;
    return NULL;
}

#define OPEN()                               \
    do {                                     \
        const char *why = gpu_driver_open(); \
        if (why) return why;                 \
    } while (0)

static const char *wait_for_all(void) {
    TRY_CALL("cuCtxSynchronize", driver.context_wait());
    return NULL;
}

const char *gpu_driver_fill(gpu_address to, uint8_t value, size_t count) {
    OPEN();
    TRY_CALL("cuMemsetD8Async", driver.fill(to, value, count, NULL));
    return wait_for_all();
}

const char *gpu_driver_write(gpu_address to, const void *from, size_t bytes) {
    OPEN();
    TRY_CALL("cuMemcpyHtoDAsync", driver.write(to, from, bytes, NULL));
    return wait_for_all();
}

const char *gpu_driver_read(void *to, gpu_address from, size_t bytes) {
    OPEN();
    TRY_CALL("cuCtxSynchronize", driver.context_wait());
    TRY_CALL("cuMemcpyDtoHAsync", driver.read(to, from, bytes, NULL));
    return wait_for_all();
}

const char *gpu_driver_copy(gpu_address to, gpu_address from, size_t bytes) {
    OPEN();
    TRY_CALL("cuMemcpyDtoDAsync", driver.copy_on(to, from, bytes, NULL));
    return wait_for_all();
}

const char *gpu_driver_copy_on(void *stream, gpu_address to, gpu_address from, size_t bytes) {
    OPEN();
    TRY_CALL("cuMemcpyDtoDAsync", driver.copy_on(to, from, bytes, stream));
    return NULL;
}

const char *gpu_driver_launch_empty(void *stream, int count) {
    OPEN();
    for (int i = 0; i < count; i++)
        TRY_CALL("cuLaunchKernel", driver.launch(driver.empty, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
    return NULL;
}

const char *gpu_driver_record_empty(int count, void **graph) {
    OPEN();
    void *stream, *recorded;
    TRY_CALL("cuStreamCreate", driver.stream_create(&stream, 1));
    TRY_CALL("cuStreamBeginCapture", driver.capture_begin(stream, CAPTURE_THREAD_LOCAL));
    const char *why = gpu_driver_launch_empty(stream, count);
    TRY_CALL("cuStreamEndCapture", driver.capture_end(stream, &recorded));
    if (!why) TRY_CALL("cuGraphInstantiate", driver.graph_instantiate(graph, recorded, 0));
    TRY_CALL("cuStreamDestroy", driver.stream_destroy(stream));
    return why;
}

const char *gpu_driver_replay(void *graph, void *stream) {
    OPEN();
    TRY_CALL("cuGraphLaunch", driver.graph_launch(graph, stream));
    return NULL;
}

const char *gpu_driver_wait(void *stream) {
    OPEN();
    TRY_CALL("cuStreamSynchronize", driver.stream_wait(stream));
    return NULL;
}
