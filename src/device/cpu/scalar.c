#include "device/cpu/scalar.h"
#include "device/cpu/schedule.h"
#include "check/check.h"
#include "device/cpu/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIBER_CHUNK 32
/* A thread's private arrays: 64 KiB at the most. */
#define STACK_BYTES (65536 + FIBER_SPARE_BYTES)
/* Checked code keeps much more in memory. */
#define CHECKED_STACK_BYTES ((size_t)1 << 20)

/* A worker's data for this engine. */
struct scalar_state {
    struct worker *worker;
    size_t stack_bytes; /* of a fiber */
    struct thread threads[MAX_THREADS_PER_GROUP];
    struct fiber fibers[MAX_THREADS_PER_GROUP]; /* as many as were ever needed, in chunks */
    int fiber_count;
    struct fiber *free_fibers[MAX_THREADS_PER_GROUP];
    int free_count;
    /* While a fiber runs. */
    int next_thread, last_thread; /* unstarted threads the running fiber takes on */
    struct thread *current;
};

static smelt_status state_of(struct worker *worker, bool checked, struct scalar_state **state) {
    struct scalar_state **own = checked ? &worker->checked : &worker->scalar;
    if (!*own) {
        *own = calloc(1, sizeof **own);
        if (!*own) return fail_out_of_memory(sizeof **own);
        (*own)->worker = worker;
        (*own)->stack_bytes = checked ? CHECKED_STACK_BYTES : STACK_BYTES;
    }
    *state = *own;
    return SMELT_OK;
}

void scalar_state_free(struct scalar_state *state) {
    for (int i = 0; state && i < state->fiber_count; i += FIBER_CHUNK)
        fibers_destroy(&state->fibers[i], FIBER_CHUNK);
    free(state);
}

/* ---- Fibers of a worker. */

static smelt_status take_fiber(struct scalar_state *state, struct fiber **fiber) {
    if (!state->free_count) {
        if (state->fiber_count == MAX_THREADS_PER_GROUP)
            return fail(SMELT_ERROR_INTERNAL, "more than %d threads wait in one threadgroup",
                        MAX_THREADS_PER_GROUP);
        TRY(fibers_create(&state->fibers[state->fiber_count], FIBER_CHUNK, state->stack_bytes));
        for (int i = FIBER_CHUNK - 1; i >= 0; i--)
            state->free_fibers[state->free_count++] = &state->fibers[state->fiber_count + i];
        state->fiber_count += FIBER_CHUNK;
    }
    *fiber = state->free_fibers[--state->free_count];
    return SMELT_OK;
}

static void free_all_fibers(struct scalar_state *state) {
    state->free_count = 0;
    for (int i = state->fiber_count - 1; i >= 0; i--)
        state->free_fibers[state->free_count++] = &state->fibers[i];
}

/* The thread is the one that runs, on its fiber. */
static void set_current(struct scalar_state *state, struct thread *thread) {
    struct check *check = state->worker->launch->check;
    struct fiber *fiber = thread->fiber;
    state->current = thread;
    if (check)
        check_enter(check, thread->context.index, fiber->stack, fiber->stack_bytes,
                    (int)(fiber - state->fibers));
}

/* Runs unstarted threads one after another until one waits: then the fiber stays with that thread, and ends
 * with it. */
static NOT_COUNTED void fiber_main(void *argument) {
    struct scalar_state *state = argument;
    struct worker *worker = state->worker;
    struct fiber *self = worker->running;
    fiber_started(&worker->home);
    while (state->next_thread < state->last_thread) {
        struct thread *thread = &state->threads[state->next_thread++];
        thread->fiber = self;
        set_current(state, thread);
        worker->code->thread(&thread->context);
        thread->state = THREAD_DONE;
        thread->fiber = NULL;
    }
    state->free_fibers[state->free_count++] = self;
    fiber_leave(self, &worker->home);
}

