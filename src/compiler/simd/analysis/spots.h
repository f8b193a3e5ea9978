/* Addresses as a base and a sum of terms (spots.c). */
#ifndef SMELT_COMPILER_SIMD_SPOTS_H
#define SMELT_COMPILER_SIMD_SPOTS_H

#include "compiler/simd/simd.h"

#define MOST_TERMS 6

/* A summand of an index, times `scale` bytes. */
struct term {
    LLVMValueRef value;
    LLVMOpcode widened; /* how it is extended to 64 bits: LLVMZExt, LLVMSExt, or 0: it has 64 bits */
    int64_t scale;
};

struct spot {
    LLVMValueRef base;
    struct term terms[MOST_TERMS]; /* sorted: equal sums have equal lists */
    int count, indexes;
    int64_t bytes;
};

/* `indexes`: the most variable indexes that are taken apart; steps of the address with more stay in the
 * base. */
struct spot spot_of(struct simd *s, LLVMValueRef address, int indexes);
/* … whether the two differ in `bytes` at most. */
bool spot_is_same(const struct spot *a, const struct spot *b);
/* The constant distance of two addresses of at most one variable index each; false: none was found. */
bool spot_distance(struct simd *s, LLVMValueRef from, LLVMValueRef to, int64_t *bytes);

#endif
