/* Operands of products as the tensor cores take them. */
#ifndef SMELT_PTX_MATRIX_TENSOR_H
#define SMELT_PTX_MATRIX_TENSOR_H

#include "ptx/matrix.h"

enum kind { KIND_NONE, KIND_HALF, KIND_BFLOAT, KIND_TF32 };

/* An operand as the cores take it: of half and bfloat one register of two numbers, of TF32 two. */
struct fragment {
    struct fragment *next;
    LLVMValueRef first, second; /* the operand's values: even and odd columns */
    enum kind kind;
    bool right;
    LLVMValueRef numbers[2]; /* the same, not TF32: as half, or as the bits of bfloat */
    LLVMBasicBlockRef block; /* where it was made */
    LLVMValueRef registers[2];
};

/* matrix_load.c — those fragments of half and bfloat that lie in threadgroup memory get their registers from
 * there. */
smelt_status load_fragments(struct matrices *m, struct fragment **fragments, int count);

#endif
