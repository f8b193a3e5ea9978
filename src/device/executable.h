/* An entry on a device and its codes, by the shape of launch each was compiled for: compiled when a launch
 * first needs them, kept until the entry is unloaded. Finding one takes no lock. */
#ifndef SMELT_DEVICE_EXECUTABLE_H
#define SMELT_DEVICE_EXECUTABLE_H

#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>

/* The head of a device's own code. Never changed once it is in the list. */
struct code_head {
    struct code_head *next;
    struct code_shape shape; /* asked for; the image may be of another engine */
    struct image image;
};

struct executable {
    const struct device *device;
    char *name;
    struct code_source source;
    pthread_mutex_t lock;              /* to add a code, and for what the device changes in one */
    _Atomic(struct code_head *) first; /* latest first; only ever added to */
    atomic_flag refusal_logged;        /* CPUs: that the SIMD engine refused one */
};

/* An entry under `name` (for messages), with no code yet. */
smelt_status executable_load(const struct device *device, const struct code_source *source, const char *name,
                             struct executable **executable);
void executable_unload(struct executable *executable);

/* The code for a shape of launch, compiled if it is missing, which `preparation` (may be NULL) then records.
 * Two threads may compile for the same shape: one result is kept. */
smelt_status executable_code(struct executable *executable, const struct code_shape *shape,
                             struct code_head **code, struct preparation *preparation);

/* Adds a code that is ready to run, heap memory, and returns it. If another thread has added one of its
 * shape, that one stays and is the result. */
struct code_head *executable_add(struct executable *executable, struct code_head *made);

#endif
