/* An entry on a device and its codes, by the shape of launch each was compiled for: compiled when a launch
 * first needs them, kept until the entry is unloaded. Finding one takes no lock.
 *
 * A shape may have two codes. Where the best takes long to compile, launches run quick code first, which
 * gives the same bits; the best is compiled in the background (base/background.h), and found by launches from
 * then on. */
#ifndef SMELT_DEVICE_EXECUTABLE_H
#define SMELT_DEVICE_EXECUTABLE_H

#include "device/device.h"

#include <pthread.h>
#include <stdatomic.h>

/* The head of a device's own code. Never changed once it is in the list. */
struct code_head {
    struct code_head *next;
    struct code_shape shape;         /* asked for; the image may be of another engine */
    const struct code_head *general; /* for the same shape and all values, in whose place this code may run if
                                        a launch has the values … */
    const struct known_values *values; /* … here; both NULL: this code is for all values */
    struct image image;
};

/* The compile of a shape's best code while launches run its quick code. */
struct better_code;

struct executable {
    const struct device *device;
    char *name;
    struct code_source source;
    pthread_mutex_t lock;                 /* for what the device changes in a code */
    _Atomic(struct code_head *) first;    /* latest first; only ever added to */
    _Atomic(struct better_code *) better; /* likewise */
    atomic_flag refusal_logged;           /* CPUs: that the SIMD engine refused one */
    atomic_flag reduced_logged;           /* that the kernel's size costs some of its optimisation */
    atomic_flag quick_logged;             /* that launches run quick code */
};

/* An entry under `name` (for messages), with no code yet. */
smelt_status executable_load(const struct device *device, const struct code_source *source, const char *name,
                             struct executable **executable);
void executable_unload(struct executable *executable);

/* The best code for a shape of launch, if there is one yet; or quick code. */
struct code_head *executable_find(struct executable *executable, const struct code_shape *shape, bool quick);

/* The code for a shape of launch: the best, or else what the effort allows, compiled if it is missing, which
 * `preparation` (may be NULL) then records. If the best is being compiled in the background, and nothing else
 * will do, waits for it. If quick code is the result, the best is missing: executable_improve. Two threads
 * may compile for the same shape: one result is kept. */
smelt_status executable_code(struct executable *executable, const struct code_shape *shape,
                             enum compile_effort effort, struct code_head **code,
                             struct preparation *preparation);
/* … by a compile even if there is one, which may be of the other kind. */
smelt_status executable_compile(struct executable *executable, const struct code_shape *shape,
                                enum compile_effort effort, struct code_head **code,
                                struct preparation *preparation);

/* Compiles the best code for a shape of launch in the background, if it is missing. The compile begins after
 * so many seconds (at most one), or as soon as a call with 0 seconds asks for the same code. */
void executable_improve(struct executable *executable, const struct code_shape *shape, double seconds);

/* Compiles code for the shape of `general` and these values, in the background or now, or takes it from the
 * cache in the background. `done` is called with the code, or with NULL after a failure, which is not
 * reported; not at all if the process ends before. executable_find does not find such code. */
enum know_how { KNOW_BY_COMPILE, KNOW_NOW, KNOW_FROM_CACHE };
typedef void known_code_function(void *context, struct code_head *code);
void executable_know(struct executable *executable, const struct code_head *general,
                     const struct known_values *values, enum know_how how, known_code_function *done,
                     void *context);

/* Waits for all compiles in the background; the first failure of one. INTERRUPTED. */
smelt_status executable_wait(struct executable *executable);

/* Whether a compile in the background is queued or running. */
bool executable_is_improving(struct executable *executable);

/* Adds a code that is ready to run, heap memory, and returns it. If another thread has added one of its
 * shape, that one stays and is the result. */
struct code_head *executable_add(struct executable *executable, struct code_head *made);

#endif
