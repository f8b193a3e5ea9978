/* Queues: launches that run after the call that enqueued them, one after another. Internal, for independent
 * parts of a larger computation; public runs on a CPU end before they return.
 *
 * Functions of one queue may be called from several threads. A queue belongs to the process that opened it: a
 * forked child does not use it. */
#ifndef SMELT_DEVICE_QUEUE_H
#define SMELT_DEVICE_QUEUE_H

#include "device/device.h"

/* The head of a device's own queue. */
struct queue {
    const struct device *device;
};

/* A moment in a queue: the first `number` pieces of its work have ended. */
struct queue_point {
    struct queue *queue;
    uint64_t number;
};

struct queue_functions {
    smelt_status (*open)(const struct device *device, struct queue **queue);
    /* Waits for all work and frees the queue, to whose points no queue may still be waiting. NULL does
     * nothing. */
    void (*close)(struct queue *queue);
    /* Enqueues a prepared launch of the queue's device. Its memory is retained until it has ended; its bytes,
     * buffers and threadgroup memory are copied. Its executable, `what`, `entry` and `info` must stay until
     * then. The interrupt of the call ends it. Log lines are delivered on another thread. OUT_OF_MEMORY. */
    smelt_status (*launch)(struct queue *queue, const struct launch *launch);
    /* After all work that has been enqueued so far. */
    struct queue_point (*point)(struct queue *queue);
    /* Work that is enqueued from now on starts after the point of another queue of the same device.
     * OUT_OF_MEMORY. */
    smelt_status (*follow)(struct queue *queue, struct queue_point point);
    /* Until all work that has been enqueued so far has ended. Returns the queue's first failure, with its
     * message, each time. After a failure, the queue runs nothing; a queue that follows a point that failed
     * fails the same way. */
    smelt_status (*wait)(struct queue *queue);
};

#endif
