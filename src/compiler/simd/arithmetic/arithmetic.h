/* Shared by arithmetic.c, calls.c and division.c. */
#ifndef SMELT_COMPILER_SIMD_ARITHMETIC_H
#define SMELT_COMPILER_SIMD_ARITHMETIC_H

#include "compiler/simd/simd.h"

/* calls.c — calls of functions that depend only on their arguments. */
bool emit_pure_call(struct simd *s, LLVMValueRef call, int chunk);
/* division.c — udiv, sdiv, urem, srem. */
bool emit_division(struct simd *s, LLVMValueRef division, int chunk);

#define LANE_ARGUMENTS 3
/* Writes the scalar code of one lane; *origin is the original instruction. */
typedef LLVMValueRef lane_code(struct simd *s, LLVMValueRef origin, LLVMValueRef *arguments);
/* A loop over the lanes of a chunk that are on (mask NULL: all). The elements of `vectors` and of the result
 * fill whole bytes. Lanes that are off get anything. The builder is left behind the loop. */
LLVMValueRef lanes_each(struct simd *s, LLVMValueRef origin, LLVMValueRef mask, LLVMValueRef const *vectors,
                        int count, LLVMTypeRef result, lane_code *code);

#endif
