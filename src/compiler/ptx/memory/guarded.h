/* Paths through guards: branches that skip some blocks, such as `if (row < rows && column < columns)`. */
#ifndef SMELT_COMPILER_PTX_GUARDED_H
#define SMELT_COMPILER_PTX_GUARDED_H

#include "compiler/analysis/flow.h"

#define GUARDED_MOST 64
#define GUARDED_MOST_BLOCKS 192

struct guarded_size {
    int blocks, joins, conditions; /* how many of each the path has */
};

/* The blocks that run one after the other if every condition holds. The caller sets `flow`, clears `size`. */
struct guarded {
    const struct flow *flow;
    LLVMBasicBlockRef blocks[GUARDED_MOST_BLOCKS];
    struct {
        LLVMValueRef branch;
        unsigned taken; /* which of the branch's successors is on the path */
    } conditions[GUARDED_MOST];
    struct {
        LLVMBasicBlockRef block, from; /* where a guard ends, and the block before it that may be skipped */
    } joins[GUARDED_MOST];
    struct guarded_size size;
};

/* guarded.c — appends the blocks that a guard at the end of `from` may skip. Returns the block after them,
 * to which each condition of the guard leads if it fails. NULL: no guard, or no room; `g` is as before. */
LLVMBasicBlockRef guarded_follow(struct guarded *g, LLVMBasicBlockRef from);
bool guarded_add(struct guarded *g, LLVMBasicBlockRef block); /* false: no room */
bool guarded_has(const struct guarded *g, LLVMBasicBlockRef block);
/* The value of a phi where a guard ends, if all conditions hold. NULL: no guard of the path ends there. */
LLVMValueRef guarded_value(const struct guarded *g, LLVMValueRef phi);
/* Whether a value is a division by a number that may be zero where a guard fails. */
bool guarded_divides(LLVMValueRef value);

#endif
