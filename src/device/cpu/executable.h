/* Codes of an entry on the CPU: machine code, and the selection for a launch. */
#ifndef SMELT_DEVICE_CPU_EXECUTABLE_H
#define SMELT_DEVICE_CPU_EXECUTABLE_H

#include "abi/cpu_context.h"
#include "device/cpu/object.h"
#include "device/executable.h"

struct value_sets;

struct code {
    struct code_head head; /* code of the scalar engine if the SIMD engine refused */
    struct object object;
    kernel_function *thread;       /* the entry point, if one call runs a thread */
    gang_function *gang;           /* and if one call runs a gang */
    questions_function *questions; /* NULL: it has none */
    struct value_sets *sets;       /* NULL: no values of arguments make better code (values.h) */
};

/* A launch has scalar code or gangs, not both. */
static inline bool cpu_code_is_scalar(const struct code *code) {
    return !engine_traits(code->head.image.engine)->is_vector;
}

/* Of struct device. */
smelt_status cpu_make_code(struct executable *executable, struct code_head *code);
void cpu_free_code(struct executable *executable, struct code_head *code);

/* The codes of a launch: for its full groups and for those at the edge; NULL if there is no such group.
 * Either both are of the SIMD engine or both are one code of the scalar engine: where the SIMD engine refused
 * one of them, both are the code for the edge. If a best code is missing and the launch need not wait for it,
 * quick code takes its place, and the best is compiled in the background. */
struct launch_codes {
    const struct code *full, *edge;
};
static inline bool cpu_codes_are_quick(const struct launch_codes *codes) {
    return (codes->full && codes->full->head.image.quick) || (codes->edge && codes->edge->head.image.quick);
}

/* Compiles missing code, and records this in `preparation` (may be NULL). If the launch's groups can be
 * joined, *launch becomes `joined`, with those groups. */
smelt_status executable_codes(const struct launch **launch, struct launch *joined, struct launch_codes *codes,
                              struct preparation *preparation);

/* The launch has ended: the best code is compiled now, if it is missing. */
void executable_codes_improve(const struct launch *launch, const struct launch_codes *codes);

/* The best codes of a launch, if they are all there; compiles nothing. */
bool executable_codes_ready(const struct launch *launch, struct launch_codes *codes);

#endif
