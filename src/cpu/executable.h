/* An entry on the CPU and its codes: machine code made for one shape of launch each, when it is first needed,
 * kept until the entry is unloaded. */
#ifndef SMELT_CPU_EXECUTABLE_H
#define SMELT_CPU_EXECUTABLE_H

#include "cpu/context.h"
#include "cpu/object.h"
#include "kernel/device.h"

#include <pthread.h>
#include <stdatomic.h>

/* Never changed once it is in the list. */
struct code {
    struct code *next;
    struct code_shape shape; /* asked for; what the SIMD engine refused is code of the scalar engine */
    struct image image;
    struct object object;
    kernel_function *thread; /* where image.engine is ENGINE_SCALAR */
    gang_function *gang;     /* where it is ENGINE_SIMD */
};

struct executable {
    char *name;
    struct code_source source;
    enum engine engine;           /* wanted */
    pthread_mutex_t lock;         /* to add a code */
    _Atomic(struct code *) codes; /* latest first; only ever added to */
    bool refusal_logged;
};

smelt_status executable_create(const struct code_source *source, const char *name, enum engine engine,
                               struct executable **executable);
void executable_free(struct executable *executable);

/* Adds a code that is ready to run; where one of its shape has come in meanwhile, that one stays and *code is
 * it. Takes `made`, heap memory, over. */
void executable_add(struct executable *executable, struct code *made, const struct code **code);

/* The codes of a launch: for its full groups and for those at the edge; the same for both where one serves,
 * or NULL where there is no such group. Either both are of the SIMD engine or both are one code of the scalar
 * engine. Compiles what is missing, and notes it in `preparation` (may be NULL). */
struct launch_codes {
    const struct code *full, *edge;
};
smelt_status executable_codes(struct executable *executable, const struct launch *launch,
                              struct launch_codes *codes, struct preparation *preparation);

#endif
