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

/* Loads from device memory that run only if `condition`, an i1, holds; otherwise the value may be anything.
 * There are instructions for aligned loads of numbers, and of vectors that wide_access_exists takes. */
bool wide_load_if_exists(struct unit *unit, LLVMValueRef load);
LLVMValueRef wide_load_if(struct unit *unit, LLVMValueRef load, LLVMValueRef condition);
/* … the same for a call that wide_load built for device memory. */
bool wide_is_load(LLVMValueRef call);
LLVMValueRef wide_load_also_if(struct unit *unit, LLVMValueRef call, LLVMValueRef condition);

#endif
