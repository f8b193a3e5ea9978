/* Shared by both engines of the CPU: a launch, the workers that run its threadgroups, and the messages about
 * failing kernel code. */
#ifndef SMELT_DEVICE_CPU_WORKER_H
#define SMELT_DEVICE_CPU_WORKER_H

#include "device/cpu/executable.h"
#include "device/cpu/fiber.h"

#include <pthread.h>
#include <stdatomic.h>

#define MAX_THREADS_PER_GROUP 1024

/* The part of a launch that workers share. */
struct cpu_launch {
    uint64_t number;  /* of the launch in the process, from 1: identifies the launch that a worker is prepared
                         for */
    const char *name; /* the kernel's */
    struct launch_codes codes; /* when it began */
    bool scalar;               /* both are code of the scalar engine */
    /* Quick code: whether groups that begin now run the best instead (improve.c); else NULL. */
    bool (*is_improved)(struct cpu_launch *launch);
    struct launch_codes best;             /* where `improved` */
    atomic_bool improved;                 /* set once */
    pthread_mutex_t improving;            /* to set it, and `seen` */
    const struct code_head *_Atomic seen; /* the executable's latest code when the best was last looked for */
    const struct launch *request;
    void *const *buffers;                /* addresses, by index */
    const struct buffer_extent *extents; /* likewise */
    struct buffer_extent *more_extents;  /* … if there are many: allocated; else NULL */
    uint64_t static_bytes;               /* of threadgroup memory: the kernel's own variables */
    uint64_t threadgroup_bytes[CPU_MAX_THREADGROUP_SLOTS];
    uint64_t threadgroup_total; /* static and dynamic */
    uint32_t stop;              /* atomic: a worker failed, or the time is over; generated code polls it */
    uint32_t timed_out;         /* atomic */
    uint32_t interrupted;       /* atomic */
    smelt_interrupt *interrupt; /* ends it when it is raised; NULL */
    struct launch_log *log;
    struct check *check; /* of a checked launch, which runs on one thread; else NULL */
    uint64_t schedule;   /* … the seed of its order (schedule.h); else 0 */
};

/* How a worker is made to leave kernel code: src/device/cpu/interrupt.c. */
struct interruption {
    pthread_t thread;
    struct worker *next, **link;       /* in the list of all workers */
    struct cpu_launch *_Atomic launch; /* that it works for, if it has an interrupt */
    atomic_bool watched;               /* is looked at: `launch` must stay for so long */
    atomic_bool signalled;             /* a signal is pending */
};

/* An access that missed its array. */
struct outside_access {
    const struct access_site *site;
    struct buffer_extent extent;
    uint64_t address;
};

/* A thread of the pool, or a caller. */
struct worker {
    struct group_context group; /* of the running group */
    const struct cpu_launch *launch;
    uint64_t prepared; /* the number of the launch that `group` is filled for */
    const struct code *code;
    char *threadgroup_memory;
    size_t threadgroup_capacity;
    const struct code *filled_for; /* whose variables lie in memory that was all filled in this launch */
    bool refills;                  /* … and some of which is filled again before each group */
    struct fiber_home home;
    struct fiber *running; /* while `in_kernel` */
    volatile bool in_kernel;
    /* Why a group ended early. */
    enum { ENDED_WELL, ENDED_BY_STOP, ENDED_BY_FAULT, ENDED_BY_BARRIER, ENDED_OUTSIDE } ended;
    const void *fault_address, *fault_instruction;
    int fault_signal;
    struct outside_access outside; /* ENDED_OUTSIDE */
    const void *caller;   /* in generated code, of a function of the runtime that may fault; else NULL */
    size_t lacking_bytes; /* stopped because so much memory could not be allocated; else 0 */
    void *tile_memory;    /* of products of tiles (tile.h), */
    void *held_tiles;     /* and of tiles in slots, allocated at their first use */
    int matrices_open;    /* arch/matrix.h */
    struct scalar_state *scalar, *checked; /* created by the engine that needs them */
    struct gang_state *gangs;
    struct interruption interruption;
};

/* The calling thread's worker, created at its first use. */
smelt_status worker_of_this_thread(struct worker **worker);
/* NULL before the first use. Set by worker_thread.c alone. */
extern _Thread_local struct worker *worker_this __attribute__((tls_model("initial-exec")));

/* The worker whose kernel code the calling thread is running, or NULL. Safe in a signal handler. */
struct worker *worker_in_kernel(void);

/* The words that a lane of the gang in kernel code passes to a function of the runtime
 * (src/abi/cpu_context.h). */
static inline void worker_lane_words(const struct worker *worker, uint32_t lane, uint32_t count,
                                     const uint64_t *varies, const uint64_t *shared, const uint64_t *by_lane,
                                     uint64_t *words) {
    const uint64_t *next = by_lane + lane;
    for (uint32_t w = 0; w < count; w++) {
        bool own = varies[w / 64] >> w % 64 & 1;
        words[w] = own ? *next : shared[w];
        if (own) next += worker->code->head.image.lanes;
    }
}

/* The calling thread's, or NULL: for a signal handler that may come at any time. */
struct worker *worker_of_signal(void);

/* Fills the fields that are the same for all groups of a launch, once per launch. */
smelt_status worker_prepare(struct worker *worker, const struct cpu_launch *launch);

/* The group with this number, x fastest: its position and its size. */
void worker_place_group(struct worker *worker, uint64_t number);

/* Before a group runs worker->code: fills the threadgroup memory that it may read before it writes there with
 * 0xff, over the values of the group before it. */
void worker_fill_threadgroup_memory(struct worker *worker);
static inline void worker_begin_group(struct worker *worker) {
    if (worker->filled_for != worker->code || worker->refills) worker_fill_threadgroup_memory(worker);
}

/* Runs the fiber until it leaves, or a fault leaves for it. */
void worker_enter(struct worker *worker, struct fiber *fiber);

/* The position of a thread: at a barrier, or with `file` NULL at the end of the kernel. */
struct standing {
    uint32_t thread; /* index in the threadgroup */
    uint32_t line;
    const char *file;
};

/* BARRIER: `waiting` waits at a barrier that `other` will not reach. */
smelt_status barrier_failure(const struct worker *worker, const struct standing *waiting,
                             const struct standing *other);

/* FAULT: the kernel code on worker->running ended with a fault. `who` is "thread 3". */
smelt_status fault_failure(const struct worker *worker, const char *who);

/* outside.c — FAULT: the kernel code ended with an access that misses its array (worker->outside). */
smelt_status worker_outside_failure(const struct worker *worker, const char *who);

/* OUT_OF_MEMORY if that ended the kernel code (lacking_bytes), which is forgotten; else OK. */
smelt_status worker_memory_failure(struct worker *worker);

/* Ensures that the handlers that turn faults in generated code into errors come first (fault.c). */
void fault_install(void);
/* Gives the calling thread a signal stack if it has none. */
void fault_prepare_thread(void);
void fault_release_thread(void);

#endif