/* Called on a fiber: the thread waits until the scheduler makes it ready. */
static void wait_in_state(struct thread *thread, enum thread_state state) {
    thread->state = state;
    fiber_leave(thread->fiber, &worker_in_kernel()->home);
}

void smelt_runtime_barrier(struct thread_context *context, uint32_t line, const char *file) {
    struct thread *thread = (struct thread *)context;
    thread->line = line;
    thread->file = file;
    wait_in_state(thread, THREAD_AT_BARRIER);
}

uint64_t smelt_runtime_simdgroup(struct thread_context *context, uint32_t site, uint32_t code,
                                 uint32_t argument, uint64_t value) {
    struct thread *thread = (struct thread *)context;
    thread->site = site;
    thread->code = code;
    thread->argument = argument;
    thread->value = value;
    wait_in_state(thread, THREAD_AT_SIMD);
    return thread->value;
}

void smelt_runtime_stop(struct thread_context *context) {
    struct worker *worker = worker_in_kernel();
    (void)context;
    worker->ended = ENDED_BY_STOP;
    fiber_leave(worker->running, &worker->home);
}

/* ---- Scheduling. */

static smelt_status run_ready(struct scalar_state *state, int first, int last) {
    struct worker *worker = state->worker;
    state->next_thread = first;
    state->last_thread = last;
    while (state->next_thread < last) {
        if (state->threads[state->next_thread].state != THREAD_UNSTARTED) {
            state->next_thread++;
            continue;
        }
        struct fiber *fiber;
        TRY(take_fiber(state, &fiber));
        fiber_prepare(fiber, fiber_main, state, (int)(fiber - state->fibers));
        worker_enter(worker, fiber);
        if (worker->ended != ENDED_WELL) return SMELT_OK;
    }
    for (int i = first; i < last; i++) {
        struct thread *thread = &state->threads[i];
        if (thread->state != THREAD_READY) continue;
        set_current(state, thread);
        worker_enter(worker, thread->fiber);
        if (worker->ended != ENDED_WELL) return SMELT_OK;
    }
    return SMELT_OK;
}

/* Runs the threads [first, last), one simdgroup, until each is done or waits at a barrier. */
static smelt_status run_simdgroup(struct scalar_state *state, int first, int last) {
    const struct site *sites = state->worker->code->head.image.sites;
    do {
        TRY(run_ready(state, first, last));
        if (state->worker->ended != ENDED_WELL) return SMELT_OK;
    } while (simdgroup_step(state->threads, first, last, sites, state->worker->launch->check));
    return SMELT_OK;
}

static struct standing standing_of(const struct thread *thread) {
    bool waits = thread->state == THREAD_AT_BARRIER;
    return (struct standing){thread->context.index, thread->line, waits ? thread->file : NULL};
}

/* Of a thread that is done: whether its simdgroup has ended, which does not hold up a barrier that orders no
 * memory. */
static bool has_left(const struct scalar_state *state, int count, int done, const struct thread *waiting) {
    if (!(waiting->line & BARRIER_ORDERS_NOTHING)) return false;
    int first = done / SIMDGROUP_LANES * SIMDGROUP_LANES;
    for (int i = first; i < count && i < first + SIMDGROUP_LANES; i++)
        if (state->threads[i].state != THREAD_DONE) return false;
    return true;
}

/* When every thread is done or waits: releases the barrier. *finished: no thread waits. */
static smelt_status release_barrier(struct scalar_state *state, int count, bool *finished) {
    struct thread *waiting = NULL;
    for (int i = 0; i < count && !waiting; i++)
        if (state->threads[i].state == THREAD_AT_BARRIER) waiting = &state->threads[i];
    *finished = !waiting;
    if (!waiting) return SMELT_OK;
    for (int i = 0; i < count; i++) {
        const struct thread *other = &state->threads[i];
        bool gone =
            other->state == THREAD_DONE && (other->context.returned || has_left(state, count, i, waiting));
        bool here = other->state == THREAD_AT_BARRIER && other->line == waiting->line &&
                    (other->file == waiting->file || strcmp(other->file, waiting->file) == 0);
        if (gone || here) continue;
        struct standing here_it_waits = standing_of(waiting), there = standing_of(other);
        checked_barrier(state->worker, &here_it_waits, &there);
        return barrier_failure(state->worker, &here_it_waits, &there);
    }
    for (int i = 0; i < count; i++)
        if (state->threads[i].state == THREAD_AT_BARRIER) state->threads[i].state = THREAD_READY;
    return SMELT_OK;
}

