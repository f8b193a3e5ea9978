/* Arrays as routines read them: on the device, row by row, with the dimensions they work along last. */
#ifndef SMELT_OPS_ROUTINE_INPUT_H
#define SMELT_OPS_ROUTINE_INPUT_H

#include "ops/routine.h"

/* An input as a routine reads it: on the call's device, row-contiguous, of a dtype. A new reference. */
smelt_status routine_input(const struct call *call, smelt_array *array, smelt_dtype dtype,
                           smelt_array **result);

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

#endif
