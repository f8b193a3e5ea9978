/* twin.c — a second copy of the entry's code, which runs instead of the first where a test says so. */
#ifndef SMELT_COMPILER_PTX_TWIN_H
#define SMELT_COMPILER_PTX_TWIN_H

#include "base/arena.h"
#include "compiler/ptx/ptx.h"

struct twin_pair {
    LLVMValueRef own, copy;
};

struct twin {
    struct unit *unit;
    struct arena arena;
    LLVMBasicBlockRef *blocks, *copies;
    int block_count;
    struct twin_pair *pairs; /* by hash of `own` */
    size_t capacity;
    LLVMBasicBlockRef choice; /* the entry's new first block, which has its private arrays and no end yet */
};

/* Copies all blocks. Metadata and private arrays are shared. To be freed in any case. */
smelt_status ptx_twin_build(struct unit *unit, struct twin *twin);
/* What an instruction is in the copy; other values are themselves. */
LLVMValueRef ptx_twin_value(const struct twin *twin, LLVMValueRef value);
/* Ends the choice: the copy runs where `condition` holds. */
void ptx_twin_choose(struct twin *twin, LLVMValueRef condition);
void ptx_twin_free(struct twin *twin);

#endif
