/* The scalar engine: each thread of a threadgroup runs on a fiber when it has to wait, one group at a time a
 * worker. */
#ifndef SMELT_CPU_SCALAR_H
#define SMELT_CPU_SCALAR_H

#include "cpu/context.h"
#include "cpu/fiber.h"
#include "cpu/object.h"

#define MAX_THREADS_PER_GROUP 1024

enum thread_state { THREAD_UNSTARTED, THREAD_READY, THREAD_AT_BARRIER, THREAD_AT_SIMD, THREAD_DONE };

/* A thread of the running group. `context` is what generated code sees, and must come first. */
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

/* An entry ready to run on the CPU. */
struct executable {
    struct image image;
    struct object object;
    kernel_function *function;
    char *name;
};

/* What a launch shares between workers. */
struct cpu_launch {
    const struct executable *executable;
    uint32_t grid[3], group_size[3], groups[3]; /* threads, threads, groups */
    void *const *buffers;
    uint64_t threadgroup_bytes[CPU_MAX_THREADGROUP_SLOTS];
    uint64_t threadgroup_total; /* static and dynamic */
    uint32_t stop;              /* atomic: a worker failed, or time is over; generated code polls it */
    uint32_t timed_out;         /* atomic */
};

/* What a worker keeps between groups. */
struct worker {
    struct group_context group;
    struct thread *threads; /* MAX_THREADS_PER_GROUP */
    struct fiber *fibers;   /* as many as were ever needed, in chunks */
    int fiber_count;
    struct fiber **free_fibers;
    int free_count;
    struct fiber_home home;
    char *threadgroup_memory;
    size_t threadgroup_capacity;
    const struct cpu_launch *launch;
    /* While a fiber runs. */
    struct fiber *running;
    int next_thread, last_thread; /* unstarted threads the running fiber takes on */
    struct thread *current;
    bool in_kernel;
    /* Why the group ended early. */
    enum { ENDED_WELL, ENDED_BY_STOP, ENDED_BY_FAULT } ended;
    int fault_signal;
    const void *fault_address, *fault_instruction;
};

/* The calling thread's worker, made at its first use. */
smelt_status worker_of_this_thread(struct worker **worker);

/* The worker whose kernel code the calling thread is running, or NULL. Safe in a signal handler. */
struct worker *worker_in_kernel(void);

/* Runs one threadgroup to its end. Failures: BARRIER, FAULT, TIMEOUT, OUT_OF_MEMORY. */
smelt_status scalar_run_group(struct worker *worker, const struct cpu_launch *launch,
                              const uint32_t position[3]);

/* Performs one simdgroup operation for the lanes of threads [first, last) that stand at the earliest one;
 * they become ready (simdgroup.c). False if no lane waits at one. */
bool simdgroup_step(struct thread *threads, int first, int last, const struct site *sites);

/* Makes sure that the handlers which turn faults in generated code into errors stand first (fault.c). */
void fault_install(void);
/* Gives the calling thread a signal stack if it has none. */
void fault_prepare_thread(void);
void fault_release_thread(void);

#endif
