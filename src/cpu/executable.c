#include "cpu/executable.h"
#include "cpu/shape.h"

#include <stdlib.h>
#include <string.h>

#define ENTRY_NAME "__smelt_entry"

smelt_status executable_create(const struct code_source *source, const char *name, enum engine engine,
                               struct executable **out) {
    struct executable *executable = calloc(1, sizeof *executable);
    if (executable) executable->name = strdup(name);
    if (!executable || !executable->name) {
        free(executable);
        return fail_out_of_memory(sizeof *executable);
    }
    executable->source = *source;
    executable->engine = engine;
    pthread_mutex_init(&executable->lock, NULL);
    atomic_init(&executable->codes, NULL);
    *out = executable;
    return SMELT_OK;
}

static void code_free(struct code *code) {
    object_unload(&code->object);
    image_free(&code->image);
    free(code);
}

void executable_free(struct executable *executable) {
    if (!executable) return;
    for (struct code *code = atomic_load(&executable->codes), *next; code; code = next) {
        next = code->next;
        code_free(code);
    }
    pthread_mutex_destroy(&executable->lock);
    free(executable->name);
    free(executable);
}

/* Makes an image runnable. Takes it over, on success or not. */
static smelt_status code_create(const struct executable *executable, const struct code_shape *shape,
                                struct image *image, struct code **out) {
    struct code *code = calloc(1, sizeof *code);
    if (!code) {
        image_free(image);
        return fail_out_of_memory(sizeof *code);
    }
    code->shape = *shape;
    code->image = *image;
    *image = (struct image){0};
    const struct image *own = &code->image;
    const char *name = executable->name;
    smelt_status status = SMELT_OK;
    if (own->engine == ENGINE_SIMD && (!own->lanes || own->lanes > GANG_MAX_LANES))
        status =
            fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' has gangs of %u threads", name, own->lanes);
    if (status == SMELT_OK) {
        status = object_load(own->object, own->object_size, &code->object);
        if (status != SMELT_OK) (void)fail_within(status, "kernel '%s'", name);
    }
    if (status == SMELT_OK) {
        const void *entry = object_symbol(own->object, own->object_size, &code->object, ENTRY_NAME);
        memcpy(&code->thread, &entry, sizeof entry);
        memcpy(&code->gang, &entry, sizeof entry);
        if (!entry) status = fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' has no entry point", name);
    }
    if (status != SMELT_OK) {
        code_free(code);
        return status;
    }
    *out = code;
    return SMELT_OK;
}

static struct code *find(struct executable *executable, const struct code_shape *shape) {
    struct code *code = atomic_load_explicit(&executable->codes, memory_order_acquire);
    while (code && memcmp(&code->shape, shape, sizeof *shape) != 0) code = code->next;
    return code;
}

/* Once a kernel. */
static void log_refusal(struct executable *executable, const struct code *code) {
    if (!code->image.refusal) return;
    pthread_mutex_lock(&executable->lock);
    bool logged = executable->refusal_logged;
    executable->refusal_logged = true;
    pthread_mutex_unlock(&executable->lock);
    if (!logged)
        log_line(SMELT_LOG_INFO, "kernel '%s' runs on the scalar engine: %s", executable->name,
                 code->image.refusal);
}

void executable_add(struct executable *executable, struct code *made, const struct code **code) {
    pthread_mutex_lock(&executable->lock);
    struct code *found = find(executable, &made->shape);
    if (!found) {
        made->next = atomic_load(&executable->codes);
        atomic_store_explicit(&executable->codes, made, memory_order_release);
    }
    pthread_mutex_unlock(&executable->lock);
    if (found) code_free(made);
    *code = found ? found : made;
}

/* Compiles outside the lock: two threads may compile for the same shape, one result is kept. */
static smelt_status get_code(struct executable *executable, const struct code_shape *shape,
                             const struct code **out, struct preparation *preparation) {
    *out = find(executable, shape);
    if (*out) return SMELT_OK;
    struct image image = {0};
    struct code *made = NULL;
    bool cache_hit = false;
    TRY(executable->source.compile(executable->source.context, NULL, shape, &image, &cache_hit));
    TRY(code_create(executable, shape, &image, &made));
    log_refusal(executable, made);
    executable_add(executable, made, out);
    if (preparation) {
        preparation->cache_hit = cache_hit && (preparation->cache_hit || !preparation->compiled);
        preparation->compiled = true;
    }
    return SMELT_OK;
}

smelt_status executable_codes(struct executable *executable, const struct launch *launch,
                              struct launch_codes *codes, struct preparation *preparation) {
    struct shape_request request = {.polled = launch->timeout > 0,
                                    .large = launch->large,
                                    .barrier_hint = executable->source.barrier_hint};
    struct launch_shapes shapes = {.has_full = true};
    for (int d = 0; d < 3; d++) {
        request.grid[d] = launch->grid[d];
        request.group_size[d] = launch->group_size[d];
    }
    if (executable->engine == ENGINE_SIMD) launch_shapes(&request, &shapes);
    *codes = (struct launch_codes){NULL, NULL};
    if (shapes.has_full) TRY(get_code(executable, &shapes.full, &codes->full, preparation));
    bool scalar = codes->full && codes->full->image.engine == ENGINE_SCALAR;
    if (shapes.has_edge && !scalar) {
        TRY(get_code(executable, &shapes.edge, &codes->edge, preparation));
        scalar = codes->edge->image.engine == ENGINE_SCALAR;
        if (scalar) codes->full = NULL;
    }
    if (scalar && !codes->full) codes->full = codes->edge;
    if (scalar) codes->edge = codes->full;
    return SMELT_OK;
}
