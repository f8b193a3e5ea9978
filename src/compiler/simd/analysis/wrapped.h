/* Indexes that a gang's code takes as signed, in tests of accesses (wrapped.c). */
#ifndef SMELT_COMPILER_SIMD_WRAPPED_H
#define SMELT_COMPILER_SIMD_WRAPPED_H

#include "abi/lane_access.h"
#include "compiler/simd/simd.h"

/* Of an address: those that may be negative in an active lane. */
struct wrapped_indexes {
    int count;
    LLVMValueRef index[MOST_WRAPPED]; /* i64, affine or a piece */
    uint64_t missing[MOST_WRAPPED];   /* the bytes that the address then lacks */
};
struct wrapped_indexes wrapped_find(struct simd *s, LLVMValueRef address);
/* Whether the address has an unsigned index of fewer than 64 bits: below that of a row's first lane (rows.c),
 * one may have wrapped around. */
bool wrapped_is_unsigned(LLVMValueRef address);
/* i1: whether one is negative in any lane of the gang or chunk, active or not; NULL: there are none. */
LLVMValueRef wrapped_in_gang(struct simd *s, const struct wrapped_indexes *all);
LLVMValueRef wrapped_in_chunk(struct simd *s, const struct wrapped_indexes *all, int chunk);
/* A chunk's addresses, i64, with what they lack. */
LLVMValueRef wrapped_corrected(struct simd *s, const struct wrapped_indexes *all, int chunk,
                               LLVMValueRef numbers);

#endif
