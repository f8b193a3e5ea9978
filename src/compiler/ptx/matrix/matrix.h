/* Shared by the files that generate products of simdgroup matrices.
 *
 * A product, here, is one call of __smelt_simd_matrix_product: a whole left matrix (two values of a lane, its
 * even and its odd column) times the even or the odd columns of a right one, plus sums that lie as the result
 * does. */
#ifndef SMELT_COMPILER_PTX_MATRIX_H
#define SMELT_COMPILER_PTX_MATRIX_H

#include "compiler/ptx/matrix/matrix_layout.h"
#include "compiler/ptx/ptx.h"
#include "compiler/ptx/warp/divergence.h"

struct product {
    LLVMValueRef call, even, odd, right, sum;
    LLVMValueRef result; /* once it is generated */
};

static inline struct product matrix_product_of(LLVMValueRef call) {
    return (struct product){.call = call,
                            .even = LLVMGetOperand(call, 0),
                            .odd = LLVMGetOperand(call, 1),
                            .right = LLVMGetOperand(call, 2),
                            .sum = LLVMGetOperand(call, 3)};
}

/* Products of one block that do not need each other, in their order; all are made at one place, the
 * builder's, where all operands are there. */
#define GROUP_MOST 512
struct product_group {
    struct product products[GROUP_MOST];
    int count;
};

struct fragment;
struct placed;
struct tensor_product;
struct diagonal;

/* State of the pass. */
struct matrices {
    struct unit *unit;
    struct divergence divergence;
    struct flow flow;
    struct arena arena;
    struct fragment *fragments;      /* operands in the tensor cores' layout */
    struct placed *placed;           /* those of them that are to be loaded, the newest first */
    struct tensor_product *products; /* the newest first */
    struct diagonal *diagonals;      /* the newest first */
    bool on_cores; /* products may be the tensor cores'; not beside fragments of the prelude (fragments.c) */
    bool ordered;  /* lanes are in the fragments' order, for the products' sake */
    LLVMValueRef sources[SOURCE_COUNT], lane; /* created in the entry block when first needed */
    LLVMBasicBlockRef block;                  /* the one at work: all lanes run it together */
    /* By block of the flow: threadgroup memory, or device memory, may have changed since the last barrier
     * before. */
    bool *written[2];
    LLVMBasicBlockRef reader; /* of the address that is being looked at */
    LLVMValueRef place;       /* in it, the place of products: before this instruction */
    LLVMValueRef outlined;    /* of quick code, the function that multiplies; or NULL */
};

/* An intrinsic of ours: those of the prelude, which the passes behind lower, and marks. */
LLVMValueRef matrix_call(struct unit *unit, const char *name, LLVMTypeRef result, LLVMValueRef *arguments,
                         unsigned count, bool together);

/* All 32 lanes run the block together. */
bool matrix_is_together(const struct matrices *m, LLVMBasicBlockRef block);
/* Whether the value is the same in all lanes at a block. Not for values that the pass added. */
bool matrix_is_same(const struct matrices *m, LLVMValueRef value, LLVMBasicBlockRef block);
/* Assembly that makes a lane's value of the lane's own, and does no more. */
bool matrix_is_assembly(LLVMValueRef instruction);

/* matrix_tensor.c — makes those products of a group that tensor cores do, where all lanes come together. */
smelt_status matrix_tensor_products(struct matrices *m, struct product_group *group);

/* … and, once all are generated, loads the operands. */
void matrix_load_operands(struct matrices *m);
/* matrix_operands.c — whether tensor cores do the product where all lanes come together. */
bool matrix_suits_tensor_cores(struct unit *unit, const struct product *p);

/* matrix_load.c — whether an instruction is a barrier that orders memory; whether it may write to the address
 * space, or to one that may be it. */
bool matrix_is_barrier(LLVMValueRef instruction);
bool matrix_may_write(LLVMValueRef instruction, unsigned space);
/* matrix_barriers.c — removes simdgroup barriers that have nothing to order. After the survey. */
smelt_status matrix_drop_barriers(struct matrices *m);

/* matrix_order.c — puts lanes in the fragments' order if that saves moves of elements in loops. After the
 * survey. */
void matrix_order_lanes(struct matrices *m);

/* matrix_lanes.c — values of other lanes, where all lanes come together; i32. Lanes are the hardware's. */
LLVMValueRef matrix_lane(struct matrices *m);
LLVMValueRef matrix_take_lanes(struct matrices *m, enum lane_source source, LLVMValueRef value);
/* A call of assembly without effects that all lanes run together. `memory`: LLVM's attribute. */
#define MEMORY_NONE 0x00
#define MEMORY_READ 0x15
void matrix_set_together(struct unit *unit, LLVMValueRef call, uint64_t memory);

/* matrix_sums.c — sums lie in the tensor cores' layout from product to product, through phis too; they are
 * brought to Metal's, or from it, where that cannot be. While products are made, marks stand for these
 * moves. */
LLVMValueRef matrix_mark_to_tensor(struct matrices *m, LLVMValueRef value);
LLVMValueRef matrix_mark_from_tensor(struct matrices *m, LLVMValueRef value);
smelt_status matrix_resolve_sums(struct matrices *m);

/* matrix_lanes.c — finds the blocks and what differs by lane. Runs first, and again when blocks have
 * changed. */
smelt_status matrix_survey(struct matrices *m);

/* matrix_rounds.c — loops whose products' operands lie in device memory run four rounds at once. `changed`:
 * whether blocks have changed. */
smelt_status matrix_join_rounds(struct matrices *m, bool *changed);
/* matrix_wide.c — once sums are resolved: loads the operands of four rounds, or of four steps that the kernel
 * unrolls, 16 bytes per lane. */
smelt_status matrix_load_wide(struct matrices *m);

/* matrix_diagonal.c — products of one left matrix, which may turn out to be diagonal: they get marks as
 * results, where all lanes come together. */
smelt_status matrix_mark_diagonals(struct matrices *m, struct product_group *group);
/* … and, once all products are made, code for either case. Blocks are split. */
smelt_status matrix_part_diagonals(struct matrices *m);
/* matrix_outlined.c — before products are generated: sets `outlined` if the code is to be quick code. */
smelt_status matrix_choose_outlined(struct matrices *m);
/* … at the builder's place, generates the products without a result: calls of `outlined`, or the plain form.
 * `whole`: all lanes come together. */
smelt_status matrix_make_rest(struct matrices *m, struct product_group *group, bool whole);
/* matrix_plain.c — … the plain form only: shuffles. */
smelt_status matrix_make_plain(struct matrices *m, struct product_group *group, bool whole);

#endif
