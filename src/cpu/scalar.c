#include "cpu/scalar.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIBER_CHUNK 32

static _Thread_local struct worker *this_worker __attribute__((tls_model("initial-exec")));
static pthread_key_t worker_key;
static pthread_once_t worker_once = PTHREAD_ONCE_INIT;

static void worker_destroy(void *pointer) {
    struct worker *worker = pointer;
    for (int i = 0; i < worker->fiber_count; i += FIBER_CHUNK)
        fibers_destroy(&worker->fibers[i], FIBER_CHUNK);
    free(worker->fibers);
    free(worker->free_fibers);
    free(worker->threads);
    free(worker->threadgroup_memory);
    free(worker);
    this_worker = NULL;
    fault_release_thread();
}

static void make_key(void) {
    (void)pthread_key_create(&worker_key, worker_destroy);
}

smelt_status worker_of_this_thread(struct worker **out) {
    if (!this_worker) {
        pthread_once(&worker_once, make_key);
        struct worker *worker = calloc(1, sizeof *worker);
        if (worker) {
            worker->threads = calloc(MAX_THREADS_PER_GROUP, sizeof *worker->threads);
            worker->fibers = calloc(MAX_THREADS_PER_GROUP, sizeof *worker->fibers);
            worker->free_fibers = calloc(MAX_THREADS_PER_GROUP, sizeof(struct fiber *));
        }
        if (!worker || !worker->threads || !worker->fibers || !worker->free_fibers ||
            pthread_setspecific(worker_key, worker) != 0) {
            if (worker) worker_destroy(worker);
            return fail_out_of_memory(MAX_THREADS_PER_GROUP * sizeof(struct thread));
        }
        this_worker = worker;
        fault_prepare_thread();
    }
    *out = this_worker;
    return SMELT_OK;
}

struct worker *worker_in_kernel(void) {
    return this_worker && this_worker->in_kernel ? this_worker : NULL;
}

/* ---- Fibers of a worker. */

static smelt_status take_fiber(struct worker *worker, struct fiber **fiber) {
    if (!worker->free_count) {
        if (worker->fiber_count == MAX_THREADS_PER_GROUP)
            return fail(SMELT_ERROR_INTERNAL, "more than %d threads wait in one group",
                        MAX_THREADS_PER_GROUP);
        TRY(fibers_create(&worker->fibers[worker->fiber_count], FIBER_CHUNK));
        for (int i = FIBER_CHUNK - 1; i >= 0; i--)
            worker->free_fibers[worker->free_count++] = &worker->fibers[worker->fiber_count + i];
        worker->fiber_count += FIBER_CHUNK;
    }
    *fiber = worker->free_fibers[--worker->free_count];
    return SMELT_OK;
}

static void free_all_fibers(struct worker *worker) {
    worker->free_count = 0;
    for (int i = worker->fiber_count - 1; i >= 0; i--)
        worker->free_fibers[worker->free_count++] = &worker->fibers[i];
}

/* Runs unstarted threads one after another until one waits: then the fiber stays with that thread, and ends
 * with it. */
static void fiber_main(void *argument) {
    struct worker *worker = argument;
    struct fiber *self = worker->running;
    fiber_started(&worker->home);
    while (worker->next_thread < worker->last_thread) {
        struct thread *thread = &worker->threads[worker->next_thread++];
        thread->fiber = self;
        worker->current = thread;
        worker->launch->executable->function(&thread->context);
        thread->state = THREAD_DONE;
        thread->fiber = NULL;
    }
    worker->free_fibers[worker->free_count++] = self;
    fiber_leave(self, &worker->home);
}

static void enter(struct worker *worker, struct fiber *fiber) {
    worker->running = fiber;
    worker->in_kernel = true;
    fiber_enter(fiber, &worker->home);
    worker->in_kernel = false;
}

/* Called on a fiber: the thread waits until the scheduler makes it ready. */
static void wait_in_state(struct thread *thread, enum thread_state state) {
    struct worker *worker = this_worker;
    thread->state = state;
    fiber_leave(thread->fiber, &worker->home);
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
    struct worker *worker = this_worker;
    (void)context;
    worker->ended = ENDED_BY_STOP;
    fiber_leave(worker->running, &worker->home);
}

