/* A loop's counters, and the tests in its preheader. */
#ifndef SMELT_COMPILER_BOUNDS_COUNTERS_H
#define SMELT_COMPILER_BOUNDS_COUNTERS_H

#include "compiler/bounds/linear.h"

/* A counter of a loop, described by values of its preheader. */
struct counter {
    LLVMValueRef phi, first, last;
    LLVMValueRef bad; /* i1: it does not run from first to last without a detour */
    int64_t step;
    bool down;
    int exit;           /* the block whose comparison ends the loop */
    bool sees_next;     /* … of the next round's value */
    LLVMValueRef after; /* a block that this one does not lie above sees this last value, and … */
    LLVMValueRef bad_after;
    struct counter *next;
};

/* Objects are intervals: between two addresses that are inside, all are. Bytes from base + low to base +
 * high, in each round. */
struct hull {
    LLVMValueRef base;
    struct linear linear; /* the ranges of the bounded values that the base is computed from */
    bool after;           /* also for the counter's value at which the loop ends */
    int64_t low, high;
    struct hull *next;
};

struct loop_test {
    LLVMBasicBlockRef preheader;
    struct counter *counters;
    LLVMValueRef answer; /* i1; NULL: nothing was asked */
    struct hull *hulls;  /* what was asked of accesses that each round makes */
    bool unsure;         /* … and of others, whose answers may be no without harm */
    struct waiting {
        LLVMValueRef test;
        struct waiting *next;
    } *waiting;
};

static inline LLVMTypeRef bounds_i1(struct bounds *b) {
    return LLVMInt1TypeInContext(b->unit->context);
}

static inline LLVMValueRef bounds_number(LLVMTypeRef type, int64_t value) {
    return LLVMConstInt(type, (unsigned long long)value, true);
}

/* counters.c — describes a phi of the loop's header; `last` is NULL if it is not a counter. The loop has a
 * preheader. NULL: no memory. */
struct counter *bounds_counter(struct bounds *b, int loop, LLVMValueRef phi);
/* Whether the block may see the value with which the loop ends. */
bool bounds_sees_after(struct bounds *b, const struct counter *c, int block);

#endif
