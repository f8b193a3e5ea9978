/* Threadgroup barriers divide the work of a group into phases: a thread's work before it waits at a barrier,
 * or ends, is done before any thread continues from there. Queries of the passes about a function's control
 * flow. */
#ifndef SMELT_COMPILER_ANALYSIS_PHASES_H
#define SMELT_COMPILER_ANALYSIS_PHASES_H

#include "compiler/analysis/flow.h"

struct phases {
    bool *stands; /* by block: contains a barrier, */
    bool *waits;  /* or may come later, too */
    bool *holds;  /* by loop: contains a barrier */
    int *level;   /* by block: the most barriers before its end on the paths there, without iterations */
};

/* False: no memory. The arrays live in `arena`. */
bool phases_find(const struct flow *flow, struct arena *arena, struct phases *phases);

/* Who goes from one block to another, where no barrier comes any more, while others may go on to one, does
 * what follows together with those that leave in the same phase: of the same loop with barriers (the
 * innermost, -1: none), in the same round, after as many barriers. */
struct phase {
    int loop, level;
};
struct phase phase_left(const struct flow *flow, const struct phases *phases, int from);

/* ---- Edges that nobody takes. A way out of a loop that belongs to its rounds ends in one, back to the
 * loop's header: so LLVM and the engines see a part of the loop. */
bool phases_is_never(LLVMValueRef terminator, unsigned successor);
/* The condition of such an edge, at the builder's place. */
LLVMValueRef phases_build_never(struct unit *unit);

/* `copy`, which is empty, becomes a copy of the block, with the same successors. Requires: no value but of
 * the function's first block is used outside of its own (reg2mem). */
void phases_copy_block(struct unit *unit, LLVMBasicBlockRef block, LLVMBasicBlockRef copy);

#endif
