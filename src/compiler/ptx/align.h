/* Accesses of several elements that are one instruction where the address lets it. */
#ifndef SMELT_COMPILER_PTX_ALIGN_H
#define SMELT_COMPILER_PTX_ALIGN_H

#include "compiler/ptx/ptx.h"

/* wide.c — built at the builder's place. `aligned`, i1: the address is a multiple of the vector's bytes; it
 * is one of its elements' in any case. */
LLVMValueRef wide_load(struct unit *unit, LLVMTypeRef type, LLVMValueRef address, LLVMValueRef aligned);
void wide_store(struct unit *unit, LLVMValueRef vector, LLVMValueRef address, LLVMValueRef aligned);
/* Whether there is an instruction for vectors of this type. */
bool wide_access_exists(struct unit *unit, LLVMTypeRef type);

/* … a load from device memory that runs only if `condition`, an i1, holds; any value is returned otherwise.
 * Such an instruction exists for aligned loads of numbers and of vectors. */
bool wide_load_if_exists(struct unit *unit, LLVMValueRef load);
LLVMValueRef wide_load_if(struct unit *unit, LLVMValueRef load, LLVMValueRef condition);
/* … the same for a call that wide_load has built. */
bool wide_is_load(LLVMValueRef call);
LLVMValueRef wide_load_also_if(struct unit *unit, LLVMValueRef call, LLVMValueRef condition);

#endif
