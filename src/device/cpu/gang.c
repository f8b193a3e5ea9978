/* The launch of SIMD code.
 *
 * Neighbouring groups of one size make a stretch, which is run without coming back to the worker's own stack.
 * Where each row ends with a smaller group, the full groups of several rows are one stretch, and the smaller
 * groups are the next.
 * Where gangs need not wait for each other one fiber runs them all, one after another. Where they do, each
 * gang of a group has a fiber, and they take turns: a gang that reaches a barrier, or its end, switches
 * straight to the next one. When all have had their turn they stand at one barrier and the turns begin again,
 * or the group is done and the next one begins, or it is an error. */
#include "device/cpu/arch/matrix.h"
#include "device/cpu/gang_state.h"

#include <stdlib.h>
#include <string.h>

static smelt_status state_of(struct worker *worker, struct gang_state **state) {
    if (!worker->gangs) {
        worker->gangs = calloc(1, sizeof *worker->gangs);
        if (!worker->gangs) return fail_out_of_memory(sizeof *worker->gangs);
        worker->gangs->worker = worker;
    }
    *state = worker->gangs;
    return SMELT_OK;
}

static void free_fibers(struct gang_state *state) {
    fibers_destroy(state->fibers, state->fiber_count);
    free(state->fibers);
    state->fibers = NULL;
    state->fiber_count = 0;
}

void gang_state_free(struct gang_state *state) {
    if (state) free_fibers(state);
    free(state);
}

/* Stacks are kept between launches while they are many and large enough. */
static smelt_status have_fibers(struct gang_state *state, int count, size_t stack_bytes) {
    size_t had = state->fiber_count ? state->fibers[0].stack_bytes : 0;
    if (state->fiber_count >= count && had >= stack_bytes) return SMELT_OK;
    if (had > stack_bytes) stack_bytes = had;
    if (state->fiber_count > count) count = state->fiber_count;
    free_fibers(state);
    state->fibers = calloc((size_t)count, sizeof *state->fibers);
    if (!state->fibers) return fail_out_of_memory((size_t)count * sizeof *state->fibers);
    smelt_status status = fibers_create(state->fibers, count, stack_bytes);
    if (status != SMELT_OK) {
        free(state->fibers);
        state->fibers = NULL;
        return status;
    }
    state->fiber_count = count;
    for (int i = 0; i < count; i++) state->gangs[i].fiber = state->fibers[i];
    return SMELT_OK;
}

/* ---- Groups. */

/* Where each gang of a group of this size begins. */
static void lay_out(struct gang_state *state) {
    struct group_context *group = &state->worker->group;
    const uint32_t *size = group->size;
    const struct image *image = &state->worker->code->head.image;
    uint32_t lanes = image->lanes, count = size[0] * size[1] * size[2];
    if (state->laid_out_lanes == lanes && state->laid_out_by_rows == image->by_rows &&
        memcmp(state->laid_out_size, size, sizeof group->size) == 0)
        return;
    struct gang *gang = state->gangs;
    for (uint32_t first = 0; first < count; gang++) {
        uint32_t left = image->by_rows ? size[0] - first % size[0] : count - first;
        gang->state = state;
        gang->context = (struct gang_context){
            .group = group,
            .first = first,
            .count = left < lanes ? left : lanes,
            .position = {first % size[0], first / size[0] % size[1], first / size[0] / size[1]}};
        first += gang->context.count;
        gang->context.next = first < count ? &gang[1].context : NULL;
        gang->ended = false;
        memset(gang->in_vain, 0, sizeof gang->in_vain);
    }
    state->gang_count = (int)(gang - state->gangs);
    state->laid_out_lanes = lanes;
    state->laid_out_by_rows = image->by_rows;
    memcpy(state->laid_out_size, size, sizeof group->size);
}

/* ---- One after another, on one fiber. */

static NOT_COUNTED void run_in_order(void *argument) {
    struct gang_state *state = argument;
    int calls = state->worker->code->head.image.runs_group ? 1 : state->gang_count;
    fiber_started(&state->worker->home);
    do {
        worker_begin_group(state->worker);
        state->lone_count = 0;
        for (int g = 0; g < calls; g++) gang_run(state, &state->gangs[g]);
        if (state->vain) {
            for (int g = 0; g < state->gang_count; g++) state->gangs[g].ended = true;
            gang_end(state, ENDED_BY_BARRIER);
        }
    } while (gang_next_group(state));
    gang_end(state, ENDED_WELL);
}

/* ---- Stretches. */

