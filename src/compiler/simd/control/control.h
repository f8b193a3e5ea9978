/* control.c writes loops and the whole function, blocks.c their blocks, branches.c the ends of blocks. */
#ifndef SMELT_COMPILER_SIMD_CONTROL_H
#define SMELT_COMPILER_SIMD_CONTROL_H

#include "compiler/simd/simd.h"

/* As mask_of: all lanes are on, whatever the mask of the function's first block. */
#define ALL_ON (-1)

/* ---- branches.c */

/* Whether the block has a mask of its own, which lanes arrive in. */
bool control_owns_mask(const struct simd *s, int place);
bool control_is_header(const struct simd *s, int place);
/* The loop in one round of which edges lead to the block, from outside for a header; -1: the function. */
int control_level(const struct simd *s, int place);
/* From inside `loop` (and the loops around it) to a block: divergent loops are left, and repeated, only at
 * their end. */
int control_target_item(const struct simd *s, int loop, int target);
/* The next item after `from` if these targets must still be visited: the first of them and of those pending.
 * It takes over the others. -1: none is left. */
int control_next_item(struct simd *s, int from, const int *targets, int count);
LLVMBasicBlockRef control_start_of_item(struct simd *s, int item);
/* Branches to the next item, or returns. */
void control_go_on(struct simd *s, int from, const int *targets, int count);
void control_make_phi_slots(struct simd *s, LLVMValueRef phi);
/* Lanes `masks` of block `from` (NULL entries: all) go on to block `to`. All values are read before any is
 * written, since phis may exchange values. */
void control_take_edge(struct simd *s, int from, int to, LLVMValueRef const *masks, bool divergent);
/* Before another round: ends the gang if the launch has been stopped. */
void control_poll(struct simd *s);
/* A uniform branch to one successor. */
void control_leave_uniformly(struct simd *s, int place, LLVMBasicBlockRef successor);
void control_end_uniformly(struct simd *s, int place, LLVMValueRef terminator);
/* All paths are taken, one after another. */
void control_end_divergently(struct simd *s, int place, LLVMValueRef terminator);
/* The latch of a full round: another full one, or the masked ones. */
void control_end_full_round(struct simd *s, int loop);

/* ---- blocks.c */

/* The block's own mask is empty when a round starts. */
void control_make_mask(struct simd *s, int place);
/* A new block at the end of the gang's function. */
LLVMBasicBlockRef control_append_block(struct simd *s, const char *name);
/* For another copy of the block's code. */
void control_make_new_blocks(struct simd *s, struct block *block);
/* For all code: blocks, masks, and slots of phis. */
void control_make_blocks(struct simd *s);
/* Before a loop that is written twice: branches to the code with tests if an access may miss its array, else
 * to `full`, the code without them. */
void control_ask_outside(struct simd *s, LLVMValueRef outside, LLVMBasicBlockRef tested,
                         LLVMBasicBlockRef full);
/* Redirects all branches to the block to a new one. */
LLVMBasicBlockRef control_put_before(struct simd *s, LLVMBasicBlockRef block);
/* A loop with tests that wait for one answer is written once without them and once with them. */
void control_write_block(struct simd *s, int place);

/* ---- idle_chunks.c */

/* The chunks for which the block is written by itself, as it is a loop that often runs for the first ones
 * alone; all of them if it is not. */
int control_few_chunks(struct simd *s, int place);
/* Before the block: branches to `all` if a lane beyond these chunks is on, else to `few`. */
void control_ask_for_few(struct simd *s, int place, int chunks, LLVMBasicBlockRef few, LLVMBasicBlockRef all);

#endif
