/* NVIDIA's driver library, opened at run time: smelt is built without CUDA's headers and links nothing of it.
 * Types and numbers are those of the driver's binary interface, which does not change. */
#ifndef SMELT_DEVICE_CUDA_DRIVER_H
#define SMELT_DEVICE_CUDA_DRIVER_H

#include "base/error.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUlinkState_st *CUlinkState;

/* CUlaunchAttribute and CUlaunchConfig, the arguments of cuLaunchKernelEx. */
struct cuda_launch_attribute {
    int id, unused;
    union {
        int flag;
        char bytes[64];
    } value;
};
struct cuda_launch_config {
    unsigned grid[3], block[3], shared_bytes;
    CUstream stream;
    struct cuda_launch_attribute *attributes;
    unsigned attribute_count;
};

/* Name in the table, exported symbol, arguments. */
#define CUDA_DRIVER_TABLE(X)                                                                                 \
    X(init, "cuInit", (unsigned flags))                                                                      \
    X(driver_version, "cuDriverGetVersion", (int *version))                                                  \
    X(error_name, "cuGetErrorName", (CUresult result, const char **name))                                    \
    X(error_text, "cuGetErrorString", (CUresult result, const char **text))                                  \
    X(device_count, "cuDeviceGetCount", (int *count))                                                        \
    X(device_get, "cuDeviceGet", (CUdevice *device, int ordinal))                                            \
    X(device_name, "cuDeviceGetName", (char *name, int length, CUdevice device))                             \
    X(device_attribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device))                \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t *bytes, CUdevice device))                                \
    X(context_retain, "cuDevicePrimaryCtxRetain", (CUcontext *context, CUdevice device))                     \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (CUdevice device))                                    \
    X(context_reset, "cuDevicePrimaryCtxReset_v2", (CUdevice device))                                        \
    X(context_set, "cuCtxSetCurrent", (CUcontext context))                                                   \
    X(context_get, "cuCtxGetCurrent", (CUcontext *context))                                                  \
    X(context_wait, "cuCtxSynchronize", (void))                                                              \
    X(context_limit, "cuCtxSetLimit", (int limit, size_t value))                                             \
    X(memory_info, "cuMemGetInfo_v2", (size_t *free_bytes, size_t *total))                                   \
    X(default_pool, "cuDeviceGetDefaultMemPool", (CUmemoryPool *pool, CUdevice device))                      \
    X(pool_get, "cuMemPoolGetAttribute", (CUmemoryPool pool, int attribute, void *value))                    \
    X(pool_set, "cuMemPoolSetAttribute", (CUmemoryPool pool, int attribute, void *value))                    \
    X(pool_trim, "cuMemPoolTrimTo", (CUmemoryPool pool, size_t bytes))                                       \
    X(allocate, "cuMemAllocAsync", (CUdeviceptr *address, size_t bytes, CUstream stream))                    \
    X(release, "cuMemFreeAsync", (CUdeviceptr address, CUstream stream))                                     \
    X(host_allocate, "cuMemHostAlloc", (void **address, size_t bytes, unsigned flags))                       \
    X(host_release, "cuMemFreeHost", (void *address))                                                        \
    X(copy_in, "cuMemcpyHtoDAsync_v2", (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))    \
    X(copy_out, "cuMemcpyDtoHAsync_v2", (void *to, CUdeviceptr from, size_t bytes, CUstream stream))         \
    X(copy_within, "cuMemcpyDtoDAsync_v2",                                                                   \
      (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))                                     \
    X(copy_between, "cuMemcpyPeerAsync",                                                                     \
      (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,         \
       CUstream stream))                                                                                     \
    X(fill_8, "cuMemsetD8Async", (CUdeviceptr to, unsigned char value, size_t count, CUstream stream))       \
    X(fill_16, "cuMemsetD16Async", (CUdeviceptr to, unsigned short value, size_t count, CUstream stream))    \
    X(fill_32, "cuMemsetD32Async", (CUdeviceptr to, unsigned value, size_t count, CUstream stream))          \
    X(address_range, "cuMemGetAddressRange_v2", (CUdeviceptr *start, size_t *bytes, CUdeviceptr address))    \
    X(stream_create, "cuStreamCreate", (CUstream *stream, unsigned flags))                                   \
    X(stream_destroy, "cuStreamDestroy_v2", (CUstream stream))                                               \
    X(stream_wait, "cuStreamSynchronize", (CUstream stream))                                                 \
    X(stream_query, "cuStreamQuery", (CUstream stream))                                                      \
    X(stream_wait_event, "cuStreamWaitEvent", (CUstream stream, CUevent event, unsigned flags))              \
    X(event_create, "cuEventCreate", (CUevent *event, unsigned flags))                                       \
    X(event_destroy, "cuEventDestroy_v2", (CUevent event))                                                   \
    X(event_record, "cuEventRecord", (CUevent event, CUstream stream))                                       \
    X(event_wait, "cuEventSynchronize", (CUevent event))                                                     \
    X(event_query, "cuEventQuery", (CUevent event))                                                          \
    X(event_elapsed, "cuEventElapsedTime", (float *milliseconds, CUevent start, CUevent end))                \
    X(capture_begin, "cuStreamBeginCapture_v2", (CUstream stream, int mode))                                 \
    X(capture_end, "cuStreamEndCapture", (CUstream stream, CUgraph *graph))                                  \
    X(capture_status, "cuStreamIsCapturing", (CUstream stream, int *status))                                 \
    X(capture_mode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                        \
    X(capture_info, "cuStreamGetCaptureInfo_v2",                                                             \
      (CUstream stream, int *status, unsigned long long *id, CUgraph *graph, const CUgraphNode **nodes,      \
       size_t *count))                                                                                       \
    X(capture_depend, "cuStreamUpdateCaptureDependencies",                                                   \
      (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags))                                   \
    X(graph_instantiate, "cuGraphInstantiateWithFlags",                                                      \
      (CUgraphExec *executable, CUgraph graph, unsigned long long flags))                                    \
    X(graph_launch, "cuGraphLaunch", (CUgraphExec executable, CUstream stream))                              \
    X(graph_executable_destroy, "cuGraphExecDestroy", (CUgraphExec executable))                              \
    X(graph_destroy, "cuGraphDestroy", (CUgraph graph))                                                      \
    X(link_create, "cuLinkCreate_v2", (unsigned count, int *options, void **values, CUlinkState *state))     \
    X(link_add, "cuLinkAddData_v2",                                                                          \
      (CUlinkState state, int kind, void *data, size_t size, const char *name, unsigned count, int *options, \
       void **values))                                                                                       \
    X(link_complete, "cuLinkComplete", (CUlinkState state, void **cubin, size_t *size))                      \
    X(link_destroy, "cuLinkDestroy", (CUlinkState state))                                                    \
    X(module_load, "cuModuleLoadDataEx",                                                                     \
      (CUmodule *module, const void *image, unsigned count, int *options, void **values))                    \
    X(module_unload, "cuModuleUnload", (CUmodule module))                                                    \
    X(module_function, "cuModuleGetFunction", (CUfunction *function, CUmodule module, const char *name))     \
    X(function_attribute, "cuFuncGetAttribute", (int *value, int attribute, CUfunction function))            \
    X(function_set, "cuFuncSetAttribute", (CUfunction function, int attribute, int value))                   \
    X(launch, "cuLaunchKernel",                                                                              \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,             \
       unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **parameters,        \
       void **extra))

