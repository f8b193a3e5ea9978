/* grid_sample: bilinear samples of images at points, and its vector-Jacobian product.
 *
 * x (B, H, W, C) images, grid (B, N, M, 2) points as (x, y) with -1 and 1 the outer edges of the image, out
 * (B, N, M, C). out is the mean of the four pixels around a point weighted by nearness; pixels outside the
 * image count as 0. With PyTorch's words: mode bilinear, padding_mode zeros, align_corners false, channels
 * last. */
#ifndef SMELT_KERNELS_GRID_SAMPLE_H
#define SMELT_KERNELS_GRID_SAMPLE_H

#include "kernels/call.h"

/* *out has x's dtype (float16, bfloat16 or float32; grid may have another of these). Computed in float32.
 * INVALID_ARGUMENT if shapes or dtypes do not fit, else as smelt_kernel_run. */
smelt_status smelt_grid_sample(smelt_array *x, smelt_array *grid, smelt_array **out, const smelt_call *call);

/* The derivatives of sum(cotangent * out): *x_grad of x's shape, *grid_grad of grid's, both float32 whatever
 * the inputs are: sums of many small parts. Atomic additions: the last bits may differ from run to run. */
smelt_status smelt_grid_sample_vjp(smelt_array *x, smelt_array *grid, smelt_array *cotangent,
                                   smelt_array **x_grad, smelt_array **grid_grad, const smelt_call *call);

/* B, H, W, C, N, M as above. */
struct grid_sample_size {
    int64_t batch, height, width, channels, rows, columns;
};

/* The same in float64 on row-major memory. */
void smelt_reference_grid_sample(const struct grid_sample_size *size, const double *x, const double *grid,
                                 double *out);
void smelt_reference_grid_sample_vjp(const struct grid_sample_size *size, const double *x, const double *grid,
                                     const double *cotangent, double *x_grad, double *grid_grad);

#endif
