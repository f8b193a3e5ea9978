/* The gated delta rule's forward kernel, for src/autodiff/delta.c. */
#ifndef SMELT_OPS_DELTA_H
#define SMELT_OPS_DELTA_H

#include "ops/operation.h"

enum delta_array { DELTA_Q, DELTA_K, DELTA_V, DELTA_G, DELTA_BETA, DELTA_INITIAL, DELTA_ARRAYS };

struct delta {
    struct call call;
    smelt_apply_desc apply;
    smelt_array *arrays[DELTA_ARRAYS]; /* of the call; initial may be NULL */
    int64_t batches, length, heads, depth, values, chunk, chunks;
    double scale;
    smelt_dtype dtype;
};

/* By the kernel: new arrays. dtype is float32, float16 or bfloat16. */
smelt_status delta_run(const struct delta *d, smelt_array **out, smelt_array **states);

#endif
