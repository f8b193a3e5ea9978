#include "device/cuda/executable.h"
#include "abi/cuda_parameters.h"
#include "device/gpu_shape.h"

#include <stdlib.h>
#include <string.h>

smelt_status cuda_load(const struct device *device, const struct code_source *source, const char *name,
                       struct executable **out) {
    struct executable *executable = calloc(1, sizeof *executable);
    if (executable) executable->name = strdup(name);
    if (!executable || !executable->name) {
        free(executable);
        return fail_out_of_memory(sizeof *executable);
    }
    executable->source = *source;
    executable->gpu = cuda_gpu_of(device);
    code_list_open(&executable->codes);
    pthread_mutex_init(&executable->lock, NULL);
    *out = executable;
    return SMELT_OK;
}

static void code_free(struct code_head *head) {
    struct cuda_code *code = (struct cuda_code *)head;
    image_free(&head->image);
    free(code->slots);
    free(code);
}

void cuda_unload(struct executable *executable) {
    if (!executable) return;
    for (struct code_head *head = atomic_load(&executable->codes.first); head; head = head->next) {
        struct cuda_code *code = (struct cuda_code *)head;
        cuda_module_free(executable->gpu, atomic_load(&code->module));
    }
    code_list_close(&executable->codes, code_free);
    pthread_mutex_destroy(&executable->lock);
    free(executable->name);
    free(executable);
}

/* ---- Codes. */

static bool has_slot(const struct binding *binding) {
    return binding->kind == BINDING_BUFFER || binding->kind == BINDING_THREADGROUP;
}

/* 0: of structures, whose elements are not known. */
static uint8_t element_bytes(const struct binding *binding) {
    smelt_dtype dtype = BINDING_DTYPE(binding->type);
    if (binding->kind != BINDING_BUFFER || dtype == SMELT_NO_DTYPE) return 0;
    return dtype == SMELT_COMPLEX64 ? sizeof(float) : (uint8_t)smelt_dtype_bytes(dtype);
}

/* Where the contents of inlined buffers lie, behind all slots: as src/compiler/ptx/parameters.c counts. */
static smelt_status lay_out(const char *name, struct cuda_code *code) {
    const struct image *image = &code->head.image;
    uint32_t count = 0;
    for (int32_t i = 0; i < image->binding_count; i++) count += has_slot(&image->bindings[i]);
    code->slots = calloc(count + 1, sizeof *code->slots);
    if (!code->slots) return fail_out_of_memory(count * sizeof *code->slots);
    uint64_t offset = (sizeof(struct cuda_parameters) + count * sizeof(uint64_t) + 15) / 16 * 16;
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

/* Takes the image over, on success or not. */
static smelt_status code_create(const char *name, const struct code_shape *shape, struct image *image,
                                struct cuda_code **out) {
    struct cuda_code *code = calloc(1, sizeof *code);
    if (!code) {
        image_free(image);
        return fail_out_of_memory(sizeof *code);
    }
    code->head.shape = *shape;
    code->head.image = *image;
    *image = (struct image){0};
    smelt_status status = code->head.image.engine == ENGINE_PTX
                              ? lay_out(name, code)
                              : fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' is not for a GPU", name);
    if (status != SMELT_OK) {
        code_free(&code->head);
        return status;
    }
    *out = code;
    return SMELT_OK;
}

/* Compiles outside the lock: two threads may compile for the same shape, one result is kept. */
static smelt_status make_code(struct executable *executable, const struct code_shape *shape,
                              struct cuda_code **code, struct preparation *preparation) {
    struct image image = {0};
    bool cache_hit = false;
    struct cuda_code *made = NULL;
    TRY(executable->source.compile(executable->source.context, executable->gpu->device.target, shape, &image,
                                   &cache_hit));
    TRY(code_create(executable->name, shape, &image, &made));
    *code = (struct cuda_code *)code_list_add(&executable->codes, &made->head, code_free);
    preparation_note(preparation, cache_hit);
    return SMELT_OK;
}

static bool is_current(const struct cuda_module *module, const struct cuda_gpu *gpu) {
    return module && module->epoch == atomic_load_explicit(&gpu->epoch, memory_order_relaxed);
}

static smelt_status get_module(struct executable *executable, struct cuda_code *code,
                               struct cuda_module **module) {
    CUcontext previous;
    smelt_status status = SMELT_OK;
    TRY(cuda_enter(executable->gpu, &previous));
    pthread_mutex_lock(&executable->lock);
    *module = atomic_load(&code->module);
    if (!is_current(*module, executable->gpu)) {
        struct cuda_module *before = *module;
        status = cuda_module_load(executable->gpu, executable->name, &code->head.image, module);
        if (status == SMELT_OK) {
            (*module)->before = before;
            atomic_store_explicit(&code->module, *module, memory_order_release);
        }
    }
    pthread_mutex_unlock(&executable->lock);
    cuda_leave(executable->gpu, previous);
    return status;
}

smelt_status cuda_code_for(const struct launch *launch, struct cuda_code **out, struct cuda_module **module,
                           struct preparation *preparation) {
    struct executable *executable = launch->executable;
    struct code_shape shape;
    gpu_shape(launch, executable->source.barrier_hint, &shape);
    struct cuda_code *code = (struct cuda_code *)code_list_find(&executable->codes, &shape);
    if (!code) TRY(make_code(executable, &shape, &code, preparation));
    *module = atomic_load_explicit(&code->module, memory_order_acquire);
    if (!is_current(*module, executable->gpu)) TRY(get_module(executable, code, module));
    *out = code;
    return SMELT_OK;
}
