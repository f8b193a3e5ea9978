#include "device/cpu/executable.h"
#include "device/cpu_shape.h"
#include "abi/entry_names.h"

#include <string.h>

smelt_status cpu_make_code(struct executable *executable, struct code_head *head) {
    struct code *code = (struct code *)head;
    const struct image *image = &head->image;
    const char *name = executable->name;
    if (engine_traits(image->engine)->is_vector && (!image->lanes || image->lanes > GANG_MAX_LANES))
        return fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' has gangs of %u threads", name,
                    image->lanes);
    smelt_status status = object_load(image->object, image->object_size, ENTRY_NAME, &code->object);
    if (status != SMELT_OK) return fail_within(status, "kernel '%s'", name);
    const void *entry = code->object.entry;
    if (!entry) return fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' has no entry point", name);
    memcpy(&code->thread, &entry, sizeof entry);
    memcpy(&code->gang, &entry, sizeof entry);
    if (image->refusal && !atomic_flag_test_and_set(&executable->refusal_logged))
        log_line(SMELT_LOG_INFO, "kernel '%s' runs on the scalar engine: %s", name, image->refusal);
    return SMELT_OK;
}

void cpu_free_code(struct executable *executable, struct code_head *code) {
    (void)executable;
    object_unload(&((struct code *)code)->object);
}

static smelt_status get_code(struct executable *executable, const struct code_shape *shape,
                             const struct code **code, struct preparation *preparation) {
    struct code_head *head;
    TRY(executable_code(executable, shape, &head, preparation));
    *code = (const struct code *)head;
    return SMELT_OK;
}

smelt_status executable_codes(const struct launch *launch, struct launch_codes *codes,
                              struct preparation *preparation) {
    struct executable *executable = launch->executable;
    struct launch_shapes shapes = {.has_full = true};
    if (!engine_traits(executable->device->engine)->serves_all)
        launch_shapes(launch, executable->source.barrier_hint, &shapes);
    *codes = (struct launch_codes){NULL, NULL};
    if (shapes.has_full) TRY(get_code(executable, &shapes.full, &codes->full, preparation));
    bool scalar = codes->full && cpu_code_serves_all(codes->full);
    if (shapes.has_edge && !scalar) {
        TRY(get_code(executable, &shapes.edge, &codes->edge, preparation));
        scalar = cpu_code_serves_all(codes->edge);
        if (scalar) codes->full = NULL;
    }
    if (scalar && !codes->full) codes->full = codes->edge;
    if (scalar) codes->edge = codes->full;
    return SMELT_OK;
}
