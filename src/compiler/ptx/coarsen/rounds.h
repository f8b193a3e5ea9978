/* A loop whose rounds run together: rounds.c finds what describes it here, and rounds_build.c builds its code
 * from that. */
#ifndef SMELT_COMPILER_PTX_ROUNDS_H
#define SMELT_COMPILER_PTX_ROUNDS_H

#include "compiler/analysis/flow.h"
#include "compiler/ptx/memory/guarded.h"
#include "compiler/ptx/ptx.h"

#define ROUNDS_MOST 8
#define ROUNDS_MOST_INSTRUCTIONS 256 /* of a round */

struct round_item {
    LLVMValueRef value;
    bool ahead; /* computed from what is known before the round's loads' values are used, or a load */
    LLVMValueRef copies[ROUNDS_MOST]; /* by round */
};

struct rounds {
    struct unit *unit;
    LLVMBasicBlockRef body, last; /* the loop's header and its latch, which may be the same block */
    LLVMBasicBlockRef before, after;
    struct guarded path; /* the blocks after `body`, if nothing is skipped */
    unsigned stays;      /* the successor of the loop's branch that stays in the loop */
    LLVMValueRef branch;
    bool only_loads; /* the loop does not store */
    struct round_item items[ROUNDS_MOST_INSTRUCTIONS];
    struct round_item saved[ROUNDS_MOST_INSTRUCTIONS]; /* … while another block uses `items` */
    int count, phis, rounds;
    LLVMBasicBlockRef test, together; /* of rounds_build: the test, and the rounds that run together */
};

/* The item of an instruction of the loop; NULL: it is outside. */
struct round_item *rounds_item(struct rounds *r, LLVMValueRef value);
/* A phi's value in the next round if it is in `body`; otherwise after a guard that skips nothing. */
LLVMValueRef rounds_next(struct rounds *r, LLVMValueRef phi);
LLVMValueRef rounds_address(LLVMValueRef access);

/* rounds.c — whether the block before the loop leads only to it, and only the loop leads to the block after
 * it, as rounds_build requires. Sets `before`. */
bool rounds_stand_alone(struct rounds *r, const struct flow *flow, int loop);

/* rounds_build.c — puts the test and the rounds before the loop. Requires: `before` leads only to the loop,
 * and only the loop leads to `after`, whose phis have all values of the loop that are used after it. */
void rounds_build(struct rounds *r);

#endif
