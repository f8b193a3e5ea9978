#include "device/cuda/module.h"
#include "base/text.h"
#include "base/trace.h"
#include "device/cuda/entry_name.h"
#include "device/cuda/stream.h"
#include "frontend/cache.h"
#include "frontend/installed.h"
#include "abi/entry_names.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of the driver's interface. */
enum {
    JIT_INFO_LOG = 3,
    JIT_INFO_LOG_BYTES = 4,
    JIT_ERROR_LOG = 5,
    JIT_ERROR_LOG_BYTES = 6,
    JIT_INPUT_PTX = 1,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
};

/* Dynamic threadgroup memory that a launch gets without asking. */
#define USUAL_SHARED_BYTES (48u << 10)

/* ---- Assembly. */

/* The driver's message about rejected code; only its first line helps. */
struct jit_log {
    char errors[4096], notes[512];
};

static smelt_status assembly_failure(struct cuda_gpu *gpu, const char *kernel, CUresult result,
                                     struct jit_log *log) {
    log->errors[sizeof log->errors - 1] = 0;
    log->errors[strcspn(log->errors, "\n")] = 0;
    if (result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "kernel '%s': the NVIDIA driver is too old for the PTX that smelt generates: %s", kernel,
                    *log->errors ? log->errors : "its version is newer than the driver's");
    if (result == CUDA_ERROR_INVALID_PTX || *log->errors)
        return fail(SMELT_ERROR_COMPILE, "kernel '%s': the NVIDIA driver cannot assemble its PTX: %s", kernel,
                    *log->errors ? log->errors : "it gives no reason");
    return cuda_fail(gpu, result, "the assembly of kernel '%s'", kernel);
}

/* Whether the driver assembles the code as a whole program, when it loads it. The linker, whose result can be
 * kept in smelt's cache, assembles relocatable code. There ptxas ignores setmaxnreg, and the functions that
 * it calls, for divisions and the like, follow the calling convention: each product of a warpgroup waits for
 * the one before, and a thread takes more registers. On an H200, layer norms with a division per element took
 * 272 us as whole programs and 415 us as relocatable code. Products of simdgroups' matrices get more
 * registers than they need, too: 4096^3 halfs took 551 us as a whole program and 832 us as relocatable code.
 * Without any of these, relocatable code is as fast or faster. The driver keeps what it assembles in a cache
 * of its own. */
static bool is_whole_program(const struct text *ptx) {
    static const char *const words[] = {"wgmma.",    "mma.sync.", "\tdiv.rn.", "\trcp.rn.", "\tsqrt.rn.",
                                        "\tdiv.s64", "\tdiv.u64", "\trem.s64", "\trem.u64"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(ptx->data, words[i])) return true;
    return false;
}

/* *cubin is heap memory. */
static smelt_status assemble(struct cuda_gpu *gpu, const char *kernel, const struct text *ptx,
                             struct text *cubin) {
    const struct cuda_driver *driver = gpu->driver;
    struct jit_log log;
    int options[4] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES, JIT_INFO_LOG, JIT_INFO_LOG_BYTES};
    void *values[4] = {log.errors, (void *)sizeof log.errors, log.notes, (void *)sizeof log.notes};
    CUlinkState state;
    void *code = NULL;
    size_t size = 0;
    log.errors[0] = log.notes[0] = 0;
    CUresult result = driver->link_create(4, options, values, &state);
    if (result != CUDA_SUCCESS) return cuda_fail(gpu, result, "the assembly of kernel '%s'", kernel);
    result = driver->link_add(state, JIT_INPUT_PTX, ptx->data, ptx->length, kernel, 0, NULL, NULL);
    if (result == CUDA_SUCCESS) result = driver->link_complete(state, &code, &size);
    smelt_status status = SMELT_OK;
    if (result == CUDA_SUCCESS) {
        text_append(cubin, code, size);
        if (cubin->failed) status = fail_out_of_memory(size);
    } else {
        status = assembly_failure(gpu, kernel, result, &log);
    }
    (void)driver->link_destroy(state);
    return status;
}

