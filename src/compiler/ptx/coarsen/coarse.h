/* Coarsening: one thread of the hardware does the work of several of the kernel's (coarsen.c).
 *
 * The kernel's code, which has no loops or is one (coarse_loop.c), is taken apart. A thread's *first* part is
 * its loads that always run and what they need; the *rest* is everything else. Code for several threads runs
 * the first parts of all, then the rest of each. Branches to the thread's end on the way (*guards*) are asked
 * for all threads at once; if one of them would leave, the threads run one after the other, in the code as it
 * was. */
#ifndef SMELT_COMPILER_PTX_COARSE_H
#define SMELT_COMPILER_PTX_COARSE_H

#include "compiler/analysis/flow.h"
#include "compiler/ptx/ptx.h"

#define COARSE_NEIGHBOURS 8 /* most threads side by side whose work one does */
#define COARSE_ROUNDS 2     /* most rounds of them */
#define COARSE_MOST (COARSE_NEIGHBOURS * COARSE_ROUNDS)
#define COARSE_PHIS 16 /* of a loop, at most */

/* By how many bytes, or by how much, a value differs between neighbours in a dimension. */
enum step_kind { STEP_NONE, STEP_KNOWN, STEP_NEAR, STEP_ALIKE, STEP_UNKNOWN };
struct step {
    /* NEAR: by this between most neighbours, as of a remainder. ALIKE: by the same unknown number everywhere.
     * NONE: not computed yet. */
    enum step_kind kind;
    int64_t amount;
};

struct coarse_form {
    int dimension;
    uint32_t threads; /* of the kernel, per round of a thread of the hardware; 0: it is not coarsened */
    uint32_t rounds;  /* the block's threads of a round follow those of the round before */
    bool neighbours;  /* a round's threads lie side by side; otherwise the hardware's block apart */
    uint32_t block[3];
};

/* An instruction of the kernel. */
struct coarse_item {
    LLVMValueRef value;
    int block;                        /* index in the flow */
    bool first;                       /* may run in the first part */
    bool wide;                        /* load or store: one access for several neighbours */
    bool alike;                       /* follows in the same way from the position in all groups */
    LLVMValueRef copies[COARSE_MOST]; /* by thread */
    struct step steps[3];
};

struct coarse_block {
    bool always; /* every thread that no guard sends away runs it */
    bool inside; /* threads that no guard sends away may run it */
    int guard;   /* the successor that stays; -1: its branch is not a guard */
    LLVMBasicBlockRef copy;
};

struct coarsening {
    struct unit *unit;
    struct arena arena;
    struct flow flow;
    struct coarse_form form;
    struct coarse_block *blocks; /* by index in the flow */
    struct coarse_item *items;   /* in the flow's order */
    int count;
    struct coarse_number *numbers; /* items by value */
    const char *because;           /* it is not coarsened: a sentence's end; NULL: it can be */
    int loop;      /* the only block of the kernel's loop, in the flow; -1: there is no loop */
    bool branches; /* it is not coarsened because of a loop; its only obstacle may be branches in the body */
    /* What positions are computed from, once code is built. */
    LLVMValueRef tile,
        own;           /* in the dimension: where the block begins, and the hardware thread's place in it */
    LLVMValueRef step; /* from one of a round's threads to the next */
    bool one_group;    /* a round's threads lie in one group */
    bool proved;       /* accesses of neighbours need no test */
    LLVMValueRef first[3];         /* position in the grid of the first of the hardware thread's threads */
    LLVMValueRef grid[3], size[3]; /* threads of the grid, and of a full group */
    /* one_group: the group of a round's first thread in the dimension, and its place there. */
    LLVMValueRef begin_group[COARSE_ROUNDS], within[COARSE_ROUNDS];
};

static inline LLVMBasicBlockRef coarse_loop_block(const struct coarsening *c) {
    return c->flow.blocks[c->loop].block;
}

/* The item of a value; NULL: it is not an instruction of the kernel. */
struct coarse_item *coarse_item_of(struct coarsening *c, LLVMValueRef value);

