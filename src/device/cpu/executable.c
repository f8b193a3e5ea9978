#include "device/cpu/executable.h"
#include "device/cpu_shape.h"
#include "abi/entry_names.h"

#include <stdlib.h>
#include <string.h>

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
    code_list_open(&executable->codes);
    *out = executable;
    return SMELT_OK;
}

static void code_free(struct code_head *head) {
    struct code *code = (struct code *)head;
    object_unload(&code->object);
    image_free(&head->image);
    free(code);
}

void executable_free(struct executable *executable) {
    if (!executable) return;
    code_list_close(&executable->codes, code_free);
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
    code->head.shape = *shape;
    code->head.image = *image;
    *image = (struct image){0};
    const struct image *own = &code->head.image;
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
        code_free(&code->head);
        return status;
    }
    *out = code;
    return SMELT_OK;
}

/* Once a kernel. */
static void log_refusal(struct executable *executable, const struct code *code) {
    const char *refusal = code->head.image.refusal;
    if (refusal && !atomic_flag_test_and_set(&executable->refusal_logged))
        log_line(SMELT_LOG_INFO, "kernel '%s' runs on the scalar engine: %s", executable->name, refusal);
}

const struct code *executable_add(struct executable *executable, struct code *made) {
    return (const struct code *)code_list_add(&executable->codes, &made->head, code_free);
}

/* Compiles outside the lock: two threads may compile for the same shape, one result is kept. */
static smelt_status get_code(struct executable *executable, const struct code_shape *shape,
                             const struct code **out, struct preparation *preparation) {
    *out = (const struct code *)code_list_find(&executable->codes, shape);
    if (*out) return SMELT_OK;
    struct image image = {0};
    struct code *made = NULL;
    bool cache_hit = false;
    TRY(executable->source.compile(executable->source.context, NULL, shape, &image, &cache_hit));
    TRY(code_create(executable, shape, &image, &made));
    log_refusal(executable, made);
    *out = executable_add(executable, made);
    preparation_note(preparation, cache_hit);
    return SMELT_OK;
}

smelt_status executable_codes(const struct launch *launch, struct launch_codes *codes,
                              struct preparation *preparation) {
    struct executable *executable = launch->executable;
    struct launch_shapes shapes = {.has_full = true};
    if (executable->engine == ENGINE_SIMD) launch_shapes(launch, executable->source.barrier_hint, &shapes);
    *codes = (struct launch_codes){NULL, NULL};
    if (shapes.has_full) TRY(get_code(executable, &shapes.full, &codes->full, preparation));
    bool scalar = codes->full && codes->full->head.image.engine == ENGINE_SCALAR;
    if (shapes.has_edge && !scalar) {
        TRY(get_code(executable, &shapes.edge, &codes->edge, preparation));
        scalar = codes->edge->head.image.engine == ENGINE_SCALAR;
        if (scalar) codes->full = NULL;
    }
    if (scalar && !codes->full) codes->full = codes->edge;
    if (scalar) codes->edge = codes->full;
    return SMELT_OK;
}
