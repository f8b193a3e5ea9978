/* A queue is a thread that runs a list of launches. They share the pool: launches of one threadgroup run side
 * by side, larger ones in turn. */
#include "device/cpu/queue.h"
#include "array/array.h"
#include "base/arena.h"
#include "base/interrupt.h"
#include "base/thread.h"
#include "device/cpu/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A launch, or a point to wait for. */
struct job {
    struct job *next;
    struct arena arena; /* of the copies */
    struct launch launch;
    smelt_interrupt *interrupt;
    struct queue_point awaited; /* its queue is NULL: a launch */
};

struct cpu_queue {
    struct queue queue;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t enqueued, ended;
    struct job *first, **last;
    uint64_t issued, done; /* jobs */
    bool closing;
    smelt_status status; /* of job number `failed`, the first that failed */
    uint64_t failed;
    char *message;
};

/* ---- Jobs. */

static void job_free(struct job *job) {
    const struct image *image = job->launch.image;
    for (int i = 0; job->launch.buffers && i < image->binding_count; i++) {
        const struct binding *binding = launch_binding(&job->launch, i);
        if (binding->kind != BINDING_BUFFER) continue;
        struct memory *memory = job->launch.buffers[binding->index].memory;
        if (memory) memory_release(memory);
    }
    smelt_interrupt_release(job->interrupt);
    arena_free(&job->arena);
    free(job);
}

static void *copy(struct arena *arena, const void *bytes, size_t count) {
    void *result = arena_alloc(arena, count);
    if (result && count) memcpy(result, bytes, count);
    return result;
}

/* Only buffers that the code has are set. */
static void copy_buffers(struct job *job, const struct launch *launch) {
    const struct image *image = launch->image;
    struct launch_buffer *buffers = arena_alloc(&job->arena, LAUNCH_MAX_BUFFERS * sizeof *buffers);
    for (int i = 0; buffers && i < image->binding_count; i++) {
        const struct binding *binding = launch_binding(launch, i);
        if (binding->kind != BINDING_BUFFER) continue;
        struct launch_buffer *buffer = &buffers[binding->index];
        *buffer = launch->buffers[binding->index];
        if (buffer->memory)
            memory_retain(buffer->memory);
        else
            *buffer = (struct launch_buffer){
                .start = copy(&job->arena, launch_address(buffer), buffer->bytes), .bytes = buffer->bytes};
    }
    job->launch.buffers = buffers;
}

static struct job *copy_launch(const struct launch *launch) {
    struct job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    job->launch = *launch;
    copy_buffers(job, launch);
    if (launch->threadgroup_memory)
        job->launch.threadgroup_memory = copy(&job->arena, launch->threadgroup_memory,
                                              SMELT_MAX_BUFFERS * sizeof *launch->threadgroup_memory);
    job->interrupt = smelt_interrupt_retain(interrupt_of_call());
    if (!job->arena.failed) return job;
    job_free(job);
    return NULL;
}

/* ---- The thread. */

static smelt_status await(struct queue_point point) {
    struct cpu_queue *queue = (struct cpu_queue *)point.queue;
    pthread_mutex_lock(&queue->lock);
    while (queue->done < point.number) pthread_cond_wait(&queue->ended, &queue->lock);
    smelt_status status = queue->failed && queue->failed <= point.number ? queue->status : SMELT_OK;
    if (status != SMELT_OK) error_record("%s", queue->message ? queue->message : "a launch failed");
    pthread_mutex_unlock(&queue->lock);
    return status;
}

static smelt_status run(struct job *job) {
    if (job->awaited.queue) return await(job->awaited);
    smelt_interrupt *outer = interrupt_begin_call(job->interrupt);
    smelt_status status = interrupt_check();
    if (status == SMELT_OK) status = job->launch.device->run(&job->launch);
    interrupt_end_call(outer);
    return status;
}

/* The next job, or NULL when the queue is closed. */
static struct job *take(struct cpu_queue *queue) {
    while (!queue->first && !queue->closing) pthread_cond_wait(&queue->enqueued, &queue->lock);
    struct job *job = queue->first;
    if (!job) return NULL;
    queue->first = job->next;
    if (!queue->first) queue->last = &queue->first;
    return job;
}

static void *work(void *argument) {
    struct cpu_queue *queue = argument;
    pthread_mutex_lock(&queue->lock);
    for (struct job *job; (job = take(queue));) {
        smelt_status status = SMELT_OK;
        bool failed = queue->failed;
        pthread_mutex_unlock(&queue->lock);
        if (!failed) status = run(job);
        job_free(job);
        pthread_mutex_lock(&queue->lock);
        queue->done++;
        if (status != SMELT_OK) {
            queue->status = status;
            queue->message = strdup(smelt_error());
            queue->failed = queue->done;
        }
        pthread_cond_broadcast(&queue->ended);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

/* ---- Functions of struct queue_functions. */

static void queue_free(struct cpu_queue *queue) {
    pthread_cond_destroy(&queue->enqueued);
    pthread_cond_destroy(&queue->ended);
    pthread_mutex_destroy(&queue->lock);
    free(queue->message);
    free(queue);
}

static smelt_status open_queue(const struct device *device, struct queue **out) {
    struct cpu_queue *queue = calloc(1, sizeof *queue);
    if (!queue) return fail_out_of_memory(sizeof *queue);
    queue->queue.device = device;
    queue->last = &queue->first;
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->enqueued, NULL);
    pthread_cond_init(&queue->ended, NULL);
    int error = pool_start_thread(&queue->thread, work, queue);
    if (error) {
        queue_free(queue);
        return fail(SMELT_ERROR_OUT_OF_MEMORY, "the thread of a queue could not be started: %s",
                    thread_reason(error));
    }
    (void)pthread_setname_np(queue->thread, "smelt queue");
    *out = &queue->queue;
    return SMELT_OK;
}

static void close_queue(struct queue *closed) {
    struct cpu_queue *queue = (struct cpu_queue *)closed;
    if (!queue) return;
    pthread_mutex_lock(&queue->lock);
    queue->closing = true;
    pthread_cond_signal(&queue->enqueued);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
    queue_free(queue);
}

/* NULL: out of memory. */
static smelt_status enqueue(struct queue *to, struct job *job) {
    struct cpu_queue *queue = (struct cpu_queue *)to;
    if (!job) return fail_out_of_memory(sizeof *job);
    pthread_mutex_lock(&queue->lock);
    *queue->last = job;
    queue->last = &job->next;
    queue->issued++;
    pthread_cond_signal(&queue->enqueued);
    pthread_mutex_unlock(&queue->lock);
    return SMELT_OK;
}

static smelt_status enqueue_launch(struct queue *queue, const struct launch *launch) {
    return enqueue(queue, copy_launch(launch));
}

static smelt_status follow(struct queue *queue, struct queue_point point) {
    struct job *job = calloc(1, sizeof *job);
    if (job) job->awaited = point;
    return enqueue(queue, job);
}

static struct queue_point point(struct queue *of) {
    struct cpu_queue *queue = (struct cpu_queue *)of;
    pthread_mutex_lock(&queue->lock);
    struct queue_point now = {of, queue->issued};
    pthread_mutex_unlock(&queue->lock);
    return now;
}

static smelt_status wait(struct queue *queue) {
    return await(point(queue));
}

const struct queue_functions cpu_queues = {.open = open_queue,
                                           .close = close_queue,
                                           .launch = enqueue_launch,
                                           .point = point,
                                           .follow = follow,
                                           .wait = wait};
