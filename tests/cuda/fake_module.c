/* The fake driver: linking, modules, launches. */
#include "fake_internal.h"

#define EXPORT __attribute__((visibility("default")))

#define LINK_ERROR "FAKE LINK ERROR"
enum { OPTION_ERROR_LOG = 5, OPTION_ERROR_LOG_BYTES = 6 };
enum { ATTRIBUTE_MAX_THREADS = 0, ATTRIBUTE_REGISTERS = 4, ATTRIBUTE_DYNAMIC_SHARED = 8 };
#define USUAL_SHARED (48 * 1024)

struct CUlinkState_st {
    struct object object;
    char *image;
    char *log;
    size_t log_bytes;
};

EXPORT CUresult cuLinkCreate_v2(unsigned count, int *options, void **values, CUlinkState *state) {
    CALL("cuLinkCreate_v2", NEEDS_CONTEXT);
    struct CUlinkState_st *made = object_new(KIND_LINK, sizeof *made);
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == OPTION_ERROR_LOG) made->log = values[i];
        if (options[i] == OPTION_ERROR_LOG_BYTES) made->log_bytes = (unsigned)(uintptr_t)values[i];
    }
    *state = made;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuLinkAddData_v2(CUlinkState state, int kind, void *data, size_t size, const char *name,
                                 unsigned count, int *options, void **values) {
    CALL("cuLinkAddData_v2", NEEDS_CONTEXT);
    (void)kind, (void)name, (void)count, (void)options, (void)values;
    if (!object_check(state, KIND_LINK, "cuLinkAddData_v2")) GIVE(FAKE_INVALID_HANDLE);
    free(state->image);
    state->image = strndup(data, size);
    const char *error = strstr(state->image, LINK_ERROR);
    if (!error) GIVE(CUDA_SUCCESS);
    if (state->log) snprintf(state->log, state->log_bytes, "%s", error);
    GIVE(CUDA_ERROR_INVALID_PTX);
}

EXPORT CUresult cuLinkComplete(CUlinkState state, void **cubin, size_t *size) {
    CALL("cuLinkComplete", NEEDS_CONTEXT);
    if (!object_check(state, KIND_LINK, "cuLinkComplete") || !state->image) GIVE(FAKE_INVALID_HANDLE);
    *cubin = state->image;
    *size = strlen(state->image) + 1;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuLinkDestroy(CUlinkState state) {
    CALL("cuLinkDestroy", NEEDS_CONTEXT);
    if (!object_check(state, KIND_LINK, "cuLinkDestroy")) GIVE(FAKE_INVALID_HANDLE);
    free(state->image);
    state->image = NULL;
    state->object.dead = true;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, int *options,
                                   void **values) {
    CALL("cuModuleLoadDataEx", NEEDS_CONTEXT);
    if (strstr(image, LINK_ERROR)) {
        char *log = NULL;
        size_t bytes = 0;
        for (unsigned i = 0; i < count; i++) {
            if (options[i] == OPTION_ERROR_LOG) log = values[i];
            if (options[i] == OPTION_ERROR_LOG_BYTES) bytes = (unsigned)(uintptr_t)values[i];
        }
        if (log) snprintf(log, bytes, "%s", LINK_ERROR);
        GIVE(CUDA_ERROR_INVALID_PTX);
    }
    struct CUmod_st *made = object_new(KIND_MODULE, sizeof *made);
    made->image = strdup(image);
    *module = made;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
    CALL("cuModuleUnload", NEEDS_CONTEXT);
    if (!object_check(module, KIND_MODULE, "cuModuleUnload")) GIVE(FAKE_INVALID_HANDLE);
    for (int i = 0; i < fake.stream_count; i++) {
        struct CUstream_st *stream = fake.streams[i];
        for (size_t w = stream->done; w < stream->works.count; w++)
            if (stream->works.items[w].kind == WORK_LAUNCH &&
                stream->works.items[w].function->module == module)
                violate("a module is unloaded before its launch has ended");
    }
    module->object.dead = true;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    CALL("cuModuleGetFunction", NEEDS_CONTEXT);
    char entry[300];
    if (!object_check(module, KIND_MODULE, "cuModuleGetFunction")) GIVE(FAKE_INVALID_HANDLE);
    snprintf(entry, sizeof entry, ".entry %s(", name);
    const char *found = strstr(module->image, entry);
    if (!found) GIVE(FAKE_NOT_FOUND);
    struct CUfunc_st *made = calloc(1, sizeof *made);
    if (!made) abort();
    const char *size = strchr(found, '[');
    made->next = module->functions;
    made->module = module;
    made->parameter_bytes = size ? (size_t)atol(size + 1) : 0;
    snprintf(made->name, sizeof made->name, "%s", name);
    module->functions = made;
    *function = made;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
    CALL("cuFuncGetAttribute", NEEDS_CONTEXT);
    *value = attribute == ATTRIBUTE_MAX_THREADS      ? 1024
             : attribute == ATTRIBUTE_REGISTERS      ? 32
             : attribute == ATTRIBUTE_DYNAMIC_SHARED ? function->dynamic_limit
                                                     : 0;
    GIVE(CUDA_SUCCESS);
}

EXPORT CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
    CALL("cuFuncSetAttribute", NEEDS_CONTEXT);
    if (attribute == ATTRIBUTE_DYNAMIC_SHARED && value > 227 * 1024) GIVE(CUDA_ERROR_INVALID_VALUE);
    if (attribute == ATTRIBUTE_DYNAMIC_SHARED) function->dynamic_limit = value;
    GIVE(CUDA_SUCCESS);
}

