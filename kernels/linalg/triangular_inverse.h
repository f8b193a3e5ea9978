/* Inverses of unit lower triangular squares, chunk by chunk along a sequence (as linear attention needs
 * them). */
#ifndef SMELT_KERNELS_TRIANGULAR_INVERSE_H
#define SMELT_KERNELS_TRIANGULAR_INVERSE_H

#include "kernels/call.h"

/* a (batch, length, heads, width), float32: `width` consecutive rows of a head are one chunk, a width x width
 * square of which only the part S below the diagonal is used. *inverse has a's shape and holds (I + S)⁻¹ for
 * each chunk. A last chunk of fewer rows is inverted as the smaller square it is, 0 in the columns past it.
 * threads: of the threadgroup that works on one chunk (0: width, at most 1024); the result does not depend on
 * it. Needs 8 · width² bytes of threadgroup memory. INVALID_ARGUMENT if shape or dtype does not fit, else as
 * smelt_function_run. */
smelt_status smelt_triangular_inverse(smelt_array *a, int threads, smelt_array **inverse,
                                      const smelt_call *call);

/* The same in float64 on row-major memory. */
void smelt_reference_triangular_inverse(const double *a, int64_t batch, int64_t length, int64_t heads,
                                        int64_t width, double *inverse);

#endif
