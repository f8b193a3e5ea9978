/* Radix sort of long rows on GPUs: kernels/sorting/radix.metal. */
#ifndef SMELT_OPS_SORT_RADIX_H
#define SMELT_OPS_SORT_RADIX_H

#include "ops/routine_input.h"

/* The bits of infinity of a dtype of floats; 0 for integers. */
uint64_t sort_infinity(smelt_dtype dtype);

/* Whether this is faster for the rows than a bitonic network. */
bool sort_by_digits(const struct routine_rows *rows);

/* Sorts rows, of elements of at most 4 bytes, into `out`; or writes where their elements were (SMELT_INT32).
 */
smelt_status sort_radix(const struct call *call, const struct routine_rows *rows, bool indices,
                        smelt_array *out);

#endif
