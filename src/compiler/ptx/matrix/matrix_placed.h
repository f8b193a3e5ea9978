/* Operands of products that are loaded again from where they lie. */
#ifndef SMELT_COMPILER_PTX_MATRIX_PLACED_H
#define SMELT_COMPILER_PTX_MATRIX_PLACED_H

#include "compiler/ptx/matrix/matrix_address.h"
#include "compiler/ptx/matrix/matrix_tensor.h"

/* A barrier's operand has this bit if it is of mem_none (prelude/metal_compute). */
#define BARRIER_ORDERS_NOTHING (UINT64_C(1) << 31)

/* One matrix in memory: its rows (columns, if it is transposed) begin `pitch` apart. */
struct placed {
    struct placed *next;
    struct fragment *fragment; /* its register is a mark until the loads are grouped */
    LLVMValueRef behind;       /* the later of its two loads */
    bool device;               /* in device memory; otherwise the threadgroup's */
    bool across;               /* a fragment's pairs are across the rows in memory */
    struct address first;      /* of lane 0: that of the first row; other lanes do not count */
    int64_t pitch, pitch_times[ADDRESS_TERMS]; /* from row to row */
    uint64_t alignment;                        /* of every row */
    bool loaded;
};

/* matrix_device.c — loads a matrix of device memory behind its own loads: the register. */
LLVMValueRef matrix_load_device(struct matrices *m, const struct placed *placed);
/* … the distance (i64, bytes) from the first row to the lane's row: `lane >> 2`, or, if `of_pair` is not
 * negative, `(lane >> 2 & 1) + 2 * of_pair`. Its code is in the block of the last value that it needs,
 * outside of loops that do not change it. Moves the builder before `place`. */
LLVMValueRef matrix_row_offset(struct matrices *m, const struct placed *placed, LLVMValueRef place,
                               int of_pair);
/* … the address of the first row, at the builder's place. */
LLVMValueRef matrix_first_row(struct unit *unit, const struct placed *placed);

/* matrix_load.c — the matrix in memory that a fragment is loaded from, or NULL. */
struct placed *matrix_placed_of(struct matrices *m, const struct fragment *fragment);
/* … the later of two instructions; NULL: they are in different blocks, or something is written, or lanes wait
 * for each other, in between. */
LLVMValueRef matrix_later_unwritten(LLVMValueRef a, LLVMValueRef b, unsigned space);
/* … whether all users of a value in the block of `place` come after it. */
bool matrix_is_used_behind(LLVMValueRef value, LLVMValueRef place);

#endif
