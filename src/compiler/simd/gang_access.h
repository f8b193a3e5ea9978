/* Accesses and their tests for all lanes of a gang at once, in quick code (gang_access.c). */
#ifndef SMELT_COMPILER_SIMD_GANG_ACCESS_H
#define SMELT_COMPILER_SIMD_GANG_ACCESS_H

#include "compiler/simd/simd.h"

/* Whether code is written that way: all chunks of an instruction before the next instruction. */
bool gang_access_suits(const struct simd *s);

/* Ends the launch if an active lane's address is not one of the `count` from `start` on, else goes on at
 * `inside`. addresses: each chunk's, vectors of i64. Leaves the builder in a block that has ended. */
void gang_access_test(struct simd *s, LLVMValueRef sites, LLVMValueRef const *addresses, LLVMValueRef start,
                      LLVMValueRef count, LLVMValueRef extent, LLVMBasicBlockRef inside);

/* Whether a call accesses elements of any addresses: it is so written, and the CPU has no instruction. */
bool gang_access_is_call(struct simd *s, LLVMTypeRef element);
/* A chunk's values, and the access of all lanes if this is the first chunk for which it is called. */
LLVMValueRef gang_access_load(struct simd *s, LLVMValueRef load, int chunk);
void gang_access_store(struct simd *s, LLVMValueRef store);

#endif
