/* Products of a matrix with few rows on GPUs (thin.metal). */
#ifndef SMELT_KERNELS_MATMUL_THIN_H
#define SMELT_KERNELS_MATMUL_THIN_H

#include "kernels/call.h"

/* c[m, n] = Σ a[m, k] b[k, n] for each of `products` matrices. Strides are in elements. The rows of A are
 * contiguous; the columns of B are if b_by_columns is set, otherwise its rows are. */
struct matmul_thin_desc {
    smelt_array *a, *b, *c; /* of one dtype: float32, float16, bfloat16 */
    int64_t m, n, k, products;
    int64_t a_row, b_line, c_row, c_column; /* b_line: from one contiguous column or row of B to the next */
    int64_t a_batch, b_batch, c_batch;      /* from one product's matrix to the next's; 0: it is the same */
    bool b_by_columns;
    const char *device;
    smelt_stream *stream;
    smelt_run_info *info; /* may be NULL */
};

/* Products with so many rows are faster by another way. */
#define THIN_ROWS 32

/* LIMIT, without a message, for sizes of about 2^31 or more; else as smelt_function_run. */
smelt_status matmul_thin_run(const struct matmul_thin_desc *desc);

#endif
