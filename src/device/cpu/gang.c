/* The launch of SIMD code.
 *
 * Neighbouring groups of one size make a stretch, which is run without coming back to the worker's own stack.
 * Where each row ends with a smaller group, the full groups of several rows are one stretch, and the smaller
 * groups are the next.
 * Where gangs need not wait for each other one fiber runs them all, one after another. Where they do, each
 * gang of a group has a fiber, and they take turns: a gang that reaches a barrier, or its end, switches
 * straight to the next one. When all have had their turn they stand at one barrier and the turns begin again,
 * or the group is done and the next one begins, or it is an error. */
#include "device/cpu/gang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANE_WORDS (GANG_MAX_LANES / 32)

/* `context` is the part for generated code, and must come first. */
struct gang {
    struct gang_context context;
    struct gang_state *state;
    /* Where gangs take turns. A switch is a chain of loads: from here to the next one's stack there are two.
     */
    struct fiber fiber;
    struct gang *next; /* that has not ended; NULL after the last */
    bool ended;
    /* Where its lanes wait together, while it has not ended. */
    uint32_t line;
    const char *file;
    /* Lanes that arrived at a barrier alone: their code has ended, and they wait in vain. */
    uint32_t in_vain[LANE_WORDS];
};

/* A barrier that orders no memory, which simdgroups of a gang have passed without the others. The missing
 * lanes may end, or come to the same barrier, but to no other one. */
struct lone_barrier {
    const struct gang *gang;
    uint32_t line;
    const char *file;
    uint32_t passed[LANE_WORDS], missing[LANE_WORDS];
};

/* Past so many in a group, the rest is not looked at. */
#define MOST_LONE_BARRIERS 64

/* A worker's data for this engine. */
struct gang_state {
    struct worker *worker;
    struct gang gangs[MAX_THREADS_PER_GROUP];
    struct standing in_vain[MAX_THREADS_PER_GROUP]; /* by thread: where it waits in vain */
    struct fiber *fibers;                           /* as they were created; the first gangs have copies */
    int fiber_count;
    /* The stretch: groups of one size that are left, the running one included. */
    uint64_t groups_left;
    uint32_t columns[2]; /* in x, its groups are at columns[0] to columns[1] - 1 */
    int gang_count;      /* of a group */
    bool in_turns;
    /* The shape that `gangs` is laid out for. */
    uint32_t laid_out_size[3], laid_out_lanes;
    /* The running group. */
    struct gang *running;
    struct gang *first;        /* that has not ended */
    struct gang *last_waiting; /* of this round; NULL: none waits yet */
    bool uneven;               /* they do not wait at one barrier */
    bool left_over;            /* a thread reached the end of the kernel without a return */
    bool vain;                 /* a thread waits in vain */
    struct lone_barrier lone[MOST_LONE_BARRIERS];
    int lone_count;
};

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

/* Bits of lanes 32 word … 32 word + 31 that hold a thread. */
static uint32_t lanes_there(const struct gang *gang, int word) {
    int count = (int)gang->context.count - 32 * word;
    return count >= 32 ? UINT32_MAX : count <= 0 ? 0 : (UINT32_C(1) << count) - 1;
}

/* Words that hold lanes of the gang at all. */
static int lane_words(const struct gang *gang) {
    return (int)(gang->context.count + 31) / 32;
}

static bool all_returned(const struct gang *gang) {
    for (int w = 0; w < lane_words(gang); w++)
        if (lanes_there(gang, w) & ~gang->context.returned[w]) return false;
    return true;
}

/* Where each gang of a group of this size begins. */
static void lay_out(struct gang_state *state) {
    struct group_context *group = &state->worker->group;
    const uint32_t *size = group->size;
    uint32_t lanes = state->worker->code->head.image.lanes, count = size[0] * size[1] * size[2];
    if (state->laid_out_lanes == lanes && memcmp(state->laid_out_size, size, sizeof group->size) == 0) return;
    struct gang *gang = state->gangs;
    for (uint32_t first = 0; first < count; first += lanes, gang++) {
        gang->state = state;
        gang->context = (struct gang_context){
            .group = group,
            .first = first,
            .count = count - first < lanes ? count - first : lanes,
            .position = {first % size[0], first / size[0] % size[1], first / size[0] / size[1]}};
        gang->ended = false;
        memset(gang->in_vain, 0, sizeof gang->in_vain);
    }
    state->gang_count = (int)(gang - state->gangs);
    state->laid_out_lanes = lanes;
    memcpy(state->laid_out_size, size, sizeof group->size);
}

