/* The prelude's functions of float numbers (prelude/smelt_float_basic.h), which passes find by name before
 * they are inlined. */
#ifndef SMELT_COMPILER_FLOAT_FUNCTION_H
#define SMELT_COMPILER_FLOAT_FUNCTION_H

#include <llvm-c/Core.h>
#include <stdbool.h>

/* In front of the names of functions in that calling convention, in mangled symbols. */
#define REGCALL_MARK "__regcall3__"

/* Whether this is the definition of __smelt_float::NAME(float) or, with two arguments, NAME(float, float). */
bool is_float_function(LLVMValueRef function, const char *name, unsigned arguments);

#endif
