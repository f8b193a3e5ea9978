#include "device/cuda/executable.h"
#include "abi/cuda_parameters.h"
#include "base/background.h"
#include "device/cuda/stream.h"
#include "device/effort.h"
#include "device/gpu_shape.h"

#include <stdlib.h>
#include <string.h>

static bool has_slot(const struct binding *binding) {
    return binding->kind == BINDING_BUFFER || binding->kind == BINDING_THREADGROUP;
}

/* 0: of structures, whose elements are not known. */
static uint8_t element_bytes(const struct binding *binding) {
    smelt_dtype dtype = BINDING_DTYPE(binding->type);
    if (binding->kind != BINDING_BUFFER || dtype == SMELT_NO_DTYPE) return 0;
    return dtype == SMELT_COMPLEX64 ? sizeof(float) : (uint8_t)smelt_dtype_bytes(dtype);
}

/* The offsets of inlined buffers, after all slots, as in src/compiler/ptx/parameters.c. */
static smelt_status lay_out(const char *name, struct cuda_code *code) {
    const struct image *image = &code->head.image;
    uint32_t count = 0;
    for (int32_t i = 0; i < image->binding_count; i++) count += has_slot(&image->bindings[i]);
    code->slots = calloc(count + 1, sizeof *code->slots);
    if (!code->slots) return fail_out_of_memory(count * sizeof *code->slots);
    uint64_t offset = sizeof(struct cuda_parameters) + count * sizeof(uint64_t);
    if (code->head.shape.tested) offset += count * sizeof(struct cuda_extent);
    code->copies_offset = (uint32_t)offset;
    offset += (uint64_t)count_expanded(image) * sizeof(uint64_t);
    offset = (offset + 15) / 16 * 16;
    for (int32_t i = 0; i < image->binding_count; i++) {
        const struct binding *binding = &image->bindings[i];
        if (!has_slot(binding)) continue;
        bool threadgroup = binding->kind == BINDING_THREADGROUP;
        int32_t most = threadgroup ? SMELT_MAX_BUFFERS : LAUNCH_MAX_BUFFERS;
        if (binding->index < 0 || binding->index >= most || binding->inlined < 0 ||
            binding->inlined > CUDA_PARAMETER_LIMIT)
            return fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' has an impossible argument", name);
        code->slots[code->slot_count++] = (struct cuda_slot){.index = (uint16_t)binding->index,
                                                             .threadgroup = threadgroup,
                                                             .element = element_bytes(binding),
                                                             .writable = binding->writable != 0,
                                                             .inlined = (uint16_t)binding->inlined,
                                                             .offset = (uint16_t)offset};
        offset += (uint64_t)binding->inlined;
        if (offset > CUDA_PARAMETER_LIMIT) break;
    }
    if (offset > CUDA_PARAMETER_LIMIT)
        return fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' has more arguments than a GPU accepts",
                    name);
    code->parameter_bytes = (uint32_t)offset;
    return SMELT_OK;
}

smelt_status cuda_make_code(struct executable *executable, struct code_head *code) {
    if (engine_traits(code->image.engine)->is_gpu) return lay_out(executable->name, (struct cuda_code *)code);
    return fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' is not for a GPU", executable->name);
}

void cuda_free_code(struct executable *executable, struct code_head *head) {
    struct cuda_code *code = (struct cuda_code *)head;
    cuda_module_free(cuda_gpu_of(executable->device), atomic_load(&code->module));
    free(code->slots);
}

smelt_status cuda_load_code(struct executable *executable, struct code_head *head) {
    struct cuda_gpu *gpu = cuda_gpu_of(executable->device);
    struct cuda_module *module = NULL;
    CUcontext previous;
    TRY(background_enter_library());
    smelt_status status = cuda_enter(gpu, &previous);
    if (status == SMELT_OK) {
        status = cuda_module_load(gpu, executable->name, &head->image, &module);
        cuda_leave(gpu, previous);
    }
    background_leave_library();
    atomic_store(&((struct cuda_code *)head)->module, module);
    return status;
}

