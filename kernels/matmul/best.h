/* `best` on GPUs: floats by best_tiles.metal, 16 bits by best.metal. */
#ifndef SMELT_KERNELS_MATMUL_BEST_H
#define SMELT_KERNELS_MATMUL_BEST_H

#include "kernels/matmul/matmul.h"

/* So that sizes rounded up to whole tiles, stages and rows are int32. */
#define MATMUL_MOST_SIZE (INT32_MAX - 256)

/* What matmul_run has found of a product. */
struct matmul_job {
    struct matmul_sizes sizes;
    int64_t a_line, b_line;   /* elements from a stored row of a, and of b, to the next */
    int64_t a_batch, b_batch; /* elements from one product's operand to the next's; 0: it is the same */
};

/* The product; the job's sizes are at least 1, but for k. Its errors are matmul_run's. */
smelt_status matmul_best_run(const struct matmul_desc *desc, struct matmul_job *job);

#endif
