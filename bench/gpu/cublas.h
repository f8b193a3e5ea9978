/* cuBLAS, opened at run time where it is installed: neither the build nor the tests need it. */
#ifndef SMELT_BENCH_GPU_CUBLAS_H
#define SMELT_BENCH_GPU_CUBLAS_H

#include <stdint.h>

/* NULL if it can be opened; else a sentence why not. Needs the GPU's context to be the thread's. */
const char *cublas_open(void);

enum cublas_type { CUBLAS_FLOAT32, CUBLAS_FLOAT16, CUBLAS_BFLOAT16 };

/* `products` products of (m, k) and (k, n), one after the other in memory. */
struct cublas_sizes {
    int64_t products, m, n, k;
};

/* Enqueues c = a · b on the stream, row-major, addresses on the GPU; float32 without TF32, the others with
 * sums in float32. NULL, or a sentence. */
const char *cublas_matmul(void *stream, enum cublas_type type, uint64_t a, uint64_t b, uint64_t c,
                          const struct cublas_sizes *sizes);

#endif
