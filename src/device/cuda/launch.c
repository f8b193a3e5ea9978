#include "device/cuda/launch.h"
#include "device/cuda/executable.h"
#include "device/cuda/expand.h"
#include "device/cuda/flight.h"
#include "device/cuda/kept.h"
#include "device/cuda/log.h"
#include "device/gpu_shape.h"
#include "device/cuda/timeline.h"

#include <stdlib.h>
#include <string.h>

/* Of the driver's `extra` argument. */
#define PARAMETER_BUFFER ((void *)1)
#define PARAMETER_BUFFER_BYTES ((void *)2)
#define PARAMETERS_END ((void *)0)

#define MAX_DYNAMIC_SHARED_BYTES 8 /* attribute of a function */

/* Threadgroup memory is laid out in steps of so many bytes. */
#define SHARED_STEP 128

/* ---- Sizes. */

/* Groups as the hardware's blocks; rows of them where there are more than it takes. Blocks of coarsened code
 * cover as much as the image says. */
static smelt_status measure_grid(struct flight *f) {
    const struct launch *request = f->request;
    const uint32_t *groups = request->groups;
    f->threads = 1;
    for (int d = 0; d < 3; d++) {
        f->threads *= request->group_size[d];
        f->parameters.head.grid[d] = request->grid[d];
        f->parameters.head.group_size[d] = request->group_size[d];
        f->parameters.head.groups[d] = f->blocks[d] = groups[d];
    }
    const struct image *image = &f->code->head.image;
    if (image->coarse[0]) {
        f->threads = image->block[0] * image->block[1] * image->block[2];
        for (int d = 0; d < 3; d++) {
            uint32_t covered = image->coarse[d] * image->block[d];
            f->blocks[d] = (request->grid[d] - 1) / covered + 1;
        }
        return SMELT_OK;
    }
    if (!f->code->head.shape.folded) return SMELT_OK;
    uint64_t total = (uint64_t)groups[0] * groups[1] * groups[2];
    uint64_t width = total < GPU_FOLDED_ROW ? total : GPU_FOLDED_ROW;
    uint64_t rows = (total + width - 1) / width;
    if (rows > GPU_MOST_BLOCKS)
        return fail(SMELT_ERROR_LIMIT,
                    "kernel '%s': the grid has %llu threadgroups; device '%s' allows at most %llu",
                    f->executable->name, (unsigned long long)total, f->gpu->name,
                    (unsigned long long)GPU_MOST_BLOCKS * GPU_FOLDED_ROW);
    f->blocks[0] = (uint32_t)width;
    f->blocks[1] = (uint32_t)rows;
    f->blocks[2] = 1;
    return SMELT_OK;
}

/* ---- Parameters. */

static bool is_on_gpu(const struct launch_buffer *buffer) {
    return buffer->memory && buffer->memory->space;
}

static bool is_sent(const struct flight *f, uint32_t slot) {
    const struct cuda_slot *s = &f->code->slots[slot];
    return !s->threadgroup && !s->inlined && !is_on_gpu(&f->request->buffers[s->index]);
}

static size_t room_for(size_t bytes) {
    return (bytes + SHARED_STEP) / SHARED_STEP * SHARED_STEP;
}

/* In a graph of the stream's owner: their block stays. */
static smelt_status keep_bytes(struct flight *f, size_t total) {
    char *bytes = calloc(1, total);
    size_t at = 0;
    if (!bytes) return fail_out_of_memory(total);
    for (uint32_t i = 0; i < f->code->slot_count; i++) {
        const struct launch_buffer *buffer = &f->request->buffers[f->code->slots[i].index];
        if (!is_sent(f, i)) continue;
        if (buffer->bytes) memcpy(bytes + at, launch_address(buffer), buffer->bytes);
        at += room_for(buffer->bytes);
    }
    smelt_status status = cuda_kept_bytes(f->gpu, bytes, total, &f->bytes);
    free(bytes);
    CUdeviceptr place = f->bytes;
    for (uint32_t i = 0; i < f->code->slot_count && status == SMELT_OK; i++) {
        if (!is_sent(f, i)) continue;
        f->parameters.head.slots[i] = place;
        place += room_for(f->request->buffers[f->code->slots[i].index].bytes);
    }
    return status;
}