/* ---- Groups. */

static int prepare_threads(struct scalar_state *state) {
    struct group_context *group = &state->worker->group;
    struct thread *thread = state->threads;
    uint32_t index = 0;
    for (uint32_t z = 0; z < group->size[2]; z++)
        for (uint32_t y = 0; y < group->size[1]; y++)
            for (uint32_t x = 0; x < group->size[0]; x++, thread++, index++) {
                thread->context.group = group;
                thread->context.position[0] = x;
                thread->context.position[1] = y;
                thread->context.position[2] = z;
                thread->context.index = index;
                thread->context.lane = index % SIMDGROUP_LANES;
                thread->context.simdgroup = index / SIMDGROUP_LANES;
                thread->context.returned = 0;
                thread->state = THREAD_UNSTARTED;
                thread->fiber = NULL;
            }
    return (int)index;
}

/* The group worker->group names. */
static smelt_status run_group(struct scalar_state *state) {
    struct worker *worker = state->worker;
    int count = prepare_threads(state);
    worker->ended = ENDED_WELL;
    TRY(checked_begin_group(worker)); /* looks at memory for the last time before it is filled */
    worker_begin_group(worker);
    /* Without simdgroup operations the threads need not be kept in their simdgroups. */
    uint64_t seed = worker->launch->schedule, salt = worker->group.position[0] + 1;
    int step = worker->code->head.image.site_count || seed ? SIMDGROUP_LANES : count;
    int parts = (count + step - 1) / step;
    smelt_status status = SMELT_OK;
    bool finished = false;
    while (status == SMELT_OK && !finished && worker->ended == ENDED_WELL) {
        salt += UINT64_C(1) << 32; /* another order after each barrier */
        for (int part = 0; part < parts && status == SMELT_OK && worker->ended == ENDED_WELL; part++) {
            int first = (int)schedule_at(seed, salt, (uint64_t)part, (uint64_t)parts) * step;
            status = run_simdgroup(state, first, first + step < count ? first + step : count);
        }
        if (status == SMELT_OK && worker->ended == ENDED_WELL)
            status = release_barrier(state, count, &finished);
    }
    char who[32];
    snprintf(who, sizeof who, "thread %u", state->current->context.index);
    if (status == SMELT_OK && worker->ended == ENDED_BY_FAULT) status = fault_failure(worker, who);
    if (status == SMELT_OK && worker->ended == ENDED_OUTSIDE) status = worker_outside_failure(worker, who);
    if (status == SMELT_OK) status = worker_memory_failure(worker);
    if (status != SMELT_OK || worker->ended != ENDED_WELL) free_all_fibers(state);
    return status;
}

smelt_status scalar_run_groups(struct worker *worker, struct cpu_launch *launch, uint64_t *first,
                               uint64_t last) {
    struct scalar_state *state = NULL;
    TRY(state_of(worker, launch->check != NULL, &state));
    TRY(worker_prepare(worker, launch));
    worker->code = launch->codes.full;
    const uint32_t *counts = launch->request->groups;
    uint64_t groups = (uint64_t)counts[0] * counts[1] * counts[2];
    while (*first < last && !__atomic_load_n(&launch->stop, __ATOMIC_RELAXED) &&
           !(launch->is_improved && launch->is_improved(launch))) {
        worker_place_group(worker, schedule_at(launch->schedule, 0, (*first)++, groups));
        TRY(run_group(state));
    }
    return SMELT_OK;
}