/* From one group of the stretch to the next; false: that was the last, or the launch is stopped. */
static bool next_group(struct gang_state *state) {
    struct group_context *group = &state->worker->group;
    if (--state->groups_left == 0) return false;
    if (__atomic_load_n(group->stop, __ATOMIC_RELAXED)) return false;
    if (++group->position[0] < state->columns[1]) return true;
    group->position[0] = state->columns[0];
    if (++group->position[1] < group->groups[1]) return true;
    group->position[1] = 0;
    group->position[2]++;
    return true;
}

/* Ends the stretch from a fiber, for good. */
static NOT_COUNTED void end(struct gang_state *state, int how) {
    struct worker *worker = state->worker;
    worker->ended = how;
    fiber_leave(worker->running, &worker->home);
}

static void run_gang(struct gang_state *state, struct gang *gang) {
    memset(gang->context.returned, 0, sizeof gang->context.returned);
    state->running = gang;
    state->worker->code->gang(&gang->context);
}

/* ---- One after another, on one fiber. */

static NOT_COUNTED void run_in_order(void *argument) {
    struct gang_state *state = argument;
    fiber_started(&state->worker->home);
    do {
        worker_begin_group(state->worker);
        state->lone_count = 0;
        for (int g = 0; g < state->gang_count; g++) run_gang(state, &state->gangs[g]);
        if (state->vain) {
            for (int g = 0; g < state->gang_count; g++) state->gangs[g].ended = true;
            end(state, ENDED_BY_BARRIER);
        }
    } while (next_group(state));
    end(state, ENDED_WELL);
}

/* ---- In turns, on a fiber each. */

static void begin_turns(struct gang_state *state) {
    worker_begin_group(state->worker);
    for (int g = 0; g < state->gang_count; g++) {
        state->gangs[g].ended = false;
        state->gangs[g].next = &state->gangs[g + 1];
    }
    state->gangs[state->gang_count - 1].next = NULL;
    state->first = &state->gangs[0];
    state->last_waiting = NULL;
    state->left_over = false;
    state->lone_count = 0;
}

/* Whether a simdgroup of smaller gangs has partly ended. */
static bool is_simdgroup_divided(const struct gang_state *state) {
    for (int g = 1; g < state->gang_count; g++) {
        const struct gang *gang = &state->gangs[g], *before = gang - 1;
        bool same = gang->context.first / SIMDGROUP_LANES == before->context.first / SIMDGROUP_LANES;
        if (same && gang->ended != before->ended) return true;
    }
    return false;
}

/* Gangs have come to a barrier: whether they may pass it. Simdgroups that have ended without returning hold
 * up a barrier that orders memory. */
static bool may_pass(const struct gang_state *state) {
    if (state->uneven) return false;
    if (!state->left_over) return true;
    return state->last_waiting->line & BARRIER_ORDERS_NOTHING && !is_simdgroup_divided(state);
}

/* All gangs have had their turn: the one that begins the next round, or the next group; NULL: the stretch is
 * over. */
static struct gang *next_round(struct gang_state *state) {
    bool met = !state->vain && (!state->last_waiting || may_pass(state));
    if (!met) {
        state->worker->ended = ENDED_BY_BARRIER;
        return NULL;
    }
    if (!state->last_waiting) {
        if (!next_group(state)) return NULL;
        begin_turns(state);
    } else if (__atomic_load_n(state->worker->group.stop, __ATOMIC_RELAXED)) {
        state->worker->ended = ENDED_BY_STOP;
        return NULL;
    }
    state->last_waiting = NULL;
    return state->first;
}

/* The current gang has nothing more to do until its next turn. */
static NOT_COUNTED void pass_turn(struct gang_state *state, struct gang *gang) {
    struct worker *worker = state->worker;
    struct gang *next = gang->next ? gang->next : next_round(state);
    if (next == gang) return;
    if (!next) {
        fiber_leave(&gang->fiber, &worker->home);
        return;
    }
    worker->running = &next->fiber;
    fiber_switch(&gang->fiber, &next->fiber, &worker->home);
    state->running = gang;
}

static void leave_ring(struct gang_state *state, struct gang *gang) {
    gang->ended = true;
    if (!all_returned(gang)) state->left_over = true;
    if (state->last_waiting)
        state->last_waiting->next = gang->next;
    else
        state->first = gang->next;
}

