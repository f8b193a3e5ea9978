/* Which launches copy matrices in bfloat before they begin, and how: the operands that the code asks for,
 * what a copy must save to be worth its time, its memory, and the launch of the kernel that makes it. */
#include "device/cuda/expand.h"
#include "base/setting.h"
#include "device/cuda/memory.h"
#include "device/cuda/timeline.h"
#include "smelt/tensor.h"

#include <stdlib.h>
#include <string.h>

/* On an H200, a product by copies saves about 2.6e-15 s per multiplication and addition, 1.7e-15 s of small
 * ones; a copy takes 5.5e-6 s and 0.7e-12 s per element. So 300 products per element pay for it, and 2e9 for
 * its launch. Square matrices of fp8: 2048 would take 50 us with copies, and take 47 us without; 2560 take 85
 * instead of 110. 512 x 8192 by 8192 x 8192: 154 instead of 192. */
#define PRODUCTS_PER_ELEMENT 320
#define PRODUCTS_PER_COPY 0x1p32

/* Of the GPU's memory, for the copies of one launch. */
#define MEMORY_PART 16
#define MOST_LINES 65535 /* rows of blocks */
#define BFLOAT_BYTES 2

enum expand_setting { EXPAND_LARGE, EXPAND_NEVER, EXPAND_ALWAYS };

static enum expand_setting setting_now(void) {
    static struct setting setting = {
        .variable = "SMELT_GPU_EXPAND", .words = {"large", "never", "always"}, .warned = ATOMIC_FLAG_INIT};
    return (enum expand_setting)setting_choice(&setting);
}

/* ---- Code, loaded at the first use in each of the GPU's epochs. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_module *modules[CUDA_MOST_DEVICES][EXPAND_KINDS];
static bool unavailable[CUDA_MOST_DEVICES][EXPAND_KINDS]; /* the driver cannot assemble it */

static struct cuda_module *load(struct cuda_gpu *gpu, int kind) {
    struct text text = {0};
    struct cuda_module *module = NULL;
    cuda_expand_write_code(&text, kind);
    struct image image = {.object = text.data, .object_size = text.length};
    if (text.failed || cuda_module_load(gpu, "smelt_expand", &image, &module) != SMELT_OK) module = NULL;
    text_free(&text);
    return module;
}