/* The parameter's bytes, passed by address or as one buffer with its size. */
static const void *parameter_of(const struct CUfunc_st *function, void **parameters, void **extra,
                                size_t *bytes) {
    *bytes = function->parameter_bytes;
    if (parameters) return parameters[0];
    const void *found = NULL;
    for (; extra && *extra; extra += 2) {
        if ((uintptr_t)extra[0] == 1) found = extra[1];
        if ((uintptr_t)extra[0] == 2) *bytes = *(size_t *)extra[1];
    }
    return found;
}

/* Within a call of `symbol`; returns the call's result. */
static CUresult launch(const char *symbol, CUfunction function, const unsigned grid[3],
                       const unsigned block[3], unsigned shared_bytes, CUstream handle, void **parameters,
                       void **extra) {
    struct CUstream_st *stream = stream_of(handle, symbol);
    if (!stream || !object_check(function->module, KIND_MODULE, symbol)) return FAKE_INVALID_HANDLE;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    size_t bytes;
    const void *parameter = parameter_of(function, parameters, extra, &bytes);
    if (!grid[0] || !grid[1] || !grid[2] || !threads || threads > 1024 || grid[0] > INT32_MAX ||
        grid[1] > 65535 || grid[2] > 65535 || bytes > 4096 || bytes != function->parameter_bytes ||
        (bytes && !parameter) ||
        (shared_bytes > USUAL_SHARED && shared_bytes > (unsigned)function->dynamic_limit))
        return CUDA_ERROR_INVALID_VALUE;
    struct work *work = enqueue(stream, WORK_LAUNCH);
    work->function = function;
    work->bytes = bytes;
    work->own = malloc(bytes + 1);
    if (!work->own) abort();
    memcpy(work->own, parameter, bytes);
    work->launch = (struct fake_launch){.function = function->name,
                                        .image = function->module->image,
                                        .device = stream->object.device,
                                        .grid = {grid[0], grid[1], grid[2]},
                                        .block = {block[0], block[1], block[2]},
                                        .shared_bytes = shared_bytes,
                                        .parameter = work->own,
                                        .parameter_bytes = bytes};
    enqueued(stream);
    return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                               CUstream handle, void **parameters, void **extra) {
    CALL("cuLaunchKernel", NEEDS_CONTEXT);
    const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    GIVE(launch("cuLaunchKernel", function, grid, block, shared_bytes, handle, parameters, extra));
}

/* Supports one attribute. */
EXPORT CUresult cuLaunchKernelEx(const struct cuda_launch_config *config, CUfunction function,
                                 void **parameters, void **extra) {
    CALL("cuLaunchKernelEx", NEEDS_CONTEXT);
    for (unsigned i = 0; i < config->attribute_count; i++)
        if (config->attributes[i].id != CUDA_LAUNCH_EARLY) GIVE(CUDA_ERROR_INVALID_VALUE);
    GIVE(launch("cuLaunchKernelEx", function, config->grid, config->block, config->shared_bytes,
                config->stream, parameters, extra));
}

CUresult launch_run(const struct work *work) {
    return fake.launch_hook ? fake.launch_hook(&work->launch, fake.launch_context) : CUDA_SUCCESS;
}
