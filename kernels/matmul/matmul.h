/* Products of matrices by one of several kernels, which teach how one becomes fast: docs/matmul.md. */
#ifndef SMELT_KERNELS_MATMUL_H
#define SMELT_KERNELS_MATMUL_H

#include "kernels/matmul/forms.h"

/* The largest m, n and k: rounded up to whole tiles, stages and rows, they fit int32. */
#define MATMUL_MOST_SIZE (INT32_MAX - 512)

struct matmul_desc {
    const char *algorithm; /* a name that matmul_name returns */
    /* (M, K), (K, N) and (M, N), dense, of one dtype: float32, float16, bfloat16. `best` on a GPU also takes
     * many products: c has more dimensions before these, and a and b have the same or none. */
    smelt_array *a, *b, *c;
    /* For `best` on a GPU: whether a is (K, M), and whether b is (N, K). */
    bool a_transposed, b_transposed;
    /* For `best` on a GPU. NULL: the sizes choose it. */
    const struct matmul_form *form;
    /* For `best`: the number of multiprocessors of a GPU of compute capability 9.0, where
     * best_warpgroups.metal may run; 0: on other devices, or if it may not run. */
    int64_t multiprocessors;
    const char *device; /* default "cpu"; the arrays are in its memory */
    smelt_stream *stream;
    smelt_run_info *info; /* may be NULL */
};

/* The name of an algorithm, from slow to fast on a GPU; NULL after the last. */
const char *matmul_name(int index);

/* c = a · b. On GPUs tensor_core multiplies float32 as TF32. INVALID_ARGUMENT, without a message, if the name
 * or the form is unknown or shapes or dtypes do not fit; LIMIT, without a message, for a size above
 * MATMUL_MOST_SIZE; else as smelt_function_run. */
smelt_status matmul_run(const struct matmul_desc *desc);

/* The same in float64 on row-major memory. */
void matmul_reference(const double *a, const double *b, int64_t m, int64_t n, int64_t k, double *c);

#endif
