/* `best` on GPUs: best_tiles.metal multiplies floats, best.metal 16-bit numbers. */
#ifndef SMELT_KERNELS_MATMUL_BEST_H
#define SMELT_KERNELS_MATMUL_BEST_H

#include "kernels/matmul/matmul.h"

/* A product whose arrays matmul_run has checked. */
struct matmul_job {
    struct matmul_sizes sizes;
    int64_t a_line, b_line;   /* elements from one stored row of a, and of b, to the next */
    int64_t a_batch, b_batch; /* elements from one product's operand to the next's; 0: all share it */
};

/* Computes the product. The job's sizes are at least 1, except k, which may be 0. Errors as matmul_run. */
smelt_status matmul_best_run(const struct matmul_desc *desc, struct matmul_job *job);

#endif
