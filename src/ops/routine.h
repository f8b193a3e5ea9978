/* Shipped kernels of operations: texts of kernels/ behind typedefs and constants that a call determines. */
#ifndef SMELT_OPS_ROUTINE_H
#define SMELT_OPS_ROUTINE_H

#include "ops/operation.h"

#define ROUTINE_TYPES 4
#define ROUTINE_SIZES 5

/* Which function of which text. */
struct routine {
    const char *entry; /* "smelt_softmax": tells routines apart by its first 20 characters after "smelt_" */
    const char *texts[2]; /* in order; the second may be NULL */
    struct {
        const char *name; /* NULL ends the list */
        smelt_dtype dtype;
    } types[ROUTINE_TYPES];
    struct {
        const char *name; /* NULL ends the list */
        int32_t value;
    } sizes[ROUTINE_SIZES];
};

/* Runs it on the call's device and stream, which it sets in `dispatch`. */
smelt_status routine_run(const struct call *call, const struct routine *routine,
                         smelt_dispatch_desc *dispatch);

/* Whether kernels compute in this dtype: float32, float16 or bfloat16. */
bool routine_is_float(smelt_dtype dtype);

/* The threads of a group for a grid of independent threads: on a CPU a group costs half a microsecond, so it
 * has many. */
void routine_group(const struct call *call, const int64_t grid[3], int64_t group[3]);

/* Threads for one team per row: a simdgroup, or on GPUs a threadgroup for long rows. */
struct routine_team {
    int simdgroups; /* of a row */
    int64_t groups, threads;
};
struct routine_team routine_team_of(const struct call *call, int64_t rows, int64_t columns);

#endif
