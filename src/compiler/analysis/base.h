/* What addresses are based on: the buffer, the variable or the constant from which they are computed. */
#ifndef SMELT_COMPILER_ANALYSIS_BASE_H
#define SMELT_COMPILER_ANALYSIS_BASE_H

#include "compiler/pass.h"

enum base_kind {
    BASE_UNKNOWN,
    BASE_BUFFER,   /* the buffer with the number `buffer` */
    BASE_CONSTANT, /* memory that nothing writes */
    BASE_PRIVATE,  /* a variable of the thread */
    BASE_VISITED   /* only within base.c: of a phi whose base is being found */
};

struct base {
    enum base_kind kind;
    uint64_t buffer;       /* CPUs: its index. PTX: the offset of its address in the kernel's parameter */
    LLVMValueRef variable; /* BASE_PRIVATE: its alloca */
};

/* Never BASE_VISITED. */
struct base base_of(struct unit *unit, LLVMValueRef address);

/* Whether both are buffers that cannot share memory in launches of the unit's shape. If so, the image records
 * that the code relies on it. */
bool base_are_distinct(struct unit *unit, const struct base *a, const struct base *b);

#endif
