#include "device/cpu/executable.h"
#include "device/cpu/values.h"
#include "device/cpu_shape.h"
#include "device/effort.h"
#include "abi/entry_names.h"

#include <string.h>

smelt_status cpu_make_code(struct executable *executable, struct code_head *head) {
    struct code *code = (struct code *)head;
    const struct image *image = &head->image;
    const char *name = executable->name;
    if (engine_traits(image->engine)->is_vector && (!image->lanes || image->lanes > GANG_MAX_LANES))
        return fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' has gangs of %u threads", name,
                    image->lanes);
    smelt_status status =
        object_load(image->object, image->object_size, ENTRY_NAME, QUESTIONS_NAME, &code->object);
    if (status != SMELT_OK) return fail_within(status, "kernel '%s'", name);
    const void *entry = code->object.entry;
    if (!entry) return fail(SMELT_ERROR_FORMAT, "the compiled entry '%s' has no entry point", name);
    memcpy(&code->thread, &entry, sizeof entry);
    memcpy(&code->gang, &entry, sizeof entry);
    memcpy(&code->questions, &code->object.other, sizeof entry);
    if (image->refusal && !atomic_flag_test_and_set(&executable->refusal_logged))
        log_line(SMELT_LOG_INFO, "kernel '%s' %s: %s", name,
                 engine_traits(image->engine)->is_vector ? "has less code than its best form"
                                                         : "runs on the scalar engine",
                 image->refusal);
    return cpu_value_sets_create(executable, code);
}

void cpu_free_code(struct executable *executable, struct code_head *code) {
    (void)executable;
    cpu_value_sets_free(((struct code *)code)->sets);
    object_unload(&((struct code *)code)->object);
}

/* ---- The codes of a launch. */

static smelt_status get_code(struct executable *executable, const struct code_shape *shape,
                             enum compile_effort effort, const struct code **code,
                             struct preparation *preparation) {
    struct code_head *head;
    TRY(executable_code(executable, shape, effort, &head, preparation));
    *code = (const struct code *)head;
    return SMELT_OK;
}

static bool is_scalar(const struct code *code) {
    return code && cpu_code_is_scalar(code);
}

/* If a code is the scalar engine's, one code runs all groups, so that a launch has one engine: the code for
 * the edge, which serves full groups, too. Scalar code for full groups may be specialised to their size.
 * Returns whether there is such a code. */
static bool share_code(const struct launch_shapes *shapes, struct launch_codes *codes) {
    if (!is_scalar(codes->full) && !is_scalar(codes->edge)) return false;
    codes->full = codes->edge = shapes->has_edge ? codes->edge : codes->full;
    return codes->full;
}

/* The best codes that are there; true: all that are needed. */
static bool find_best(struct executable *executable, const struct launch_shapes *shapes,
                      struct launch_codes *codes) {
    *codes = (struct launch_codes){NULL, NULL};
    if (shapes->has_full)
        codes->full = (const struct code *)executable_find(executable, &shapes->full, false);
    if (shapes->has_edge)
        codes->edge = (const struct code *)executable_find(executable, &shapes->edge, false);
    return share_code(shapes, codes) ||
           ((codes->full || !shapes->has_full) && (codes->edge || !shapes->has_edge));
}

/* Quick code of gangs is vector code, as the best is, and most launches end within this time, or soon after.
 * On two CPUs, a compiler that runs at the same time slows them down: with its compile, the first launch of a
 * quantised product took 230 ms, and without 165. Quick code of the scalar engine may run fifty times as
 * long, so there the compiler begins at once. */
#define GANGS_ALONE_SECONDS 0.2

/* Compiles missing codes. Quick code for the edge runs full groups, too. */
static smelt_status make_codes(struct executable *executable, const struct launch_shapes *shapes,
                               enum compile_effort effort, struct launch_codes *codes,
                               struct preparation *preparation) {
    *codes = (struct launch_codes){NULL, NULL};
    if (shapes->has_edge) TRY(get_code(executable, &shapes->edge, effort, &codes->edge, preparation));
    if (share_code(shapes, codes) || !shapes->has_full) return SMELT_OK;
    codes->full = codes->edge;
    if (codes->edge && codes->edge->head.image.quick) return SMELT_OK;
    TRY(get_code(executable, &shapes->full, effort, &codes->full, preparation));
    const struct code *full = codes->full;
    (void)share_code(shapes, codes);
    /* The best code for the edge runs in place of quick code: nothing else tells that the best is missing. */
    if (codes->full != full && full->head.image.quick)
        executable_improve(executable, &shapes->full, GANGS_ALONE_SECONDS);
    return SMELT_OK;
}

static struct launch_shapes shapes_of(const struct launch *launch) {
    const struct executable *executable = launch->executable;
    struct launch_shapes shapes = {.has_full = true,
                                   .full = {.engine = executable->device->engine,
                                            .tested = launch->tested,
                                            .also = (uint8_t)launch->also}};
    if (!engine_traits(executable->device->engine)->serves_all)
        launch_shapes(launch, executable->source.barrier_hint, &shapes);
    return shapes;
}

static smelt_status get_codes(const struct launch *launch, struct launch_codes *codes,
                              struct preparation *preparation) {
    struct executable *executable = launch->executable;
    struct launch_shapes shapes = shapes_of(launch);
    if (find_best(executable, &shapes, codes)) return SMELT_OK;
    return make_codes(executable, &shapes, launch_effort(launch), codes, preparation);
}

static void improve(const struct launch *launch, const struct launch_codes *codes, double seconds) {
    if (!cpu_codes_are_quick(codes)) return;
    struct launch_shapes shapes = shapes_of(launch);
    if (shapes.has_edge) executable_improve(launch->executable, &shapes.edge, seconds);
    if (shapes.has_full) executable_improve(launch->executable, &shapes.full, seconds);
}

static double seconds_alone(const struct launch_codes *codes) {
    return codes->full && cpu_code_is_scalar(codes->full) ? 0 : GANGS_ALONE_SECONDS;
}

void executable_codes_improve(const struct launch *launch, const struct launch_codes *codes) {
    improve(launch, codes, 0);
}

static bool are_joined(const struct launch_codes *codes) {
    return (!codes->full || codes->full->head.image.joined) &&
           (!codes->edge || codes->edge->head.image.joined);
}

static smelt_status join_codes(const struct launch **launch, struct launch *joined,
                               struct launch_codes *codes, struct preparation *preparation) {
    struct launch_codes alone;
    TRY(get_codes(*launch, codes, preparation));
    if (!are_joined(codes) || (*launch)->joined || !launch_join(*launch, joined)) return SMELT_OK;
    alone = *codes;
    TRY(get_codes(joined, codes, preparation));
    if (are_joined(codes))
        *launch = joined;
    else
        *codes = alone; /* from a package that lacks the others; it does the same for groups of one */
    return SMELT_OK;
}

smelt_status executable_codes(const struct launch **launch, struct launch *joined, struct launch_codes *codes,
                              struct preparation *preparation) {
    TRY(join_codes(launch, joined, codes, preparation));
    improve(*launch, codes, seconds_alone(codes));
    return SMELT_OK;
}

bool executable_codes_ready(const struct launch *launch, struct launch_codes *codes) {
    struct launch_shapes shapes = shapes_of(launch);
    return find_best(launch->executable, &shapes, codes);
}
