/* Shipped kernels of operations: texts of kernels/ behind typedefs and constants that a call determines. */
#ifndef SMELT_OPS_ROUTINE_H
#define SMELT_OPS_ROUTINE_H

#include "ops/operation.h"

#define ROUTINE_TYPES 4
#define ROUTINE_SIZES 4

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

/* An input as a routine reads it: on the call's device, row-contiguous, of a dtype. A new reference. */
smelt_status routine_input(const struct call *call, smelt_array *array, smelt_dtype dtype,
                           smelt_array **result);

/* Whether kernels compute in this dtype: float32, float16 or bfloat16. */
bool routine_is_float(smelt_dtype dtype);

/* An array as rows: the dimensions `axes` last, joined to one row. */
struct routine_rows {
    smelt_array *array;              /* row-contiguous, of the call's device: a reference */
    int64_t rows, columns;           /* columns >= 1 if the array has elements */
    bool moved;                      /* dimensions are in another order than the input's */
    smelt_shape shape;               /* of `array` */
    int order[SMELT_MAX_DIMENSIONS]; /* dimension i of `array` is the input's order[i] */
};
smelt_status routine_rows_open(const struct call *call, smelt_array *array, uint32_t axes, smelt_dtype dtype,
                               struct routine_rows *rows);
/* Releases the rows. Unless `status` is a failure, *result becomes `made`, of rows->shape, in the input's
 * order of dimensions; `made` is released otherwise. Returns the first failure. */
smelt_status routine_rows_close(const struct call *call, struct routine_rows *rows, smelt_status status,
                                smelt_array *made, smelt_array **result);

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
