/* The range that a float lies in unless it is NaN. */
#ifndef SMELT_COMPILER_PTX_RANGES_H
#define SMELT_COMPILER_PTX_RANGES_H

#include "compiler/ptx/ptx.h"

/* Both ends are floats; -INFINITY and INFINITY where nothing is known. The number may also be NaN. */
struct range {
    double low, high;
};

/* The range of `value` by the operations that compute it, up to `depth` of them back. */
struct range ptx_range_of(LLVMValueRef value, int depth);

#endif
