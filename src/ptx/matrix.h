/* What the files that make products of simdgroup matrices share.
 *
 * A product, here, is one call of __smelt_simd_matrix_product: a whole left matrix (two values of a lane, its
 * even and its odd column) times the even or the odd columns of a right one, plus sums that lie as the result
 * does. */
#ifndef SMELT_PTX_MATRIX_H
#define SMELT_PTX_MATRIX_H

#include "ptx/matrix_layout.h"
#include "ptx/ptx.h"

struct product {
    LLVMValueRef call, even, odd, right, sum;
};

/* Products of one block that do not need each other, in their order; all are made at one place, the
 * builder's, where all operands are there. */
#define GROUP_MOST 512
struct product_group {
    struct unit *unit;
    struct product products[GROUP_MOST];
    int count;
    bool whole; /* all 32 lanes come here together */
};

#endif
