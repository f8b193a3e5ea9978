/* Between which numbers a float lies that is not NaN. */
#ifndef SMELT_COMPILER_PTX_RANGES_H
#define SMELT_COMPILER_PTX_RANGES_H

#include "compiler/ptx/ptx.h"

/* Both ends are floats; -INFINITY and INFINITY where nothing is known. The number may also be NaN. */
struct range {
    double low, high;
};

/* What the operations before `value` say of it, as far as `depth` of them back. */
struct range ptx_range_of(LLVMValueRef value, int depth);

#endif