static struct hash cubin_key(const struct cuda_gpu *gpu, const struct text *ptx) {
    struct hasher *hasher = hasher_create();
    int version = 0;
    (void)gpu->driver->driver_version(&version);
    hasher_add_string(hasher, "cubin");
    hasher_add(hasher, ptx->data, ptx->length);
    hasher_add_string(hasher, gpu->device.target);
    hasher_add_integer(hasher, gpu->capability);
    hasher_add_integer(hasher, version);
    return hasher_finish(hasher);
}

/* The key of machine code that is installed with smelt. It runs with drivers of the same age and newer ones.
 */
static struct hash installed_key(const struct cuda_gpu *gpu, const struct text *ptx) {
    struct hasher *hasher = hasher_create();
    hasher_add(hasher, ptx->data, ptx->length);
    hasher_add_string(hasher, gpu->device.target);
    return hasher_finish(hasher);
}

/* ---- Loading. */

/* log: of an assembly; NULL: the code is machine code. `entry`: the name of its entry point. */
static CUresult load(struct cuda_gpu *gpu, const void *code, const char *entry, struct jit_log *log,
                     struct cuda_module *module) {
    int options[2] = {JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES};
    void *values[2] = {log ? log->errors : NULL, (void *)sizeof log->errors};
    CUresult result = gpu->driver->module_load(&module->handle, code, log ? 2 : 0, options, values);
    if (result != CUDA_SUCCESS) return result;
    result = gpu->driver->module_function(&module->function, module->handle, entry);
    if (result != CUDA_SUCCESS) (void)gpu->driver->module_unload(module->handle);
    return result;
}

static smelt_status load_failure(struct cuda_gpu *gpu, const char *kernel, CUresult result) {
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU)
        return fail(SMELT_ERROR_UNSUPPORTED,
                    "kernel '%s': its machine code is not for %s, of compute "
                    "capability %d.%d",
                    kernel, gpu->name, gpu->capability / 10, gpu->capability % 10);
    return cuda_fail(gpu, result, "the code of kernel '%s'", kernel);
}

static smelt_status load_whole_program(struct cuda_gpu *gpu, const char *kernel, const struct text *ptx,
                                       const char *entry, struct cuda_module *module) {
    struct jit_log log = {0};
    struct trace_span span = trace_begin();
    CUresult result = load(gpu, ptx->data, entry, &log, module);
    trace_end_plain(span, "compile", "assemble");
    return result == CUDA_SUCCESS ? SMELT_OK : assembly_failure(gpu, kernel, result, &log);
}

static smelt_status load_assembled(struct cuda_gpu *gpu, const char *kernel, const struct text *ptx,
                                   const char *entry, struct cuda_module *module) {
    struct text cubin = {0};
    struct hash key = cubin_key(gpu, ptx);
    if (cache_read(key, "cubin", &cubin)) {
        CUresult result = load(gpu, cubin.data, entry, NULL, module);
        text_free(&cubin);
        if (result == CUDA_SUCCESS) return SMELT_OK;
        cache_remove(key, "cubin");
    }
    struct trace_span span = trace_begin();
    smelt_status status = assemble(gpu, kernel, ptx, &cubin);
    trace_end_plain(span, "compile", "assemble");
    if (status == SMELT_OK) {
        CUresult result = load(gpu, cubin.data, entry, NULL, module);
        struct bytes piece = {cubin.data, cubin.length};
        if (result == CUDA_SUCCESS)
            cache_write(key, "cubin", &piece, 1);
        else
            status = load_failure(gpu, kernel, result);
    }
    text_free(&cubin);
    return status;
}

/* False if there is no machine code, or the driver is too old for it. */
static bool load_installed(struct cuda_gpu *gpu, const struct text *ptx, const char *entry,
                           struct cuda_module *module) {
    struct hash key = installed_key(gpu, ptx);
    struct text cubin = {0};
    struct bytes piece = {ptx->data, strlen(ptx->data)};
    installed_write(key, "ptx", &piece, 1);
    if (!installed_read(key, "cubin", &cubin)) return false;
    bool loaded = load(gpu, cubin.data, entry, NULL, module) == CUDA_SUCCESS;
    text_free(&cubin);
    return loaded;
}

