/* The prelude's functions of float numbers (prelude/smelt_float_basic.h), which passes find by name before
 * they are inlined. */
#ifndef SMELT_COMPILER_FLOAT_FUNCTION_H
#define SMELT_COMPILER_FLOAT_FUNCTION_H

#include <llvm-c/Core.h>
#include <stdbool.h>

/* Whether this is the definition of __smelt_float::NAME(float) or, with two arguments, NAME(float, float). */
bool is_float_function(LLVMValueRef function, const char *name, unsigned arguments);

#endif
