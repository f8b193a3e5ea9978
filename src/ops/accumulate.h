/* Shared by reductions and cumulative operations: how elements become accumulators and are combined. */
#ifndef SMELT_OPS_ACCUMULATE_H
#define SMELT_OPS_ACCUMULATE_H

#include "base/text.h"
#include "ops/operation.h"

/* The dtype of a reduction's accumulator, and of its result. Sums and products: int32 of bool, int8, int16,
 * int32; uint32 of uint8, uint16, uint32; float32 of floats of 16 bits, whose results are rounded once. */
void accumulate_dtypes(smelt_operation operation, smelt_dtype dtype, smelt_dtype *sum, smelt_dtype *result);

/* Writes typedefs A (accumulator) and R (result), and functions start(), element(x), combine(a, b),
 * shuffled(a, n). */
void accumulate_write(struct text *text, smelt_operation operation, smelt_dtype sum, smelt_dtype result);

/* In double: the identity, and combining. */
double accumulate_start(smelt_operation operation);
double accumulate_combine(smelt_operation operation, double a, double b);

/* Refuses dtypes that the operation lacks, and (with `count` 0) operations without an identity. */
smelt_status accumulate_check(const struct call *call, int64_t count);

#endif
