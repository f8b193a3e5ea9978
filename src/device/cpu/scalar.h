/* The scalar engine: each thread of a threadgroup runs on a fiber if it must wait; a worker runs one group at
 * a time. */
#ifndef SMELT_DEVICE_CPU_SCALAR_H
#define SMELT_DEVICE_CPU_SCALAR_H

#include "device/cpu/worker.h"

enum thread_state { THREAD_UNSTARTED, THREAD_READY, THREAD_AT_BARRIER, THREAD_AT_SIMD, THREAD_DONE };

/* A thread of the running group. `context` is the part for generated code, and must come first. */
struct thread {
    struct thread_context context;
    enum thread_state state;
    struct fiber *fiber;
    /* At a barrier. */
    uint32_t line;
    const char *file;
    /* At a simdgroup operation. */
    uint32_t site, code, argument;
    uint64_t value; /* operand, then result */
};

/* Runs the threadgroups [*first, last), numbered x fastest, until one fails, the launch is stopped, or better
 * code is there for the others. *first: the first that has not begun. Failures: BARRIER, FAULT,
 * OUT_OF_MEMORY. */
smelt_status scalar_run_groups(struct worker *worker, struct cpu_launch *launch, uint64_t *first,
                               uint64_t last);

void scalar_state_free(struct scalar_state *state);

/* Performs one simdgroup operation for the lanes of threads [first, last) that wait at the earliest one; they
 * become ready (simdgroup.c). False if no lane waits at one. check: of a checked launch, which is told; else
 * NULL. */
bool simdgroup_step(struct thread *threads, int first, int last, const struct site *sites,
                    struct check *check);

#endif