static struct cuda_module *module_of(struct cuda_gpu *gpu, int kind) {
    if (gpu->ordinal >= CUDA_MOST_DEVICES) return NULL;
    pthread_mutex_lock(&lock);
    struct cuda_module **module = &modules[gpu->ordinal][kind];
    bool current = *module && (*module)->epoch == atomic_load(&gpu->epoch);
    if (!current && !unavailable[gpu->ordinal][kind]) {
        struct cuda_module *made = load(gpu, kind);
        if (made) made->before = *module, *module = made;
        unavailable[gpu->ordinal][kind] = !made;
        current = made;
    }
    struct cuda_module *found = current ? *module : NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- Operands. */

static int power_of(int64_t number) {
    int power = 0;
    while (number > 1 && number % 2 == 0) number /= 2, power++;
    return number == 1 ? power : -1;
}

static bool is_on_gpu(const struct launch_buffer *buffer) {
    return buffer->memory && buffer->memory->space;
}

/* Whether the matrix can be copied: chunks are aligned, and each has one scale. */
static bool describe(const struct flight *f, const struct tensor_binding *tensor, struct expansion *e) {
    const struct launch_buffer *codes = &f->request->buffers[tensor->index], *scales = codes + TENSOR_SCALES,
                               *layout = codes + TENSOR_LAYOUT;
    int64_t words[6]; /* extents, strides, strides of scales */
    int bits = smelt_element_bits(tensor->element);
    e->kind = cuda_expand_kind(tensor->element);
    if (e->kind < 0 || tensor->rank != 2 || tensor->scales != SMELT_UE8M0) return false;
    if (!is_on_gpu(codes) || !is_on_gpu(scales) || layout->memory || layout->bytes < sizeof words)
        return false;
    memcpy(words, launch_address(layout), sizeof words);
    int64_t width = words[0], height = words[1], stride = words[3], scale_stride = words[5];
    int across = power_of(tensor->blocks[0]), down = power_of(tensor->blocks[1]);
    uint64_t address = (uintptr_t)launch_address(codes);
    if (width < EXPAND_CHUNK || width % EXPAND_CHUNK || width > INT32_MAX / 2 || height < 1 ||
        height > INT32_MAX / 2)
        return false;
    /* The copy has the same stride: few gaps, and no row in another's. */
    if (stride < width || stride / 2 > width || stride % EXPAND_CHUNK || address % (uint64_t)bits)
        return false;
    if (across < 3 || down < 0 || across > 30 || down > 30 || scale_stride < 0) return false;
    e->width = width, e->height = height;
    e->parameters = (struct expand_parameters){.codes = address,
                                               .scales = (uintptr_t)launch_address(scales),
                                               .line_bytes = (uint64_t)(stride * bits / 8),
                                               .copy_bytes = (uint64_t)stride * BFLOAT_BYTES,
                                               .scale_step = (uint64_t)scale_stride,
                                               .chunks = (uint32_t)(width / EXPAND_CHUNK),
                                               .rows = (uint32_t)height,
                                               .across = (uint32_t)across - 3,
                                               .down = (uint32_t)down};
    return true;
}

static bool is_of(const struct tensor_binding *tensor, int index) {
    return tensor->expands && (index == tensor->index || index == tensor->index + TENSOR_SCALES);
}

/* The code writes to none of the matrices that it expands. */
static bool is_only_read(const struct flight *f, int slot) {
    const struct image *image = &f->code->head.image;
    for (int32_t i = 0; i < image->tensor_count; i++)
        if (is_of(&image->tensors[i], f->code->slots[slot].index)) return true;
    return !f->code->slots[slot].writable;
}

static bool is_written(const struct flight *f, const struct tensor_binding *tensor) {
    const struct launch_buffer *codes = &f->request->buffers[tensor->index];
    for (int i = 0; i < (int)f->code->slot_count; i++) {
        const struct cuda_slot *slot = &f->code->slots[i];
        const struct launch_buffer *buffer = &f->request->buffers[slot->index];
        if (slot->threadgroup || !is_on_gpu(buffer) || is_only_read(f, i)) continue;
        if (launch_buffers_overlap(buffer, codes) || launch_buffers_overlap(buffer, codes + TENSOR_SCALES))
            return true;
    }
    return false;
}

/* False if there are too many, or one cannot be copied. */
static bool find(struct flight *f) {
    const struct image *image = &f->code->head.image;
    for (int32_t i = 0; i < image->tensor_count; i++) {
        const struct tensor_binding *tensor = &image->tensors[i];
        if (!tensor->expands) continue;
        if (f->expansion_count == MOST_EXPANSIONS || tensor->index + TENSOR_SCALES >= LAUNCH_MAX_BUFFERS ||
            !describe(f, tensor, &f->expansions[f->expansion_count]) || is_written(f, tensor))
            return false;
        f->expansion_count++;
    }
    return true;
}

/* ---- What pays. */

/* The number of terms of a sum: an extent that both matrices have. */
static int64_t count_terms(const struct flight *f) {
    const struct expansion *a = &f->expansions[0], *b = &f->expansions[f->expansion_count - 1];
    if (a->width == b->width) return a->width;
    if (a->width == b->height) return a->width;
    if (a->height == b->width || a->height == b->height) return a->height;
    return a->width < b->width ? a->width : b->width;
}

static bool pays(const struct flight *f) {
    const uint32_t *groups = f->request->groups;
    double elements = 0, products = (double)groups[0] * groups[1] * groups[2] *
                                    f->code->head.image.expanded_tile * (double)count_terms(f);
    for (int i = 0; i < f->expansion_count; i++)
        elements += (double)f->expansions[i].width * (double)f->expansions[i].height;
    return products >= PRODUCTS_PER_ELEMENT * elements + PRODUCTS_PER_COPY * f->expansion_count;
}

/* ---- The launch. */

static uint64_t bytes_of(const struct expansion *e) {
    return ((uint64_t)e->height * e->parameters.copy_bytes + 255) / 256 * 256;
}

/* False if there is no memory. */
static bool take_memory(struct flight *f) {
    uint64_t bytes = 0;
    CUdeviceptr block;
    for (int i = 0; i < f->expansion_count; i++) bytes += bytes_of(&f->expansions[i]);
    if (bytes > f->gpu->memory_bytes / MEMORY_PART || !cuda_copies_take(f->stream, bytes, &block))
        return false;
    f->scratch[f->scratch_count++] = block;
    for (int i = 0; i < f->expansion_count; i++) {
        f->expansions[i].parameters.copy = block;
        block += bytes_of(&f->expansions[i]);
    }
    return true;
}

static bool load_code(struct flight *f) {
    for (int i = 0; i < f->expansion_count; i++) {
        f->expansions[i].module = module_of(f->gpu, f->expansions[i].kind);
        if (!f->expansions[i].module) return false;
    }
    return true;
}

void cuda_expand_plan(struct flight *f) {
    uint32_t count = count_expanded(&f->code->head.image);
    f->expansion_count = 0;
    if (!count) return;
    uint64_t *copies = (uint64_t *)(f->parameters.bytes + f->code->copies_offset);
    memset(copies, 0, count * sizeof *copies);
    enum expand_setting setting = setting_now();
    bool possible = setting != EXPAND_NEVER && find(f) && (setting == EXPAND_ALWAYS || pays(f)) &&
                    load_code(f) && take_memory(f);
    if (!possible) f->expansion_count = 0;
    for (int i = 0; i < f->expansion_count; i++) copies[i] = f->expansions[i].parameters.copy;
}

static smelt_status convert(struct flight *f, struct expansion *e) {
    const struct cuda_driver *driver = f->gpu->driver;
    struct expand_parameters *p = &e->parameters;
    void *parameters[] = {p};
    struct cuda_mark mark = cuda_mark_begin(f->stream);
    uint32_t width = EXPAND_THREADS * EXPAND_ROUNDS;
    CUDA_TRY(f->gpu,
             driver->launch(e->module->function, (p->chunks - 1) / width + 1,
                            p->rows < MOST_LINES ? p->rows : MOST_LINES, 1, EXPAND_THREADS, 1, 1, 0,
                            f->stream->handle, parameters, NULL),
             "the conversion of a matrix for kernel '%s'", f->executable->name);
    cuda_mark_end_bytes(f->stream, &mark, "expand a matrix", bytes_of(e));
    cuda_module_launched(e->module, f->stream);
    return SMELT_OK;
}

smelt_status cuda_expand_run(struct flight *f) {
    for (int i = 0; i < f->expansion_count; i++) TRY(convert(f, &f->expansions[i]));
    return SMELT_OK;
}
