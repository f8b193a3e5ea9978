/* The branches that all threads take alike that reach them in the same iteration of the loops around them: a
 * look at operands, before LLVM's optimiser. */
#ifndef SMELT_COMPILER_ANALYSIS_UNIFORM_H
#define SMELT_COMPILER_ANALYSIS_UNIFORM_H

#include "compiler/analysis/flow.h"

/* May some threads take one way at the terminator, while others take another? */
bool uniform_splits_threads(const struct flow *flow, LLVMValueRef terminator);

/* Whether the intrinsic is the same in all threads of a group, given the same operands. */
bool uniform_is_of_group(enum intrinsic intrinsic);

/* Whether all threads that compute the value in the same iteration get the same one. */
bool uniform_is(const struct flow *flow, LLVMValueRef value);

#endif