/* Bytes on the host that the code reads behind an address get a block of their own. */
static smelt_status send_bytes(struct flight *f) {
    const struct cuda_code *code = f->code;
    const struct launch *request = f->request;
    size_t total = 0;
    for (uint32_t i = 0; i < code->slot_count; i++) {
        if (is_sent(f, i)) total += room_for(request->buffers[code->slots[i].index].bytes);
    }
    if (!total) return SMELT_OK;
    if (cuda_stream_is_captured(f->stream)) return keep_bytes(f, total);
    TRY(flight_scratch(f, total, &f->bytes));
    CUdeviceptr at = f->bytes;
    for (uint32_t i = 0; i < code->slot_count; i++) {
        const struct cuda_slot *slot = &code->slots[i];
        const struct launch_buffer *buffer = &request->buffers[slot->index];
        if (!is_sent(f, i)) continue;
        if (buffer->bytes) TRY(cuda_copy_in(f->stream, at, launch_address(buffer), buffer->bytes));
        f->parameters.head.slots[i] = at;
        at += room_for(buffer->bytes);
    }
    return SMELT_OK;
}

/* The extents of tested code's arguments, which follow the slots. */
static void fill_extents(struct flight *f) {
    const struct cuda_code *code = f->code;
    struct cuda_extent *extents = (struct cuda_extent *)&f->parameters.head.slots[code->slot_count];
    for (uint32_t i = 0; i < code->slot_count; i++) {
        const struct cuda_slot *slot = &code->slots[i];
        const struct launch_buffer *buffer = &f->request->buffers[slot->index];
        const size_t *memory = f->request->threadgroup_memory;
        if (slot->threadgroup)
            extents[i] = (struct cuda_extent){.bytes = memory ? memory[slot->index] : 0};
        else
            extents[i] = (struct cuda_extent){f->parameters.head.slots[i] - buffer->before,
                                              buffer->span ? buffer->span : buffer->bytes};
    }
}

static void copy_inlined(struct flight *f, const struct cuda_slot *slot) {
    const struct launch_buffer *buffer = &f->request->buffers[slot->index];
    memcpy(f->parameters.bytes + slot->offset, launch_address(buffer),
           buffer->bytes < slot->inlined ? buffer->bytes : slot->inlined);
}

static smelt_status fill_slots(struct flight *f) {
    const struct cuda_code *code = f->code;
    const struct launch *request = f->request;
    uint64_t shared = (code->head.image.threadgroup_bytes + SHARED_STEP - 1) / SHARED_STEP * SHARED_STEP;
    bool absent = false;
    for (uint32_t i = 0; i < code->slot_count; i++) {
        const struct cuda_slot *slot = &code->slots[i];
        const struct launch_buffer *buffer = &request->buffers[slot->index];
        uint64_t *value = &f->parameters.head.slots[i];
        if (slot->threadgroup) {
            *value = shared;
            if (!request->threadgroup_memory) continue;
            shared +=
                (request->threadgroup_memory[slot->index] + SHARED_STEP - 1) / SHARED_STEP * SHARED_STEP;
        } else if (is_on_gpu(buffer)) {
            *value = (uint64_t)(uintptr_t)launch_address(buffer);
            TRY(cuda_memory_use(buffer->memory, f->stream, slot->writable));
        } else if (slot->inlined) {
            *value = 0;
            copy_inlined(f, slot);
        } else {
            absent = true;
        }
    }
    f->shared_bytes = (uint32_t)shared;
    return absent ? send_bytes(f) : SMELT_OK;
}

/* Under the executable's lock: the allowed amount never decreases. */
static CUresult raise_limit(struct flight *f) {
    struct cuda_module *module = f->module;
    const struct cuda_driver *driver = f->gpu->driver;
    if (f->shared_bytes <= atomic_load(&module->most_bytes)) return CUDA_SUCCESS;
    CUresult result = driver->function_set(module->function, MAX_DYNAMIC_SHARED_BYTES, (int)f->shared_bytes);
    if (result == CUDA_SUCCESS) atomic_store(&module->most_bytes, f->shared_bytes);
    return result;
}

/* More than the default amount must be requested, once per module. */
static smelt_status allow_shared(struct flight *f) {
    struct executable *executable = f->executable;
    struct cuda_gpu *gpu = f->gpu;
    if (f->shared_bytes <= atomic_load_explicit(&f->module->most_bytes, memory_order_relaxed))
        return SMELT_OK;
    if (f->shared_bytes > gpu->device.threadgroup_limit)
        return fail(SMELT_ERROR_LIMIT,
                    "kernel '%s': a threadgroup uses %u bytes of threadgroup memory, in steps of %d; device "
                    "'%s' allows %llu",
                    executable->name, f->shared_bytes, SHARED_STEP, gpu->name,
                    (unsigned long long)gpu->device.threadgroup_limit);
    pthread_mutex_lock(&executable->lock);
    CUresult result = raise_limit(f);
    pthread_mutex_unlock(&executable->lock);
    CUDA_TRY(gpu, result, "kernel '%s', which needs %u bytes of threadgroup memory,", executable->name,
             f->shared_bytes);
    return SMELT_OK;
}

/* ---- Launches. */