static NOT_COUNTED void run_in_turns(void *argument) {
    struct gang *gang = argument;
    struct gang_state *state = gang->state;
    fiber_started(&state->worker->home);
    for (;;) {
        run_gang(state, gang);
        leave_ring(state, gang);
        pass_turn(state, gang);
    }
}

static bool same_barrier(uint32_t line, const char *file, uint32_t other_line, const char *other_file) {
    return line == other_line && (file == other_file || strcmp(file, other_file) == 0);
}

/* These lanes of the gang, but for those that wait elsewhere, will not pass that barrier. */
static void wait_in_vain(struct gang *gang, uint32_t line, const char *file, const uint32_t *lanes) {
    struct gang_state *state = gang->state;
    for (int w = 0; w < lane_words(gang); w++) {
        uint32_t waiting = lanes[w] & lanes_there(gang, w) & ~gang->in_vain[w];
        gang->in_vain[w] |= waiting;
        for (; waiting; waiting &= waiting - 1) {
            uint32_t thread = gang->context.first + 32 * (uint32_t)w + (uint32_t)__builtin_ctz(waiting);
            state->in_vain[thread] = (struct standing){thread, line, file};
        }
    }
    state->vain = true;
}

enum meeting { MEETS_NOBODY, MEETS_ALL, MEETS_AT_ANOTHER };

/* Lanes come to a barrier: whether others have passed it before and missed all of them there. If they were
 * missed at another one, those who passed that one wait in vain. */
static enum meeting meet(struct gang *gang, uint32_t line, const char *file, const uint32_t *lanes) {
    struct gang_state *state = gang->state;
    uint32_t coming[LANE_WORDS], rest = 0;
    for (int w = 0; w < lane_words(gang); w++)
        coming[w] = lanes[w] & lanes_there(gang, w) & ~gang->context.returned[w];
    for (struct lone_barrier *l = state->lone; l < state->lone + state->lone_count; l++) {
        uint32_t missed = 0;
        for (int w = 0; w < lane_words(gang) && l->gang == gang; w++) missed |= l->missing[w] & coming[w];
        if (!missed) continue;
        if (!same_barrier(line, file, l->line, l->file)) {
            wait_in_vain(gang, l->line, l->file, l->passed);
            return MEETS_AT_ANOTHER;
        }
        for (int w = 0; w < lane_words(gang); w++) {
            uint32_t here = l->missing[w] & coming[w];
            l->missing[w] &= ~here;
            l->passed[w] |= here;
            coming[w] &= ~here;
        }
    }
    for (int w = 0; w < lane_words(gang); w++) rest |= coming[w];
    return rest ? MEETS_NOBODY : MEETS_ALL;
}

static void pass_alone(struct gang *gang, uint32_t line, const char *file, const uint32_t *lanes) {
    struct gang_state *state = gang->state;
    if (state->lone_count == MOST_LONE_BARRIERS) return;
    struct lone_barrier *l = &state->lone[state->lone_count++];
    *l = (struct lone_barrier){.gang = gang, .line = line, .file = file};
    for (int w = 0; w < lane_words(gang); w++) {
        uint32_t there = lanes_there(gang, w) & ~gang->context.returned[w];
        l->passed[w] = lanes[w] & there;
        l->missing[w] = there & ~lanes[w];
    }
}

static void wait_together(struct gang *gang, uint32_t line, const char *file) {
    struct gang_state *state = gang->state;
    gang->line = line;
    gang->file = file;
    if (!state->in_turns) {
        if (state->vain || state->gang_count > 1) end(state, ENDED_BY_BARRIER);
        return;
    }
    if (!state->last_waiting)
        state->uneven = false;
    else if (!same_barrier(line, file, state->last_waiting->line, state->last_waiting->file))
        state->uneven = true;
    state->last_waiting = gang;
    pass_turn(state, gang);
}

void smelt_runtime_gang_barrier(struct gang_context *context, uint32_t line, const char *file) {
    struct gang *gang = (struct gang *)context;
    uint32_t all[LANE_WORDS];
    if (gang->state->lone_count) {
        memset(all, 0xff, sizeof all);
        if (meet(gang, line, file, all) == MEETS_AT_ANOTHER) {
            wait_in_vain(gang, line, file, all);
            end(gang->state, ENDED_BY_BARRIER);
        }
    }
    wait_together(gang, line, file);
}

