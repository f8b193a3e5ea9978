/* The control flow graph of one function: reverse post-order, dominators, natural loops; splitting of edges.
 * A snapshot: compute it again after blocks change. */
#ifndef SMELT_COMPILER_ANALYSIS_FLOW_H
#define SMELT_COMPILER_ANALYSIS_FLOW_H

#include "base/arena.h"
#include "compiler/pass.h"

struct flow_block {
    LLVMBasicBlockRef block;
    int dominator; /* index of the immediate dominator; the entry's is itself */
    int loop;      /* index of the innermost loop, or -1 */
    int predecessor_count;
    int *predecessors;
};

/* A natural loop: the blocks that reach a back edge without leaving by the header. */
struct flow_loop {
    int header; /* block index */
    int parent; /* index of the enclosing loop, or -1 */
    int latch_count;
    int *latches; /* block indexes */
};

/* From a block to its index; -1: it is not reachable. */
struct flow_lookup {
    LLVMBasicBlockRef block;
    int index;
};

struct flow {
    struct flow_block *blocks; /* in reverse post-order: forward edges go from lower to higher index */
    int block_count;
    struct flow_lookup *table; /* all blocks, by address */
    int table_count;
    struct flow_loop *loops; /* outer loops before inner ones */
    int loop_count;
    bool irreducible; /* a backward edge whose target does not dominate its source */
};

/* Unreachable blocks are left out. Everything lives in `arena`. */
smelt_status flow_find(struct unit *unit, LLVMValueRef function, struct arena *arena, struct flow *flow);

/* The same of the entry, and `bytes` zeroed bytes for the work of a pass, in the same arena. NULL: *status.
 */
void *flow_begin(struct unit *unit, struct arena *arena, struct flow *flow, size_t bytes,
                 smelt_status *status);

/* Every loop of the entry gets one header, which all ways into it pass. */
smelt_status flow_make_reducible(struct unit *unit);

/* The loops of the entry; irreducible ones count as one. */
smelt_status flow_count_loops(struct unit *unit, int *loops);

/* The index of a block, or -1. */
int flow_index(const struct flow *flow, LLVMBasicBlockRef block);

bool flow_dominates(const struct flow *flow, int above, int below);

/* Whether `loop` is `outer` or lies in it; -1 is the function. */
bool flow_loop_within(const struct flow *flow, int loop, int outer);
/* Whether a block lies in `loop`; block -1, which is not reachable, lies in none. */
bool flow_block_within(const struct flow *flow, int block, int loop);

/* Backwards: a property of a block also holds for all blocks from which control can reach it. */
void flow_spread(const struct flow *flow, bool *holds);

/* Puts a new block, ending in a branch to the old target, on the edge from `from`'s terminator to its
 * successor number `successor`; phis follow. */
LLVMBasicBlockRef flow_split_edge(struct unit *unit, LLVMBasicBlockRef from, unsigned successor);

/* Cuts a block in two before `instruction`, which must not be a phi: the new block has it and all behind it;
 * the old one ends in a branch there; phis of the successors follow. */
LLVMBasicBlockRef flow_split_block(struct unit *unit, LLVMValueRef instruction);

#endif
