/* Products of bfloats, two columns of the left matrix at a time (matrix_pairs.c). */
#ifndef SMELT_COMPILER_SIMD_MATRIX_PAIRS_H
#define SMELT_COMPILER_SIMD_MATRIX_PAIRS_H

#include "compiler/simd/matrix/matrix.h"

/* Sets the product's words if it is computed this way. */
void matrix_find_pairs(struct simd *s, struct matrix *product);

/* Rows k and k + 1 (the second index) of each chain's right matrix, as words: pairs of one column side by
 * side.
 */
LLVMValueRef simd_matrix_pair_rows(struct simd *s, LLVMValueRef const (*rows)[2], int chains);
/* sum + the products of both bfloats of the word with each pair. */
LLVMValueRef simd_matrix_add_pairs(struct simd *s, LLVMValueRef word, LLVMValueRef pairs, LLVMValueRef sum);
#endif