/* Whether the last group of this dimension is smaller than the others. */
static bool is_cut(const struct group_context *group, int dimension) {
    return group->groups[dimension] > 1 && group->grid[dimension] % group->dispatch_size[dimension];
}

/* How many groups from this one on have its size; from dimension 1 on, how many rows of groups. */
static uint64_t stretch_length(const struct group_context *group, int dimension) {
    uint64_t behind = 0, plane = 1; /* groups passed in the dimensions below; groups a step in this one */
    for (int d = dimension; d < 3; d++) {
        uint64_t position = group->position[d], groups = group->groups[d];
        if (is_cut(group, d)) {
            bool at_edge = position == groups - 1;
            return (at_edge ? 1 : groups - 1 - position) * plane - behind;
        }
        behind += position * plane;
        plane *= groups;
    }
    return plane - behind;
}

static smelt_status run_stretch(struct gang_state *state, const struct launch_codes *codes) {
    struct worker *worker = state->worker;
    struct group_context *group = &worker->group;
    bool full = memcmp(group->size, group->dispatch_size, sizeof group->size) == 0;
    worker->code = full ? codes->full : codes->edge;
    const struct image *image = &worker->code->head.image;
    group->answers = worker->code->questions ? worker->code->questions(group) : 0;
    lay_out(state);
    state->in_turns = image->has_barrier && state->gang_count > 1;
    int fibers = state->in_turns ? state->gang_count : 1;
    TRY(have_fibers(state, fibers, (image->stack_bytes + FIBER_SPARE_BYTES + 4095) / 4096 * 4096));
    worker->ended = ENDED_WELL;
    group->running = NULL;
    state->vain = false;
    if (state->in_turns) {
        gang_begin_turns(state);
        for (int g = 0; g < fibers; g++)
            fiber_prepare(&state->gangs[g].fiber, gang_run_in_turns, &state->gangs[g], g);
    } else {
        fiber_prepare(&state->gangs[0].fiber, run_in_order, state, 0);
    }
    worker_enter(worker, &state->gangs[0].fiber);
    arch_matrix_close(&worker->matrices_open);
    smelt_status status = gang_report(state);
    /* Lanes that wait in vain are noted in the gangs. */
    if (worker->ended != ENDED_WELL) state->laid_out_lanes = 0;
    return status;
}

/* `count` groups from number `first` on, in columns `begin` to `end` - 1. */
static smelt_status run_columns(struct gang_state *state, const struct launch_codes *codes, uint64_t first,
                                uint64_t count, uint32_t begin, uint32_t end) {
    worker_place_group(state->worker, first);
    state->groups_left = count;
    state->columns[0] = begin, state->columns[1] = end;
    return run_stretch(state, codes);
}

/* How many rows from this group on are run as two stretches, one of their full groups and one of the smaller
 * groups at their ends. Less than 2: none are. */
static uint64_t rows_together(const struct group_context *group, uint64_t groups) {
    if (!is_cut(group, 0) || group->position[0] > 0) return 0;
    uint64_t alike = stretch_length(group, 1), whole = groups / group->groups[0];
    return alike < whole ? alike : whole;
}

smelt_status gang_run_groups(struct worker *worker, struct cpu_launch *launch, uint64_t first,
                             uint64_t last) {
    struct gang_state *state = NULL;
    TRY(state_of(worker, &state));
    TRY(worker_prepare(worker, launch));
    worker->ended = ENDED_WELL;
    while (first < last && !__atomic_load_n(&launch->stop, __ATOMIC_RELAXED)) {
        worker_place_group(worker, first);
        bool improved = launch->is_improved && launch->is_improved(launch);
        bool is_quick = launch->is_improved && !improved;
        const struct launch_codes *codes = improved ? &launch->best : &launch->codes;
        uint32_t row = worker->group.groups[0];
        uint64_t rows = is_quick ? 0 : rows_together(&worker->group, last - first);
        if (rows > 1) {
            TRY(run_columns(state, codes, first, rows * (row - 1), 0, row - 1));
            if (worker->ended != ENDED_WELL || __atomic_load_n(&launch->stop, __ATOMIC_RELAXED))
                return SMELT_OK;
            TRY(run_columns(state, codes, first + row - 1, rows, row - 1, row));
            first += rows * row;
        } else {
            /* After each group of quick code the best may be there. */
            uint64_t length = is_quick ? 1 : stretch_length(&worker->group, 0);
            if (length > last - first) length = last - first;
            TRY(run_columns(state, codes, first, length, 0, row));
            first += length;
        }
        if (worker->ended != ENDED_WELL) return SMELT_OK;
    }
    return SMELT_OK;
}
