/* Radix sort of long rows by kernels: kernels/sorting/radix.metal. */
#ifndef SMELT_OPS_SORT_RADIX_H
#define SMELT_OPS_SORT_RADIX_H

#include "ops/routine_input.h"

/* The bits of infinity of a dtype of floats; 0 for integers. */
uint64_t sort_infinity(smelt_dtype dtype);

/* Whether sort_radix is expected to be faster for the rows than a bitonic network. */
bool sort_by_digits(const struct routine_rows *rows);

/* Sorts rows of elements of at most 4 bytes into `out`. With `indices`, writes the places of the sorted
 * elements in their rows instead (SMELT_INT32). At least one row; at most 2^30 columns. */
smelt_status sort_radix(const struct call *call, const struct routine_rows *rows, bool indices,
                        smelt_array *out);

#endif