static bool is_current(const struct cuda_module *module, const struct cuda_gpu *gpu) {
    return module && module->epoch == atomic_load_explicit(&gpu->epoch, memory_order_relaxed);
}

static smelt_status get_module(struct executable *executable, struct cuda_code *code,
                               struct cuda_module **module) {
    struct cuda_gpu *gpu = cuda_gpu_of(executable->device);
    CUcontext previous;
    smelt_status status = SMELT_OK;
    TRY(cuda_enter(gpu, &previous));
    pthread_mutex_lock(&executable->lock);
    *module = atomic_load(&code->module);
    if (!is_current(*module, gpu)) {
        struct cuda_module *before = *module;
        status = cuda_module_load(gpu, executable->name, &code->head.image, module);
        if (status == SMELT_OK) {
            (*module)->before = before;
            atomic_store_explicit(&code->module, *module, memory_order_release);
        }
    }
    pthread_mutex_unlock(&executable->lock);
    cuda_leave(gpu, previous);
    return status;
}

/* A code for the same launches except that their grids have another size, which it does not depend on. */
static struct code_head *find_alone(struct executable *executable, const struct code_shape *shape,
                                    bool quick) {
    for (struct code_head *code = atomic_load(&executable->first); code; code = code->next) {
        struct code_shape same = code->shape;
        same.coarse = shape->coarse;
        if (code->image.alone && code->image.quick == quick && memcmp(&same, shape, sizeof same) == 0)
            return code;
    }
    return NULL;
}

static struct code_head *find_code(struct executable *executable, const struct code_shape *shape,
                                   bool quick) {
    struct code_head *head = executable_find(executable, shape, quick);
    return head ? head : find_alone(executable, shape, quick);
}

/* A captured launch may be replayed often, so it gets the best code. */
static smelt_status effort_of(const struct launch *launch, enum compile_effort *effort) {
    struct cuda_gpu *gpu = cuda_gpu_of(launch->executable->device);
    struct cuda_stream *stream;
    CUcontext previous;
    *effort = launch_effort(launch);
    if (*effort == COMPILE_BEST) return SMELT_OK;
    TRY(cuda_stream_enter(gpu, launch->stream, &stream, &previous));
    if (!launch_stays_quick() && (cuda_stream_records(stream) || cuda_stream_is_captured(stream)))
        *effort = COMPILE_BEST;
    cuda_leave(gpu, previous);
    return SMELT_OK;
}

/* For a launch whose best code does not exist yet: quick code, if the launch may run it. */
static smelt_status make_code(const struct launch *launch, const struct code_shape *shape,
                              struct code_head **head, struct preparation *preparation) {
    struct executable *executable = launch->executable;
    enum compile_effort effort;
    TRY(effort_of(launch, &effort));
    *head = effort == COMPILE_BEST ? NULL : find_code(executable, shape, true);
    if (!*head) TRY(executable_code(executable, shape, effort, head, preparation));
    return SMELT_OK;
}

smelt_status cuda_code_for(const struct launch *launch, struct cuda_code **out, struct cuda_module **module,
                           struct preparation *preparation) {
    struct executable *executable = launch->executable;
    struct code_head *head;
    struct code_shape shape;
    gpu_shape(launch, executable->source.barrier_hint, &shape);
    head = find_code(executable, &shape, false);
    if (!head) TRY(make_code(launch, &shape, &head, preparation));
    struct cuda_code *code = (struct cuda_code *)head;
    *module = atomic_load_explicit(&code->module, memory_order_acquire);
    if (!is_current(*module, cuda_gpu_of(executable->device))) TRY(get_module(executable, code, module));
    /* Last: unless the quick code came from the disk cache, the driver's assembler has now run and has
     * registered its exit handlers, before the background registers its own. */
    if (head->image.quick) executable_improve(executable, &shape, 0);
    *out = code;
    return SMELT_OK;
}
