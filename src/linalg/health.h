/* What kernels report about each matrix, and what is done about it. */
#ifndef SMELT_LINALG_HEALTH_H
#define SMELT_LINALG_HEALTH_H

#include "linalg/dense.h"

/* How a function computes. */
struct dense_method {
    /* Computes all matrices on the device, with d->jitter if it is not NULL. Called again with more jitter.
     */
    smelt_status (*compute)(struct dense *d, void *job);
    /* Computes one matrix, of float64 at `a`, into the results of `job`. *failed: an index, with its value.
     */
    smelt_status (*repair)(struct dense *d, void *job, int64_t matrix, double *a, int64_t *failed,
                           double *value);
    /* What fails and what was expected, for messages: "pivot", "a positive number: …". */
    const char *what, *expected;
    int code;          /* of its own failures: dense_code */
    uint32_t triangle; /* what of a is read */
};

/* Runs it, and follows the policy of the call. */
smelt_status dense_run(struct dense *d, const struct dense_method *method, void *job);

/* The failure of matrix `matrix` by a code of dense_code. `where` may be -1. */
smelt_status dense_refuse(const struct dense *d, const struct dense_method *method, int64_t matrix, int code,
                          int64_t index, double value);

#endif
