/* Paths through guards: branches of which one way skips some blocks, as `if (row < rows && column <
 * columns)`. */
#ifndef SMELT_COMPILER_PTX_GUARDED_H
#define SMELT_COMPILER_PTX_GUARDED_H

#include "compiler/flow.h"

#define GUARDED_MOST 64
#define GUARDED_MOST_BLOCKS 192

struct guarded_size {
    int blocks, joins, conditions;
};

/* The blocks that run one after the other if every condition holds. */
struct guarded {
    const struct flow *flow;
    LLVMBasicBlockRef blocks[GUARDED_MOST_BLOCKS];
    struct {
        LLVMValueRef branch;
        unsigned taken; /* the successor of the branch that goes on */
    } conditions[GUARDED_MOST];
    struct {
        LLVMBasicBlockRef block, from; /* where a guard ends, and the block before it that may be skipped */
    } joins[GUARDED_MOST];
    struct guarded_size size;
};

/* guarded.c — appends the blocks that a guard at the end of `from` may skip. Returns the block that follows
 * them, to which all conditions of the guard lead if they fail; NULL: there is no guard, and nothing is
 * changed. */
LLVMBasicBlockRef guarded_follow(struct guarded *g, LLVMBasicBlockRef from);
bool guarded_add(struct guarded *g, LLVMBasicBlockRef block); /* false: no room */
bool guarded_has(const struct guarded *g, LLVMBasicBlockRef block);
/* The value of a phi of these blocks, or where a guard ends, if all conditions hold; NULL: of another phi. */
LLVMValueRef guarded_value(const struct guarded *g, LLVMValueRef phi);
/* Whether a value divides by a number that may be zero where a guard does not hold. */
bool guarded_divides(LLVMValueRef value);
LLVMValueRef guarded_incoming(LLVMValueRef phi, LLVMBasicBlockRef from);

#endif
