/* Reports how a stretch of threadgroups ended: its status, with a message if it failed. */
#include "device/cpu/gang_state.h"

#include <stdio.h>

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
 * that do come there, or return, but along another path through the code, are what the engine cannot do. */
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
        if (!other.file || !gang_same_barrier(waiting.line, waiting.file, other.line, other.file))
            return barrier_failure(worker, &waiting, &other);
    }
    return fail(SMELT_ERROR_UNSUPPORTED,
                "kernel '%s': the threads of threadgroup (%u, %u, %u) reach the barrier in %s:%u along paths "
                "that the SIMD engine does not support; use device 'cpu-scalar'",
                worker->launch->name, worker->group.position[0], worker->group.position[1],
                worker->group.position[2], waiting.file ? waiting.file : "?", BARRIER_LINE(waiting.line));
}

smelt_status gang_report(struct gang_state *state) {
    const struct gang_context *context = state->worker->group.running;
    if (!context) context = &state->running->context;
    char who[48];
    switch (state->worker->ended) {
    case ENDED_BY_BARRIER:
        return report_barrier(state);
    case ENDED_BY_FAULT:
    case ENDED_OUTSIDE:
        if (context->count == 1)
            snprintf(who, sizeof who, "thread %u", context->first);
        else
            snprintf(who, sizeof who, "threads %u to %u", context->first,
                     context->first + context->count - 1);
        return state->worker->ended == ENDED_OUTSIDE ? worker_outside_failure(state->worker, who)
                                                     : fault_failure(state->worker, who);
    default:
        return worker_memory_failure(state->worker);
    }
}
