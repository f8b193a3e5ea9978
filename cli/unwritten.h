/* What a kernel left unwritten of its outputs. An output starts as a pattern; where an element still holds
 * it, bit for bit, a second run on another pattern tells whether the kernel wrote that very value. */
#ifndef SMELT_CLI_UNWRITTEN_H
#define SMELT_CLI_UNWRITTEN_H

#include "smelt/smelt.h"

/* A new array on the host in which every element is the dtype's pattern `which`, 0 or 1: NaN for floats. */
smelt_status unwritten_fill(smelt_dtype dtype, smelt_shape shape, int which, smelt_array **array);

/* Whether any element of an output that started as pattern 0 holds it. The array is on the host and dense. */
bool unwritten_suspected(const smelt_array *first);

/* The elements that hold pattern 0 in `first` and pattern 1 in `second`: how many, and the index of the one
 * that comes first. In `first` those of integers and bool become 0; floats stay NaN. */
int64_t unwritten_settle(smelt_array *first, const smelt_array *second, int64_t *index);

/* The warning about `count` elements of output `name`, the first at `index`, to standard error. */
void unwritten_warn(const char *name, const smelt_array *array, int64_t count, int64_t index);

#endif