/* ---- Scheduling. */

static smelt_status run_ready(struct worker *worker, int first, int last) {
    worker->next_thread = first;
    worker->last_thread = last;
    while (worker->next_thread < last) {
        if (worker->threads[worker->next_thread].state != THREAD_UNSTARTED) {
            worker->next_thread++;
            continue;
        }
        struct fiber *fiber;
        TRY(take_fiber(worker, &fiber));
        fiber_prepare(fiber, fiber_main, worker, (int)(fiber - worker->fibers));
        enter(worker, fiber);
        if (worker->ended != ENDED_WELL) return SMELT_OK;
    }
    for (int i = first; i < last; i++) {
        struct thread *thread = &worker->threads[i];
        if (thread->state != THREAD_READY) continue;
        worker->current = thread;
        enter(worker, thread->fiber);
        if (worker->ended != ENDED_WELL) return SMELT_OK;
    }
    return SMELT_OK;
}

/* Runs the threads [first, last), one simdgroup, until each is done or waits at a barrier. */
static smelt_status run_simdgroup(struct worker *worker, int first, int last) {
    const struct site *sites = worker->launch->executable->image.sites;
    do {
        TRY(run_ready(worker, first, last));
        if (worker->ended != ENDED_WELL) return SMELT_OK;
    } while (simdgroup_step(worker->threads, first, last, sites));
    return SMELT_OK;
}

static smelt_status barrier_failure(const struct worker *worker, const struct thread *waiting,
                                    const struct thread *other) {
    const char *name = worker->launch->executable->name;
    if (other->state == THREAD_DONE)
        return fail(
            SMELT_ERROR_BARRIER,
            "kernel '%s': thread %u of threadgroup (%u, %u, %u) waits at the barrier in %s:%u, but thread %u "
            "reached the end of the kernel without passing it; all threads of a threadgroup must meet at a "
            "barrier or leave by return",
            name, waiting->context.index, worker->group.position[0], worker->group.position[1],
            worker->group.position[2], waiting->file, waiting->line, other->context.index);
    return fail(SMELT_ERROR_BARRIER,
                "kernel '%s': thread %u of threadgroup (%u, %u, %u) waits at the barrier in %s:%u, but "
                "thread %u waits "
                "at the one in %s:%u; all threads of a threadgroup must meet at the same barrier",
                name, waiting->context.index, worker->group.position[0], worker->group.position[1],
                worker->group.position[2], waiting->file, waiting->line, other->context.index, other->file,
                other->line);
}

/* When every thread is done or waits: releases the barrier. *finished: no thread waits. */
static smelt_status release_barrier(struct worker *worker, int count, bool *finished) {
    struct thread *waiting = NULL;
    for (int i = 0; i < count && !waiting; i++)
        if (worker->threads[i].state == THREAD_AT_BARRIER) waiting = &worker->threads[i];
    *finished = !waiting;
    if (!waiting) return SMELT_OK;
    for (int i = 0; i < count; i++) {
        const struct thread *other = &worker->threads[i];
        bool gone = other->state == THREAD_DONE && other->context.returned;
        bool here = other->state == THREAD_AT_BARRIER && other->line == waiting->line &&
                    (other->file == waiting->file || strcmp(other->file, waiting->file) == 0);
        if (!gone && !here) return barrier_failure(worker, waiting, other);
    }
    for (int i = 0; i < count; i++)
        if (worker->threads[i].state == THREAD_AT_BARRIER) worker->threads[i].state = THREAD_READY;
    return SMELT_OK;
}

