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

#endif
