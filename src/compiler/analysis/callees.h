/* The functions of a module before they are inlined: how large each is with all that it calls. */
#ifndef SMELT_COMPILER_ANALYSIS_CALLEES_H
#define SMELT_COMPILER_ANALYSIS_CALLEES_H

#include "base/arena.h"
#include "compiler/pass.h"

struct callee {
    LLVMValueRef function;
    uint64_t instructions; /* with those of the functions it calls */
    uint64_t copies;       /* of it in the entry, once everything is inlined */
    bool plain;            /* it uses no intrinsics and no threadgroup variables, which only the entry has */
    struct callee *next, *found_before;
};

struct callees {
    struct arena arena;
    struct callee *first, *found; /* by `next`, a function comes before all that it calls */
};

/* The entry's own, and those of all functions that it reaches. arena_free frees them. */
smelt_status callees_find(struct unit *unit, struct callees *callees);

/* NULL: the entry does not reach it. */
struct callee *callees_of(const struct callees *callees, LLVMValueRef function);

/* The function that a call calls directly, if it has a body; NULL otherwise. */
LLVMValueRef callees_called(LLVMValueRef instruction);

/* Smaller functions cost less than their calls. */
#define FEW_INSTRUCTIONS 24

/* It is called, not inlined. */
void callees_keep(struct unit *unit, LLVMValueRef function);

#endif
