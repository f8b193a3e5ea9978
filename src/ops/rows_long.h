/* Few long rows: several teams take the chunks of a row, in stages that each read what the one before found.
 */
#ifndef SMELT_OPS_ROWS_LONG_H
#define SMELT_OPS_ROWS_LONG_H

#include "ops/routine_input.h"

/* How rows are cut. Shared with the kernels, as the last of their buffers. */
struct long_size {
    uint32_t columns, chunk, chunks;
    float eps;
};

struct long_rows {
    int64_t rows, simdgroups; /* simdgroups of a team */
    struct long_size size;
};

/* Whether one team per row would leave most of the device idle; if so, fills in `rows`. */
bool rows_long_cut(const struct call *call, int64_t rows, int64_t columns, struct long_rows *cut);

/* An array of `width` numbers for each chunk of each row. */
smelt_status rows_long_parts(const struct call *call, const struct long_rows *cut, smelt_dtype dtype,
                             int width, smelt_array **parts);

/* The threads for all chunks, with the arrays and then the size as buffers. */
smelt_dispatch_desc rows_long_dispatch(const struct long_rows *cut, smelt_array *const *arrays, int count);

/* Runs `entry` of the routine so. */
smelt_status rows_long_run(const struct call *call, const struct long_rows *cut, struct routine routine,
                           const char *entry, smelt_array *const *arrays, int count);

#endif
