/* Products that are written together (matrix_products.c). */
#ifndef SMELT_COMPILER_SIMD_MATRIX_PRODUCTS_H
#define SMELT_COMPILER_SIMD_MATRIX_PRODUCTS_H

#include "compiler/simd/matrix/matrix_operands.h"

/* Products that add to the same sums, in order; several such chains share their left matrices. */
#define MOST_CHAINS 4

struct chains {
    struct matrix **products[MOST_CHAINS];
    int length, count;
    int pairs; /* chains 2 i and 2 i + 1, for i below this: their rows lie side by side in one register */
};

/* matrix_tile.c — writes their products. `list`: as for matrix_find_operand. */
void matrix_write_chains(struct simd *s, const struct chains *chains, struct matrix_rows **list);
#endif