static smelt_status load_ptx(struct cuda_gpu *gpu, const char *kernel, const struct image *image,
                             struct cuda_module *module) {
    struct text ptx = {0};
    char entry[MOST_ENTRY_NAME];
    cuda_name_entry(&ptx, entry, kernel, image->object, image->object_size);
    smelt_status status = SMELT_OK;
    if (ptx.failed)
        status = fail_out_of_memory(image->object_size);
    else if (!load_installed(gpu, &ptx, entry, module))
        status = is_whole_program(&ptx) ? load_whole_program(gpu, kernel, &ptx, entry, module)
                                        : load_assembled(gpu, kernel, &ptx, entry, module);
    text_free(&ptx);
    return status;
}

smelt_status cuda_module_load(struct cuda_gpu *gpu, const char *kernel, const struct image *image,
                              struct cuda_module **out) {
    static const char elf[4] = {0x7f, 'E', 'L', 'F'};
    struct cuda_module *module = calloc(1, sizeof *module);
    if (!module) return fail_out_of_memory(sizeof *module);
    module->epoch = atomic_load(&gpu->epoch);
    atomic_init(&module->most_bytes, USUAL_SHARED_BYTES);
    smelt_status status;
    struct trace_span span = trace_begin();
    if (image->object_size > sizeof elf && memcmp(image->object, elf, sizeof elf) == 0) {
        CUresult result = load(gpu, image->object, ENTRY_NAME, NULL, module);
        status = result == CUDA_SUCCESS ? SMELT_OK : load_failure(gpu, kernel, result);
    } else {
        status = load_ptx(gpu, kernel, image, module);
    }
    trace_end_plain(span, "compile", "load module");
    if (status != SMELT_OK) {
        free(module);
        return status;
    }
    *out = module;
    return SMELT_OK;
}

void cuda_module_launched(struct cuda_module *module, struct cuda_stream *stream) {
    if (atomic_load_explicit(&module->recorded, memory_order_relaxed)) return;
    if (cuda_stream_records(stream) || cuda_stream_is_captured(stream)) atomic_store(&module->recorded, true);
}

/* ---- Modules that are released while the owner of a stream captures it: whether launches before the capture
 * have ended cannot be told until it is over. */

static struct cuda_module *take_left(struct cuda_gpu *gpu) {
    pthread_mutex_lock(&gpu->lock);
    struct cuda_module *modules = gpu->left_loaded;
    gpu->left_loaded = NULL;
    pthread_mutex_unlock(&gpu->lock);
    return modules;
}

static void leave_loaded(struct cuda_gpu *gpu, struct cuda_module *modules) {
    struct cuda_module *last = modules;
    while (last->before) last = last->before;
    pthread_mutex_lock(&gpu->lock);
    last->before = gpu->left_loaded;
    gpu->left_loaded = modules;
    pthread_mutex_unlock(&gpu->lock);
}

static void free_all(struct cuda_module *module) {
    for (struct cuda_module *before; module; module = before) {
        before = module->before;
        free(module);
    }
}

static void unload_all(struct cuda_gpu *gpu, const struct cuda_module *module) {
    for (; module; module = module->before)
        if (module->epoch == atomic_load(&gpu->epoch))
            cuda_note(gpu, gpu->driver->module_unload(module->handle));
}

/* The module and those left before, whose launches may be in flight, when all have ended. The GPU's context
 * is current. */
static void unload(struct cuda_gpu *gpu, struct cuda_module *module) {
    const char *message = smelt_error();
    char *kept_message = string_copy(message, strlen(message));
    bool ended = true;
    module->before = take_left(gpu); /* first: those that come later may not have ended then */
    if (cuda_finish_launches(gpu, &ended) != SMELT_OK) {
        if (kept_message) error_record("%s", kept_message);
    } else if (ended) {
        unload_all(gpu, module);
    }
    if (ended)
        free_all(module);
    else
        leave_loaded(gpu, module);
    free(kept_message);
}

void cuda_module_free(struct cuda_gpu *gpu, struct cuda_module *module) {
    CUcontext previous;
    if (!module) return;
    free_all(module->before);
    module->before = NULL;
    if (atomic_load(&module->recorded) || !cuda_enter_release(gpu, module->epoch, &previous)) {
        free(module);
        return;
    }
    unload(gpu, module);
    cuda_leave(gpu, previous);
}
