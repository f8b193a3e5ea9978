/* Rows of matrices (matrix_rows.c). */
#ifndef SMELT_COMPILER_SIMD_MATRIX_ROWS_H
#define SMELT_COMPILER_SIMD_MATRIX_ROWS_H

#include "compiler/simd/matrix/matrix.h"

/* A row of a matrix, from its halves. */
LLVMValueRef matrix_row_of(struct simd *s, LLVMValueRef first, LLVMValueRef second, int group, int row);
/* A chunk of a half in lanes' order. */
LLVMValueRef matrix_lanes_of_half(struct simd *s, LLVMValueRef half, int chunk);
/* The operand of s->row_reader, a half, that belongs to its chunk. */
LLVMValueRef matrix_operand_of_reader(struct simd *s, LLVMValueRef operand, int chunk);
LLVMValueRef matrix_address_at(struct simd *s, LLVMValueRef base, int64_t bytes);
#endif