static smelt_status fault_failure(const struct worker *worker) {
    const struct executable *executable = worker->launch->executable;
    const struct thread *thread = worker->current;
    struct source_line line;
    char where[512] = "a line the code does not tell";
    if (object_line(&executable->object, worker->fault_instruction, &line))
        snprintf(where, sizeof where, "%s:%d", line.file, line.line);
    const char *stack = thread->fiber ? thread->fiber->stack : NULL;
    const char *address = worker->fault_address;
    /* Near the stack, that is in the inaccessible page before or behind it. */
    if (stack && address >= stack - 65536 && address < stack + FIBER_STACK_BYTES + 65536)
        return fail(SMELT_ERROR_FAULT,
                    "kernel '%s' ran past its private arrays at %s (thread %u of threadgroup (%u, %u, %u))",
                    executable->name, where, thread->context.index, worker->group.position[0],
                    worker->group.position[1], worker->group.position[2]);
    return fail(
        SMELT_ERROR_FAULT,
        "kernel '%s' accessed address %p, which it may not, at %s (thread %u of threadgroup (%u, %u, %u))",
        executable->name, worker->fault_address, where, thread->context.index, worker->group.position[0],
        worker->group.position[1], worker->group.position[2]);
}

/* ---- One group. */

static smelt_status prepare_memory(struct worker *worker, const struct cpu_launch *launch) {
    if (worker->threadgroup_capacity < launch->threadgroup_total) {
        size_t bytes = (launch->threadgroup_total + 255) / 128 * 128;
        free(worker->threadgroup_memory);
        worker->threadgroup_capacity = 0;
        worker->threadgroup_memory = aligned_alloc(128, bytes);
        if (!worker->threadgroup_memory) return fail_out_of_memory(bytes);
        worker->threadgroup_capacity = bytes;
    }
    worker->group.threadgroup_memory = worker->threadgroup_memory;
    size_t offset = (launch->executable->image.threadgroup_bytes + 127) / 128 * 128;
    for (int i = 0; i < CPU_MAX_THREADGROUP_SLOTS; i++) {
        worker->group.threadgroup_slots[i] =
            worker->threadgroup_memory ? worker->threadgroup_memory + offset : NULL;
        offset += (launch->threadgroup_bytes[i] + 127) / 128 * 128;
    }
    return SMELT_OK;
}

static int prepare_group(struct worker *worker, const struct cpu_launch *launch, const uint32_t position[3]) {
    struct group_context *group = &worker->group;
    int count = 1;
    for (int d = 0; d < 3; d++) {
        uint64_t start = (uint64_t)position[d] * launch->group_size[d];
        uint64_t left = launch->grid[d] - start;
        group->position[d] = position[d];
        group->dispatch_size[d] = launch->group_size[d];
        group->size[d] = left < launch->group_size[d] ? (uint32_t)left : launch->group_size[d];
        group->grid[d] = launch->grid[d];
        group->groups[d] = launch->groups[d];
        count *= (int)group->size[d];
    }
    group->simdgroup_count = ((uint32_t)count + SIMDGROUP_LANES - 1) / SIMDGROUP_LANES;
    group->buffers = launch->buffers;
    group->stop = &launch->stop;
    struct thread *thread = worker->threads;
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
    return count;
}

smelt_status scalar_run_group(struct worker *worker, const struct cpu_launch *launch,
                              const uint32_t position[3]) {
    const struct image *image = &launch->executable->image;
    TRY(prepare_memory(worker, launch));
    int count = prepare_group(worker, launch, position);
    worker->launch = launch;
    worker->ended = ENDED_WELL;
    /* Without simdgroup operations the threads need not be kept in their simdgroups. */
    int step = image->site_count ? SIMDGROUP_LANES : count;
    smelt_status status = SMELT_OK;
    bool finished = false;
    while (status == SMELT_OK && !finished && worker->ended == ENDED_WELL) {
        for (int first = 0; first < count && status == SMELT_OK && worker->ended == ENDED_WELL; first += step)
            status = run_simdgroup(worker, first, first + step < count ? first + step : count);
        if (status == SMELT_OK && worker->ended == ENDED_WELL)
            status = release_barrier(worker, count, &finished);
    }
    if (status == SMELT_OK && worker->ended == ENDED_BY_FAULT) status = fault_failure(worker);
    if (status != SMELT_OK || worker->ended != ENDED_WELL) free_all_fibers(worker);
    return status;
}
