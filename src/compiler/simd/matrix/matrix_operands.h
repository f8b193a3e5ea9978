/* Operands of products in memory (matrix_operands.c). */
#ifndef SMELT_COMPILER_SIMD_MATRIX_OPERANDS_H
#define SMELT_COMPILER_SIMD_MATRIX_OPERANDS_H

#include "compiler/simd/matrix/matrix_rows.h"

#define ROW_BYTES (MATRIX_SIZE * 4)

struct matrix_rows {
    struct matrix_rows *next;
    LLVMValueRef slot;          /* float [simdgroups][8][8]; or words of bfloats, as densely, in half of it */
    LLVMValueRef first, second; /* of products that are being written: the halves, which are no matrix */
};

/* Where an operand of a product lies. */
struct product_operand {
    const struct matrix *direct; /* in the kernel's memory; or NULL: … */
    const struct matrix_rows *rows;
};

/* Finds the product's right (left) operand. Operands that are not kept at their definition are stored now;
 * `list` has them, whose memory serves others after matrix_give_rows. */
bool matrix_find_operand(struct simd *s, const struct matrix *product, bool right, struct matrix_rows **list,
                         struct product_operand *operand);
/* The left matrix, of which elements of these rows are loaded: what is converted is stored first. */
bool matrix_find_left(struct simd *s, const struct matrix *product, int group, int row, int rows,
                      struct matrix_rows **list, struct product_operand *left);
void matrix_give_rows(struct simd *s, struct matrix_rows *rows);
/* No instruction, but LLVM must assume that the rows have changed. It would otherwise keep what several
 * tiles load in registers that it does not have. */
void matrix_forget_rows(struct simd *s, const struct matrix_rows *rows);

/* A row, and an element, as floats. */
LLVMValueRef matrix_load_row_of(struct simd *s, const struct product_operand *right, int group, int row);
LLVMValueRef matrix_load_element(struct simd *s, const struct product_operand *operand, int group, int row,
                                 int column);
/* A row of bfloats, and two neighbours of it, as integers. */
LLVMValueRef matrix_load_words(struct simd *s, const struct product_operand *operand, int group, int row);
LLVMValueRef matrix_load_pair(struct simd *s, const struct product_operand *operand, int group, int row,
                              int column);
#endif
