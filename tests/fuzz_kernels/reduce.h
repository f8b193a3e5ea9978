/* Makes a failing case small: takes away lines, then parts of expressions, as long as it fails in the same
 * manner. */
#ifndef SMELT_FUZZ_REDUCE_H
#define SMELT_FUZZ_REDUCE_H

#include "kernel_case.h"

/* Whether a candidate still fails as the case did. */
typedef bool still_fails(const struct kernel_case *candidate, void *context);

/* Changes `kernel` in place; ends after `seconds` at the latest, plus the current candidate. */
void reduce_case(struct kernel_case *kernel, double seconds, still_fails *fails, void *context);

#endif
