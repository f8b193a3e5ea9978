/* OpenBLAS, opened at run time where it is installed: neither the build nor the tests need it. */
#ifndef SMELT_BENCH_CPU_OPENBLAS_H
#define SMELT_BENCH_CPU_OPENBLAS_H

#include <stdbool.h>
#include <stdint.h>

/* Opens libopenblas.so.0 and has it use `threads` threads; false if it is not there. */
bool openblas_open(int threads);

/* Changes the number of threads. Only after openblas_open, like all below. */
void openblas_set_threads(int threads);

/* A function of the library, LAPACK's among them; NULL: it lacks it. */
void *openblas_function(const char *name);

/* c = a · b, square of n, row-major float32. */
void openblas_matmul(const float *a, const float *b, float *c, int64_t n);

/* The same of a (m, k), b (k, n) and c (m, n). */
void openblas_product(const float *a, const float *b, float *c, int64_t m, int64_t n, int64_t k);

#endif
