/* Cholesky factors of symmetric positive definite matrices, by blocks. */
#ifndef SMELT_KERNELS_CHOLESKY_H
#define SMELT_KERNELS_CHOLESKY_H

#include "kernels/call.h"

/* *l of a's shape (…, n, n): lower triangular with L·Lᵀ = A, 0 above the diagonal. a is float32; its upper
 * triangle is not read. block: columns done at once, 1 to 64 (0: 16); threads: of the threadgroup that works
 * on one matrix (0: 64). A matrix that is not positive definite gives NaN from the failing column on.
 * INVALID_ARGUMENT if the shape, dtype or block does not fit, else as smelt_kernel_run. */
smelt_status shipped_cholesky(smelt_array *a, int block, int threads, smelt_array **l,
                              const smelt_call *call);

/* The same for one n x n matrix in float64, row-major, column by column. */
void smelt_reference_cholesky(const double *a, int64_t n, double *l);

#endif