static void trace(const struct flight *f, const struct cuda_mark *mark, CUresult result) {
    const struct launch *request = f->request;
    const uint32_t *grid = request->grid, *group = request->group_size;
    struct trace_slice slice = {.category = "kernel", .name = f->executable->name, .flow_in = request->flow};
    trace_triple(&slice, "grid", (uint64_t[3]){grid[0], grid[1], grid[2]});
    trace_triple(&slice, "threadgroup", (uint64_t[3]){group[0], group[1], group[2]});
    trace_triple(&slice, "blocks", (uint64_t[3]){f->blocks[0], f->blocks[1], f->blocks[2]});
    trace_integer(&slice, "shared_bytes", f->shared_bytes);
    if (result != CUDA_SUCCESS) trace_integer(&slice, "driver_error", result);
    cuda_mark_end(f->stream, mark, &slice);
}

/* Whether the launch may begin before the previous one on the stream ends. Not while this library or another
 * captures the stream: graphs keep to plain dependencies, which all drivers support. */
static bool starts_early(const struct flight *f) {
    const struct cuda_driver *driver = f->gpu->driver;
    int captures = 0;
    return f->code->head.image.early && f->gpu->early && !f->expansion_count && driver->launch_with &&
           !cuda_stream_records(f->stream) &&
           driver->capture_status(f->stream->handle, &captures) == CUDA_SUCCESS && !captures;
}

static CUresult start_early(const struct flight *f, void **extra) {
    struct cuda_launch_attribute early = {.id = CUDA_LAUNCH_EARLY, .value.flag = 1};
    struct cuda_launch_config config = {.grid = {f->blocks[0], f->blocks[1], f->blocks[2]},
                                        .block = {f->threads, 1, 1},
                                        .shared_bytes = f->shared_bytes,
                                        .stream = f->stream->handle,
                                        .attributes = &early,
                                        .attribute_count = 1};
    return f->gpu->driver->launch_with(&config, f->module->function, NULL, extra);
}

static smelt_status launch_kernel(struct flight *f) {
    struct cuda_gpu *gpu = f->gpu;
    size_t bytes = f->code->parameter_bytes;
    void *extra[] = {PARAMETER_BUFFER, &f->parameters, PARAMETER_BUFFER_BYTES, &bytes, PARAMETERS_END};
    struct cuda_mark mark = cuda_mark_begin(f->stream);
    CUresult result = starts_early(f) ? start_early(f, extra)
                                      : gpu->driver->launch(f->module->function, f->blocks[0], f->blocks[1],
                                                            f->blocks[2], f->threads, 1, 1, f->shared_bytes,
                                                            f->stream->handle, NULL, extra);
    if (mark.capture) trace(f, &mark, result);
    if (result != CUDA_SUCCESS) return cuda_fail(gpu, result, "kernel '%s'", f->executable->name);
    cuda_module_launched(f->module, f->stream);
    cuda_stream_note(f->stream, f->executable->name);
    return SMELT_OK;
}

/* Launches that a stream records share the memory of their copies, so those of another thread must not come
 * between a launch and its copies. */
smelt_status flight_launch(struct flight *f) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (!f->expansion_count) return launch_kernel(f);
    pthread_mutex_lock(&lock);
    smelt_status status = cuda_expand_run(f);
    if (status == SMELT_OK) status = launch_kernel(f);
    pthread_mutex_unlock(&lock);
    return status;
}

/* Whether the next launch may begin while this one runs. Its blocks then take room next to this one's, and
 * each block that allows it takes time, as chains of kernels with more blocks show. (Chains of exp on an
 * H200, in us per kernel, without and with: 64 blocks 1.00, 0.91; 256 blocks 1.08, 1.03; 1024 blocks 1.73,
 * 1.94.) */
static uint32_t has_few_blocks(const struct flight *f) {
    uint64_t blocks = (uint64_t)f->blocks[0] * f->blocks[1] * f->blocks[2];
    return f->gpu->early && blocks <= 2 * (uint64_t)f->gpu->device.multiprocessors;
}

static smelt_status enqueue(struct flight *f) {
    const struct launch *request = f->request;
    TRY(cuda_stream_for(f->gpu, request->stream, &f->stream));
    TRY(measure_grid(f));
    TRY(fill_slots(f));
    if (f->code->head.shape.tested) fill_extents(f);
    TRY(allow_shared(f));
    cuda_expand_plan(f);
    if (request->info) request->info->quick = f->code->head.image.quick;
    f->parameters.head.stop = f->parameters.head.log = 0;
    f->parameters.head.few = has_few_blocks(f);
    if (request->timeout > 0 || request->info || f->code->head.image.log_words || f->code->head.shape.tested)
        return flight_launch_and_wait(f);
    return flight_launch(f);
}

