/* An entry on the CPU and its codes: machine code made for one shape of launch each, when it is first needed,
 * kept until the entry is unloaded. */
#ifndef SMELT_DEVICE_CPU_EXECUTABLE_H
#define SMELT_DEVICE_CPU_EXECUTABLE_H

#include "abi/cpu_context.h"
#include "device/cpu/object.h"
#include "device/code_list.h"

struct code {
    struct code_head head; /* what the SIMD engine refused is code of the scalar engine */
    struct object object;
    kernel_function *thread; /* where the image's engine is ENGINE_SCALAR */
    gang_function *gang;     /* where it is ENGINE_SIMD */
};

struct executable {
    char *name;
    struct code_source source;
    enum engine engine; /* wanted */
    struct code_list codes;
    atomic_flag refusal_logged;
};

smelt_status executable_create(const struct code_source *source, const char *name, enum engine engine,
                               struct executable **executable);
void executable_free(struct executable *executable);

/* As code_list_add: takes `made`, heap memory, over. */
const struct code *executable_add(struct executable *executable, struct code *made);

/* The codes of a launch: for its full groups and for those at the edge; the same for both where one serves,
 * or NULL where there is no such group. Either both are of the SIMD engine or both are one code of the scalar
 * engine. Compiles what is missing, and notes it in `preparation` (may be NULL). */
struct launch_codes {
    const struct code *full, *edge;
};
smelt_status executable_codes(const struct launch *launch, struct launch_codes *codes,
                              struct preparation *preparation);

#endif
