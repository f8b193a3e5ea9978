/* smelt/tensor.h — tensors for kernels: Metal 4's `tensor` arguments, filled and read by the host.
 *
 * The conventions are those of smelt.h. Dimensions are counted from the innermost: a matrix of R rows and C
 * columns is an array of shape (R, C) and a tensor of dimensions {C, R}.
 */
#ifndef SMELT_TENSOR_H
#define SMELT_TENSOR_H

#include "smelt/smelt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Elements ----------------------------------------------------------------------------- */

/* Formats of elements that arrays do not have: number, name, bits. Several lie in a byte, the first in its
 * lowest bits. fp8_e4m3 has no infinity and the largest value 448; fp4_e2m1 has neither infinity nor NaN and
 * the largest value 6; ue8m0 is 2 to the power of the byte minus 127, 255 is NaN. */
#define SMELT_FORMAT_TABLE(X)    \
    X(64, INT4, int4, 4)         \
    X(65, UINT4, uint4, 4)       \
    X(66, INT2, int2, 2)         \
    X(67, UINT2, uint2, 2)       \
    X(68, FP4_E2M1, fp4_e2m1, 4) \
    X(69, FP8_E4M3, fp8_e4m3, 8) \
    X(70, FP8_E5M2, fp8_e5m2, 8) \
    X(71, UE8M0, ue8m0, 8)

typedef enum smelt_format {
#define SMELT_FORMAT_ENUM(number, upper, lower, bits) SMELT_##upper = number,
    SMELT_FORMAT_TABLE(SMELT_FORMAT_ENUM)
#undef SMELT_FORMAT_ENUM
} smelt_format;

/* The type of a tensor's elements is a smelt_dtype or a smelt_format, as an int. */

/* "float32", "fp8_e4m3" …; "none" for other numbers. */
SMELT_API const char *smelt_element_name(int element);

/* Bits per element; 0 for numbers that are not element types. */
SMELT_API int smelt_element_bits(int element);

/* The element type called `name`. INVALID_ARGUMENT lists the valid names. */
SMELT_API smelt_status smelt_element_from_name(const char *name, int *element);

#ifdef __cplusplus
}
#endif
#endif
