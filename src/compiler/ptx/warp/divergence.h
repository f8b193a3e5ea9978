/* Which values differ between the lanes of a warp, which branches therefore send them different ways, and
 * which blocks only some of them run. */
#ifndef SMELT_COMPILER_PTX_DIVERGENCE_H
#define SMELT_COMPILER_PTX_DIVERGENCE_H

#include "base/arena.h"
#include "compiler/analysis/paths.h"

struct divergence {
    struct unit *unit;
    struct arena arena;
    struct path_graph graph;
    bool lowered;     /* positions are the hardware's registers */
    bool in_group;    /* all threads of a threadgroup are compared, not only the lanes of a warp */
    bool irreducible; /* some loop is entered in several places: nothing else was found */
    struct place_of_block *by_block;
    struct differing *values;
    size_t value_capacity, value_count;
};

/* Requires: nothing. A snapshot of blocks and branches; values that are added later count as equal in all
 * lanes. To be freed, after a failure too. */
smelt_status divergence_find(struct unit *unit, struct divergence *d);
/* The same of a module without smelt's intrinsics. */
smelt_status divergence_find_lowered(struct unit *unit, struct divergence *d);
/* The same of all threads of a threadgroup instead of a warp's lanes. */
smelt_status divergence_find_in_group(struct unit *unit, struct divergence *d);
/* The same of a function whose divergent branches are marked already; values are not looked at. */
smelt_status divergence_find_marked(struct unit *unit, struct divergence *d);
/* Marks divergent branches for it. */
void divergence_mark(const struct divergence *d);
void divergence_mark_branch(struct unit *unit, LLVMValueRef branch);
void divergence_free(struct divergence *d);

/* found.c — for divergence.c: lanes that compute the value may differ in these bits, too; did that change
 * anything? */
bool divergence_add_bits(struct divergence *d, LLVMValueRef value, uint64_t bits);
void divergence_index_blocks(struct divergence *d);

/* found.c — the bits in which lanes that compute the value together may differ. */
uint64_t divergence_bits(const struct divergence *d, LLVMValueRef value);

/* The place of a block, or -1: it is not reachable. */
int divergence_place(const struct divergence *d, LLVMBasicBlockRef block);
/* Do all lanes come here together that have not ended, and are not on a way out of their own? */
bool divergence_reached_by_all(const struct divergence *d, int place);
/* Do all come that have not ended? */
bool divergence_reached_together(const struct divergence *d, int place);
/* `above` dominates `below`, in the same round of the same loops: does every lane that runs it, and does not
 * end, come to `below`? */
bool divergence_reached_from(const struct divergence *d, int above, int below);
/* The nearest dominator of a block in the same round of the same loops; a loop's header counts as standing
 * before the loop. The entry's is itself. */
int divergence_place_above(const struct divergence *d, int place);

/* values.c — a simdgroup operation or a barrier of either kind. */
bool divergence_is_operation(LLVMValueRef instruction);
bool divergence_is_barrier(LLVMValueRef instruction);
bool divergence_has_barrier(LLVMBasicBlockRef block);
/* The block is only the thread's end. */
bool divergence_is_end(LLVMBasicBlockRef block);

/* Whether all 32 lanes of each warp (all threads of the threadgroup) run the block together. */
bool divergence_all_run(const struct divergence *d, LLVMBasicBlockRef block);

/* Every warp has 32 threads. */
bool divergence_whole_warps(const struct code_shape *shape);

/* values.c — for divergence.c: the bits of an instruction's result, from those of its operands. */
uint64_t divergence_in_result(const struct divergence *d, LLVMValueRef instruction, int place);
uint64_t divergence_in_operand(const struct divergence *d, LLVMValueRef operand, int place);

#endif
