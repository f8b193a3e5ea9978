/* Elementwise exponential. */
#ifndef SMELT_KERNELS_EXP_H
#define SMELT_KERNELS_EXP_H

#include "kernels/call.h"

/* *y = exp(x), row-contiguous, of x's shape and dtype (float16, bfloat16, float32). x of any strides: it is
 * read in place, never copied. INVALID_ARGUMENT for another dtype, else as smelt_kernel_run. */
smelt_status smelt_exp(smelt_array *x, smelt_array **y, const smelt_call *call);

/* y[i] = exp(x[i]), i in [0, count). */
void smelt_reference_exp(const double *x, int64_t count, double *y);

#endif
