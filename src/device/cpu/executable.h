/* Codes of an entry on the CPU: machine code, and the selection for a launch. */
#ifndef SMELT_DEVICE_CPU_EXECUTABLE_H
#define SMELT_DEVICE_CPU_EXECUTABLE_H

#include "abi/cpu_context.h"
#include "device/cpu/object.h"
#include "device/executable.h"

struct code {
    struct code_head head; /* code of the scalar engine if the SIMD engine refused */
    struct object object;
    kernel_function *thread; /* where the image's engine is ENGINE_SCALAR */
    gang_function *gang;     /* where it is ENGINE_SIMD */
};

/* Of struct device. */
smelt_status cpu_make_code(struct executable *executable, struct code_head *code);
void cpu_free_code(struct executable *executable, struct code_head *code);

/* The codes of a launch: for its full groups and for those at the edge; the same for both if one serves both,
 * or NULL if there is no such group. Either both are of the SIMD engine or both are one code of the scalar
 * engine. Compiles missing code, and records this in `preparation` (may be NULL). */
struct launch_codes {
    const struct code *full, *edge;
};
smelt_status executable_codes(const struct launch *launch, struct launch_codes *codes,
                              struct preparation *preparation);

#endif