/* ---- Codes for buffers that begin anywhere, or overlap. */

/* Code is compiled for buffers that begin like arrays. Views may begin anywhere: there is other code for
 * them. */
static bool begins_anywhere(const struct flight *f) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < f->code->slot_count; i++) {
        const struct cuda_slot *slot = &f->code->slots[i];
        if (!slot->threadgroup && is_on_gpu(&f->request->buffers[slot->index]))
            all |= (uint64_t)(uintptr_t)launch_address(&f->request->buffers[slot->index]);
    }
    return all % BUFFER_ALIGNMENT != 0;
}

/* The hardware loads nothing from elsewhere than multiples of an element's size, and the device would be
 * lost. */
static smelt_status check_elements(const struct flight *f) {
    for (uint32_t i = 0; i < f->code->slot_count; i++) {
        const struct cuda_slot *slot = &f->code->slots[i];
        const struct launch_buffer *buffer = &f->request->buffers[slot->index];
        if (slot->threadgroup || !slot->element || !is_on_gpu(buffer)) continue;
        uint64_t address = (uint64_t)(uintptr_t)launch_address(buffer);
        if (address % slot->element)
            return fail(
                SMELT_ERROR_INVALID_ARGUMENT,
                "kernel '%s': buffer %d begins at address 0x%llx; device '%s' needs a multiple of %d, "
                "the size of the kernel's elements",
                f->executable->name, slot->index, (unsigned long long)address, f->gpu->name, slot->element);
    }
    return SMELT_OK;
}

/* ---- What buffers share. */

static bool written_overlaps(const struct flight *f) {
    const struct cuda_code *code = f->code;
    for (uint32_t i = 0; i < code->slot_count; i++) {
        const struct cuda_slot *written = &code->slots[i];
        const struct launch_buffer *buffer = &f->request->buffers[written->index];
        if (written->threadgroup || !written->writable || !is_on_gpu(buffer)) continue;
        for (uint32_t k = 0; k < code->slot_count; k++) {
            const struct cuda_slot *slot = &code->slots[k];
            if (k == i || slot->threadgroup || !is_on_gpu(&f->request->buffers[slot->index])) continue;
            if (launch_buffers_overlap(buffer, &f->request->buffers[slot->index])) return true;
        }
    }
    return false;
}

static smelt_status find_code(struct flight *f, struct launch *anywhere) {
    TRY(cuda_code_for(f->request, &f->code, &f->module, NULL));
    const struct code_shape *shape = &f->code->head.shape;
    bool begins = begins_anywhere(f), unaligned = shape->aligned && begins;
    bool overlapping = shape->distinct && written_overlaps(f);
    if (begins) TRY(check_elements(f));
    if (!unaligned && !overlapping) return SMELT_OK;
    *anywhere = *f->request;
    anywhere->unaligned |= unaligned;
    anywhere->overlapping |= overlapping;
    f->request = anywhere;
    return cuda_code_for(anywhere, &f->code, &f->module, NULL);
}

static smelt_status run(const struct launch *request) {
    struct executable *executable = request->executable;
    /* Not initialised: it is large, and each field is written before it is read. */
    struct flight f;
    CUcontext previous;
    f.executable = executable;
    f.gpu = cuda_gpu_of(executable->device);
    f.request = request;
    f.scratch_count = 0;
    f.logged = false;
    TRY(cuda_enter(f.gpu, &previous));
    struct launch anywhere;
    smelt_status status = find_code(&f, &anywhere);
    if (status == SMELT_OK) status = enqueue(&f);
    for (int i = 0; i < f.scratch_count; i++) cuda_scratch_give(f.stream, f.scratch[i]);
    cuda_leave(f.gpu, previous);
    if (f.logged) cuda_log_deliver(&f);
    return status;
}

smelt_status flight_scratch(struct flight *f, size_t bytes, CUdeviceptr *address) {
    TRY(cuda_scratch_take(f->stream, bytes, address));
    f->scratch[f->scratch_count++] = *address;
    return SMELT_OK;
}

/* ---- The device's functions. */

static smelt_status prepare(struct launch *launch, struct preparation *preparation) {
    struct cuda_code *code;
    struct cuda_module *module;
    *preparation = (struct preparation){false, false};
    TRY(cuda_code_for(launch, &code, &module, preparation));
    launch->image = &code->head.image;
    return SMELT_OK;
}

void cuda_device_functions(struct device *device) {
    device->code_bytes = sizeof(struct cuda_code);
    device->make_code = cuda_make_code;
    device->free_code = cuda_free_code;
    device->load_code = cuda_load_code;
    device->prepare = prepare;
    device->shape = gpu_shape;
    device->run = run;
}