/* The same for functions that old drivers lack; they are NULL there. */
#define CUDA_DRIVER_NEWER(X)           \
    X(launch_with, "cuLaunchKernelEx", \
      (const struct cuda_launch_config *config, CUfunction function, void **parameters, void **extra))

struct cuda_driver {
#define CUDA_DRIVER_MEMBER(name, symbol, arguments) CUresult(*name) arguments;
    CUDA_DRIVER_TABLE(CUDA_DRIVER_MEMBER)
    CUDA_DRIVER_NEWER(CUDA_DRIVER_MEMBER)
#undef CUDA_DRIVER_MEMBER
};

/* Results that this code distinguishes. */
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_DEINITIALIZED = 4,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
    CUDA_ERROR_MISALIGNED_ADDRESS = 716,
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
    CUDA_ERROR_INVALID_PC = 718,
    CUDA_ERROR_LAUNCH_FAILED = 719
};

/* Attributes of devices. */
enum {
    CUDA_MAX_THREADS_PER_BLOCK = 1,
    CUDA_MULTIPROCESSOR_COUNT = 16,
    CUDA_COMPUTE_CAPABILITY_MAJOR = 75,
    CUDA_COMPUTE_CAPABILITY_MINOR = 76,
    CUDA_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    CUDA_MEMORY_POOLS_SUPPORTED = 115
};

/* Attributes of memory pools, each a uint64_t. */
enum { CUDA_POOL_RELEASE_THRESHOLD = 4, CUDA_POOL_RESERVED = 5, CUDA_POOL_USED = 7 };

/* Attributes of launches. */
enum { CUDA_LAUNCH_EARLY = 6 }; /* programmatic stream serialization: may begin before the previous ends */

/* Flags and modes. */
enum {
    CUDA_STREAM_NON_BLOCKING = 1, /* does not wait for CUDA's default stream */
    CUDA_EVENT_DISABLE_TIMING = 2,
    CUDA_HOST_ALLOCATE_PORTABLE = 1, /* pinned for all contexts */
    CUDA_CAPTURE_RELAXED = 2         /* other calls of the process are not affected */
};

/* The driver's functions, opened at the first call: SMELT_CUDA_DRIVER names the library, "libcuda.so.1"
 * otherwise. NULL: it cannot be opened or lacks a function; *reason is then a sentence without its end. */
const struct cuda_driver *cuda_driver(const char **reason);

#endif
