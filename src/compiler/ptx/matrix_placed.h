/* Operands of products that are loaded again from where they lie. */
#ifndef SMELT_COMPILER_PTX_MATRIX_PLACED_H
#define SMELT_COMPILER_PTX_MATRIX_PLACED_H

#include "compiler/ptx/matrix_address.h"
#include "compiler/ptx/matrix_tensor.h"

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
    bool loaded;
};

/* matrix_device.c — loads a matrix of device memory behind its own loads: the register. */
LLVMValueRef matrix_load_device(struct matrices *m, const struct placed *placed);

#endif
