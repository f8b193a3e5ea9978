/* Accesses and their tests for all lanes of a gang at once, in quick code (gang_access.c). */
#ifndef SMELT_COMPILER_SIMD_GANG_ACCESS_H
#define SMELT_COMPILER_SIMD_GANG_ACCESS_H

#include "compiler/simd/simd.h"

/* Whether one call may serve all lanes: quick code, all chunks of an instruction before the next one. */
bool gang_access_suits(const struct simd *s);

/* Ends the launch if an active lane's address is not one of the `count` from `start` on; otherwise goes on at
 * `inside`. addresses: vectors of i64, one per chunk. Leaves the builder in a block that has ended. */
void gang_access_test(struct simd *s, LLVMValueRef sites, LLVMValueRef const *addresses, LLVMValueRef start,
                      LLVMValueRef count, LLVMValueRef extent, LLVMBasicBlockRef inside);

/* Whether a call loads or stores elements at arbitrary addresses: the CPU has no instruction for it. */
bool gang_access_is_call(struct simd *s, LLVMTypeRef element);
/* A chunk's values. The first call for a load emits the access of all lanes. */
LLVMValueRef gang_access_load(struct simd *s, LLVMValueRef load, int chunk);
void gang_access_store(struct simd *s, LLVMValueRef store);

#endif
