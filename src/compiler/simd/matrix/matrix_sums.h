/* Sums that loops carry, in memory of their own (matrix_sums.c). */
#ifndef SMELT_COMPILER_SIMD_MATRIX_SUMS_H
#define SMELT_COMPILER_SIMD_MATRIX_SUMS_H

#include "compiler/simd/matrix/matrix.h"

struct matrix_sum {
    bool carried;
    LLVMValueRef tile;  /* float [simdgroups][16][4][8]: two left matrices, four right ones */
    int row, column;    /* in it: 0 or 8, 0 to 3 */
    LLVMValueRef *rows; /* addresses, for each simdgroup eight */
};

/* Decides, when all matrices are known. */
void matrix_find_sums(struct simd *s);
/* Where a row of the stage's sum lies. */
LLVMValueRef matrix_sum_address(const struct matrix *stage, int group, int row);
/* Whether rows of the second sum follow those of the first one, so that both are one vector of 512 bits. */
bool matrix_sum_is_neighbour(const struct matrix *a, const struct matrix *b);
/* A row, or those of two neighbours. */
LLVMValueRef matrix_sum_load(struct simd *s, const struct matrix *stage, int group, int row, int matrices);
void matrix_sum_store(struct simd *s, const struct matrix *stage, int group, int row, LLVMValueRef vector);
#endif
