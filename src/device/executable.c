#include "device/executable.h"

#include <stdlib.h>
#include <string.h>

smelt_status executable_load(const struct device *device, const struct code_source *source, const char *name,
                             struct executable **out) {
    struct executable *executable = calloc(1, sizeof *executable);
    if (executable) executable->name = strdup(name);
    if (!executable || !executable->name) {
        free(executable);
        return fail_out_of_memory(sizeof *executable);
    }
    executable->device = device;
    executable->source = *source;
    pthread_mutex_init(&executable->lock, NULL);
    *out = executable;
    return SMELT_OK;
}

static void code_free(struct executable *executable, struct code_head *code) {
    executable->device->free_code(executable, code);
    image_free(&code->image);
    free(code);
}

void executable_unload(struct executable *executable) {
    if (!executable) return;
    for (struct code_head *code = atomic_load(&executable->first), *next; code; code = next) {
        next = code->next;
        code_free(executable, code);
    }
    pthread_mutex_destroy(&executable->lock);
    free(executable->name);
    free(executable);
}

static struct code_head *find(struct executable *executable, const struct code_shape *shape) {
    struct code_head *code = atomic_load_explicit(&executable->first, memory_order_acquire);
    while (code && memcmp(&code->shape, shape, sizeof *shape) != 0) code = code->next;
    return code;
}

struct code_head *executable_add(struct executable *executable, struct code_head *made) {
    pthread_mutex_lock(&executable->lock);
    struct code_head *found = find(executable, &made->shape);
    if (!found) {
        made->next = atomic_load(&executable->first);
        atomic_store_explicit(&executable->first, made, memory_order_release);
    }
    pthread_mutex_unlock(&executable->lock);
    if (found) code_free(executable, made);
    return found ? found : made;
}

smelt_status executable_code(struct executable *executable, const struct code_shape *shape,
                             struct code_head **out, struct preparation *preparation) {
    const struct device *device = executable->device;
    const struct code_source *source = &executable->source;
    struct image image = {0};
    bool cache_hit = false;
    *out = find(executable, shape);
    if (*out) return SMELT_OK;
    TRY(source->compile(source->context, device->target, shape, &image, &cache_hit));
    struct code_head *code = calloc(1, device->code_bytes);
    if (!code) {
        image_free(&image);
        return fail_out_of_memory(device->code_bytes);
    }
    code->shape = *shape;
    code->image = image;
    smelt_status status = device->make_code(executable, code);
    if (status != SMELT_OK) {
        code_free(executable, code);
        return status;
    }
    *out = executable_add(executable, code);
    if (!preparation) return SMELT_OK;
    preparation->cache_hit = cache_hit && (preparation->cache_hit || !preparation->compiled);
    preparation->compiled = true;
    return SMELT_OK;
}
