/* The state of a launch of SIMD code, shared by the files gang*.c. */
#ifndef SMELT_DEVICE_CPU_GANG_STATE_H
#define SMELT_DEVICE_CPU_GANG_STATE_H

#include "device/cpu/gang.h"

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

/* After this many in a group, no more are recorded. */
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
    bool laid_out_by_rows;
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

/* Bits of lanes 32 word … 32 word + 31 that hold a thread. */
static inline uint32_t gang_lanes_there(const struct gang *gang, int word) {
    int count = (int)gang->context.count - 32 * word;
    return count >= 32 ? UINT32_MAX : count <= 0 ? 0 : (UINT32_C(1) << count) - 1;
}

/* Words that hold lanes of the gang at all. */
static inline int gang_lane_words(const struct gang *gang) {
    return (int)(gang->context.count + 31) / 32;
}

/* From one group of the stretch to the next; false: that was the last, or the launch is stopped. */
static inline bool gang_next_group(struct gang_state *state) {
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
static inline NOT_COUNTED void gang_end(struct gang_state *state, int how) {
    struct worker *worker = state->worker;
    worker->ended = how;
    fiber_leave(worker->running, &worker->home);
}

static inline void gang_run(struct gang_state *state, struct gang *gang) {
    memset(gang->context.returned, 0, sizeof gang->context.returned);
    state->running = gang;
    state->worker->code->gang(&gang->context);
}

static inline bool gang_same_barrier(uint32_t line, const char *file, uint32_t other_line,
                                     const char *other_file) {
    return line == other_line && (file == other_file || strcmp(file, other_file) == 0);
}

/* gang_turns.c — the turns of a group, whose fibers run gang_run_in_turns with a gang as the argument. */
void gang_begin_turns(struct gang_state *state);
NOT_COUNTED void gang_run_in_turns(void *argument);

/* gang_alone.c — these lanes of the gang, except those that wait elsewhere, will not pass that barrier. */
void gang_wait_in_vain(struct gang *gang, uint32_t line, const char *file, const uint32_t *lanes);

enum meeting { MEETS_NOBODY, MEETS_ALL, MEETS_AT_ANOTHER };

/* Lanes come to a barrier: whether others have passed it before and missed all of them there. If they were
 * missed at another one, those that passed that one wait in vain. */
enum meeting gang_meet(struct gang *gang, uint32_t line, const char *file, const uint32_t *lanes);

/* Notes that these lanes pass the barrier without the others. */
void gang_pass_alone(struct gang *gang, uint32_t line, const char *file, const uint32_t *lanes);

/* gang_report.c — the stretch's status, with a message. */
smelt_status gang_report(struct gang_state *state);

#endif
