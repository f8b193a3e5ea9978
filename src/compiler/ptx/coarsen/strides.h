/* strides.c — which arguments and loads a second version of code is for. */
#ifndef SMELT_COMPILER_PTX_STRIDES_H
#define SMELT_COMPILER_PTX_STRIDES_H

#include "compiler/ptx/ptx.h"

/* An integer at a constant place in what the launch passed, which the code reads in any case. */
bool ptx_is_argument(struct unit *unit, LLVMValueRef value);
/* The same load again, at the builder's place. */
LLVMValueRef ptx_read_argument(struct unit *unit, LLVMValueRef argument);
/* A load of at most 8 bytes from device memory. */
bool ptx_is_narrow_load(struct unit *unit, LLVMValueRef instruction);
/* Whether the kernel is small enough and its threads meet: other kernels are coarsened. If so, *products: it
 * has products of matrices. */
bool ptx_wants_versions(struct unit *unit, bool *products);

#endif
