/* Gangs that wait for each other take turns, on a fiber each. */
#include "device/cpu/gang_state.h"

static bool all_returned(const struct gang *gang) {
    for (int w = 0; w < gang_lane_words(gang); w++)
        if (gang_lanes_there(gang, w) & ~gang->context.returned[w]) return false;
    return true;
}

void gang_begin_turns(struct gang_state *state) {
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
        if (!gang_next_group(state)) return NULL;
        gang_begin_turns(state);
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

NOT_COUNTED void gang_run_in_turns(void *argument) {
    struct gang *gang = argument;
    struct gang_state *state = gang->state;
    fiber_started(&state->worker->home);
    for (;;) {
        gang_run(state, gang);
        leave_ring(state, gang);
        pass_turn(state, gang);
    }
}

static void wait_together(struct gang *gang, uint32_t line, const char *file) {
    struct gang_state *state = gang->state;
    gang->line = line;
    gang->file = file;
    if (!state->in_turns) {
        if (state->vain || state->gang_count > 1) gang_end(state, ENDED_BY_BARRIER);
        return;
    }
    if (!state->last_waiting)
        state->uneven = false;
    else if (!gang_same_barrier(line, file, state->last_waiting->line, state->last_waiting->file))
        state->uneven = true;
    state->last_waiting = gang;
    pass_turn(state, gang);
}

void smelt_runtime_gang_barrier(struct gang_context *context, uint32_t line, const char *file) {
    struct gang *gang = (struct gang *)context;
    uint32_t all[LANE_WORDS];
    if (gang->state->lone_count) {
        memset(all, 0xff, sizeof all);
        if (gang_meet(gang, line, file, all) == MEETS_AT_ANOTHER) {
            gang_wait_in_vain(gang, line, file, all);
            gang_end(gang->state, ENDED_BY_BARRIER);
        }
    }
    wait_together(gang, line, file);
}

uint32_t smelt_runtime_gang_arrive(struct gang_context *context, uint32_t line, const char *file,
                                   const uint32_t *lanes) {
    struct gang *gang = (struct gang *)context;
    bool any = false, all = true, by_simdgroups = true;
    enum meeting meeting = gang->state->lone_count ? gang_meet(gang, line, file, lanes) : MEETS_NOBODY;
    for (int w = 0; w < gang_lane_words(gang); w++) {
        uint32_t there = gang_lanes_there(gang, w);
        any |= (lanes[w] & there) != 0;
        bool whole = ((lanes[w] | context->returned[w]) & there) == there;
        all &= whole;
        by_simdgroups &= whole || !(lanes[w] & there);
    }
    bool alone = !all && by_simdgroups && line & BARRIER_ORDERS_NOTHING;
    if (any && meeting == MEETS_ALL) return 1;
    if (any && meeting == MEETS_NOBODY && (all || alone)) {
        if (alone) gang_pass_alone(gang, line, file, lanes);
        wait_together(gang, line, file);
        return 1;
    }
    if (any) gang_wait_in_vain(gang, line, file, lanes);
    return 0;
}

void smelt_runtime_gang_stop(struct gang_context *context) {
    gang_end(((struct gang *)context)->state, ENDED_BY_STOP);
}