/* coarse_parts.c — blocks, guards, and what may run first. Sets `because` if the code cannot be coarsened. */
smelt_status coarse_take_apart(struct coarsening *c);
/* … whether an instruction has no effect, and reads no memory. */
bool coarse_is_pure(struct unit *unit, LLVMValueRef instruction);
/* A load or store that is neither volatile nor atomic. */
bool coarse_is_plain_access(LLVMValueRef instruction);

/* coarse_selects.c — the same. If branches in the body of a loop over the grid prevent it, they become
 * selects first, where that is cheap. */
smelt_status coarse_take_apart_with_selects(struct coarsening *c);

/* Threads of the kernel per thread of the hardware. */
uint32_t coarse_threads(const struct coarse_form *form);

/* coarse_steps.c — the step of a value between neighbours in a dimension; of threads a block apart if
 * `neighbours` is not set: only 0 is then known. */
struct step coarse_step(struct coarsening *c, LLVMValueRef value, int dimension);
uint64_t coarse_access_bytes(struct coarsening *c, LLVMValueRef access);
/* … whether a load or store of neighbours may be one access. */
bool coarse_joins(struct coarsening *c, LLVMValueRef access, int dimension);

/* coarse_form.c — chooses the form: by the code and the shape of the launch alone. */
void coarse_choose(struct coarsening *c);

/* … whether a value follows from positions, and from loads that do not depend on them and that every thread
 * starts with. */
bool coarse_is_simple(struct coarsening *c, LLVMValueRef value);

/* coarse_positions.c — computes `tile`, `own`, `grid`, `size`, and `first` in the other dimensions, at the
 * builder's place. */
void coarse_begin(struct coarsening *c);
/* … the rest: threads are neighbours, or a block apart. */
void coarse_start(struct coarsening *c, bool neighbours);
/* … the first thread is that at the start of the tile. */
void coarse_start_at_tile(struct coarsening *c);
/* … i1: the hardware thread's threads all lie in the grid; … its thread number `t` (i32) does. */
LLVMValueRef coarse_all_inside(struct coarsening *c);
LLVMValueRef coarse_one_inside(struct coarsening *c, LLVMValueRef t);
/* … the value of a call of an intrinsic of threads for thread number `t`; NULL: the same for all threads. */
LLVMValueRef coarse_position(struct coarsening *c, LLVMValueRef call, LLVMValueRef t);

/* coarse_copies.c — a value of the first part, for thread number `t`, at the builder's place. */
LLVMValueRef coarse_first_value(struct coarsening *c, unsigned t, LLVMValueRef value);
/* … an operand for thread number `t`, if it is there. */
LLVMValueRef coarse_operand(struct coarsening *c, unsigned t, LLVMValueRef operand);
/* … builds an instruction for thread number `t`, unless it is there; in any case. */
void coarse_copy(struct coarsening *c, unsigned t, struct coarse_item *item);
void coarse_copy_anew(struct coarsening *c, unsigned t, struct coarse_item *item);
/* … what has been built is no longer used. */
void coarse_forget_copies(struct coarsening *c);
/* … the guards, from the end of `block` on: the builder is then behind them. */
void coarse_build_guards(struct coarsening *c, LLVMBasicBlockRef block, LLVMBasicBlockRef plain);
/* … the code for several threads, from the end of `block` on. A thread of which a guard is
 * not sure leads to `plain`. */
smelt_status coarse_build(struct coarsening *c, LLVMBasicBlockRef block, LLVMBasicBlockRef plain);

/* coarse_loop.c — the same for a kernel that is a loop. */
void coarse_build_loop(struct coarsening *c, LLVMBasicBlockRef block, LLVMBasicBlockRef plain);

/* coarse_wide.c — the bytes of one access for neighbours. */
uint64_t coarse_wide_bytes(struct coarsening *c, LLVMValueRef access);
/* … loads a round's neighbours at once and sets the copies, from number `first` on; stores them at once from
 * the copies. */
void coarse_load_wide(struct coarsening *c, struct coarse_item *load, unsigned first, LLVMValueRef address);
void coarse_store_wide(struct coarsening *c, struct coarse_item *store, unsigned first);

#endif
