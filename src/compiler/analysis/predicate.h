/* Predicates of integer comparisons. */
#ifndef SMELT_COMPILER_ANALYSIS_PREDICATE_H
#define SMELT_COMPILER_ANALYSIS_PREDICATE_H

#include <llvm-c/Core.h>

/* The one that holds for (y, x) where this one holds for (x, y). */
LLVMIntPredicate predicate_turned(LLVMIntPredicate p);
/* The one that holds where this one does not. */
LLVMIntPredicate predicate_negated(LLVMIntPredicate p);

#endif
