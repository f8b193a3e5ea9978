/* Operands of products as the tensor cores take them. */
#ifndef SMELT_COMPILER_PTX_MATRIX_TENSOR_H
#define SMELT_COMPILER_PTX_MATRIX_TENSOR_H

#include "compiler/ptx/matrix/matrix.h"

/* Of an operand. KIND_FLOAT: floats that TF32 does not hold. */
enum kind { KIND_NONE, KIND_HALF, KIND_BFLOAT, KIND_TF32, KIND_FLOAT };

/* An operand as the cores take it: one register of two numbers for half and bfloat, two registers for TF32. A
 * float is split in two TF32 numbers, of which `low` has the second. */
struct fragment {
    struct fragment *next;
    LLVMValueRef first, second; /* the operand's values: even and odd columns */
    enum kind kind;
    bool right;
    LLVMValueRef numbers[2]; /* the same, not TF32: as half, or as the bits of bfloat */
    LLVMBasicBlockRef block; /* where it was generated */
    LLVMValueRef registers[2], low[2];
};

/* Of a product's operands. */
struct kinds {
    enum kind left, right;
};

/* One instruction, of up to four calls: rows above with even and odd columns, rows below. */
struct tensor_product {
    struct tensor_product *next;
    LLVMBasicBlockRef block;
    struct kinds kinds;
    struct fragment *above, *below, *right; /* below may be NULL: zeros */
    struct product *products[4];            /* during planning; NULL: none */
    LLVMValueRef sums[4], results[4];       /* results NULL: not used */
    struct tensor_product *before;          /* the product that it includes: it has twice the depth */
    bool replaced;                          /* by one of twice the depth */
    bool continued;                         /* `results` are not used: the next one continues the sums */
    LLVMValueRef call;
};

/* matrix_operands.c — the kinds of a product's operands; KIND_NONE: it does not suit tensor cores. */
struct kinds matrix_kinds_of(struct unit *unit, const struct product *p);
/* … the fragment of an operand's values in even and odd columns, found or added without registers; NULL: no
 * memory. It is built once; for operands from another block, at the end of that block, so that loop-invariant
 * operands are not moved in each round. */
struct fragment *matrix_fragment_of(struct matrices *m, LLVMValueRef first, LLVMValueRef second,
                                    enum kind kind, bool right);
/* … generates its registers, once. */
void matrix_make_fragment(struct matrices *m, struct fragment *f);
/* … number `i` of the two in its register, as the bits of a float; built at the builder's place. */
LLVMValueRef matrix_widened(struct unit *unit, const struct fragment *f, unsigned i);

/* matrix_device.c — a matrix that the warp transposes: pairs of a row become pairs of a column. */
LLVMValueRef matrix_transposed(struct matrices *m, LLVMValueRef pair);

/* matrix_load.c — those fragments of half and bfloat that lie in threadgroup memory get a register that
 * stands for what is to be loaded from there. */
smelt_status matrix_place_fragments(struct matrices *m, struct fragment *const *fragments, int count);
/* Loads such fragments, 1, 2 or 4, by one instruction into registers side by side; false: that cannot be. */
bool matrix_load_together(struct matrices *m, struct fragment *const *fragments, int count);
/* Loads those that are left. */
void matrix_load_rest(struct matrices *m);

#endif
