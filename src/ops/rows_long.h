/* Few long rows: each row is cut into chunks, one per team of threads. A stage reads what the stage before it
 * found in all chunks. */
#ifndef SMELT_OPS_ROWS_LONG_H
#define SMELT_OPS_ROWS_LONG_H

#include "ops/routine_input.h"

/* How rows are cut. Shared with the kernels, as the last of their buffers. */
struct long_size {
    uint32_t columns, chunk, chunks;
    float eps;
};

struct long_rows {
    int64_t rows;
    int32_t simdgroups; /* of a team: the kernels' constant SIMDGROUPS */
    struct long_size size;
};

/* Whether one team per row would leave most of the device idle; if so, fills in `cut`. */
bool rows_long_cut(const struct call *call, int64_t rows, int64_t columns, struct long_rows *cut);

/* A new array of `width` numbers for each chunk of each row. */
smelt_status rows_long_parts(const struct call *call, const struct long_rows *cut, smelt_dtype dtype,
                             int width, smelt_array **parts);

/* One team per chunk of each row, with the arrays and then `cut->size` as buffers. */
smelt_dispatch_desc rows_long_dispatch(const struct long_rows *cut, smelt_array *const *arrays, int count);

/* Runs the function `entry` of the routine's texts in this way. */
smelt_status rows_long_run(const struct call *call, const struct long_rows *cut, struct routine routine,
                           const char *entry, smelt_array *const *arrays, int count);

#endif