uint32_t smelt_runtime_gang_arrive(struct gang_context *context, uint32_t line, const char *file,
                                   const uint32_t *lanes) {
    struct gang *gang = (struct gang *)context;
    bool any = false, all = true, by_simdgroups = true;
    enum meeting meeting = gang->state->lone_count ? meet(gang, line, file, lanes) : MEETS_NOBODY;
    for (int w = 0; w < lane_words(gang); w++) {
        uint32_t there = lanes_there(gang, w);
        any |= (lanes[w] & there) != 0;
        bool whole = ((lanes[w] | context->returned[w]) & there) == there;
        all &= whole;
        by_simdgroups &= whole || !(lanes[w] & there);
    }
    bool alone = !all && by_simdgroups && line & BARRIER_ORDERS_NOTHING;
    if (any && meeting == MEETS_ALL) return 1;
    if (any && meeting == MEETS_NOBODY && (all || alone)) {
        if (alone) pass_alone(gang, line, file, lanes);
        wait_together(gang, line, file);
        return 1;
    }
    if (any) wait_in_vain(gang, line, file, lanes);
    return 0;
}

void smelt_runtime_gang_stop(struct gang_context *context) {
    end(((struct gang *)context)->state, ENDED_BY_STOP);
}

/* ---- Failures. */

/* The position of a thread when the group cannot continue; false: it has returned. */
static bool standing_of(const struct gang_state *state, uint32_t thread, struct standing *standing) {
    uint32_t lanes = state->worker->code->head.image.lanes, lane = thread % lanes;
    const struct gang *gang = &state->gangs[thread / lanes];
    uint32_t bit = UINT32_C(1) << lane % 32;
    *standing = (struct standing){thread, 0, NULL};
    if (gang->in_vain[lane / 32] & bit) {
        *standing = state->in_vain[thread];
    } else if (gang->context.returned[lane / 32] & bit) {
        return false;
    } else if (!gang->ended) {
        standing->line = gang->line;
        standing->file = gang->file;
    }
    return true;
}

/* The first thread that waits, and the first that will not come there. Threads that wait in vain for others
 * that do come there, or return, but by another way through the code, are what the engine cannot do. */
static smelt_status report_barrier(struct gang_state *state) {
    const struct worker *worker = state->worker;
    if (!state->in_turns && state->gang_count > 1)
        return fail(SMELT_ERROR_INTERNAL, "kernel '%s' has a barrier that its image does not record",
                    worker->launch->name);
    uint32_t count = worker->group.size[0] * worker->group.size[1] * worker->group.size[2];
    struct standing waiting = {0}, other;
    for (uint32_t t = 0; t < count && !waiting.file; t++)
        if (standing_of(state, t, &other) && other.file) waiting = other;
    for (uint32_t t = 0; t < count && waiting.file; t++) {
        if (!standing_of(state, t, &other)) continue;
        if (!other.file || !same_barrier(waiting.line, waiting.file, other.line, other.file))
            return barrier_failure(worker, &waiting, &other);
    }
    return fail(SMELT_ERROR_UNSUPPORTED,
                "kernel '%s': the threads of threadgroup (%u, %u, %u) reach the barrier in %s:%u along paths "
                "that the SIMD engine does not support; use device 'cpu-scalar'",
                worker->launch->name, worker->group.position[0], worker->group.position[1],
                worker->group.position[2], waiting.file ? waiting.file : "?", BARRIER_LINE(waiting.line));
}

static smelt_status report(struct gang_state *state) {
    const struct gang_context *context = &state->running->context;
    char who[48];
    switch (state->worker->ended) {
    case ENDED_BY_BARRIER:
        return report_barrier(state);
    case ENDED_BY_FAULT:
    case ENDED_OUTSIDE:
        snprintf(who, sizeof who, "threads %u to %u", context->first, context->first + context->count - 1);
        return state->worker->ended == ENDED_OUTSIDE ? worker_outside_failure(state->worker, who)
                                                     : fault_failure(state->worker, who);
    default:
        return worker_memory_failure(state->worker);
    }
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
    state->vain = false;
    if (state->in_turns) {
        begin_turns(state);
        for (int g = 0; g < fibers; g++)
            fiber_prepare(&state->gangs[g].fiber, run_in_turns, &state->gangs[g], g);
    } else {
        fiber_prepare(&state->gangs[0].fiber, run_in_order, state, 0);
    }
    worker_enter(worker, &state->gangs[0].fiber);
    smelt_status status = report(state);
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
