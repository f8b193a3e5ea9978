/* Simdgroup operations on warps: shared by the files that lower them. */
#ifndef SMELT_COMPILER_PTX_WARP_H
#define SMELT_COMPILER_PTX_WARP_H

#include "abi/simdgroup.h"
#include "compiler/ptx/warp/divergence.h"
#include "compiler/ptx/warp/lanes.h"
#include "compiler/ptx/ptx.h"

/* The lanes that come to a place together. */
struct ptx_lanes {
    /* i32, the member mask of warp instructions there. It may also name lanes that are missing or have
     * returned: the hardware waits for none of them. */
    LLVMValueRef mask;
    LLVMValueRef active; /* i32: a bit for each lane that is there; NULL: all 32 are. The hardware's order, or
                          * in struct ptx_operation, Metal's */
    bool from_first;     /* the active lanes are those below some lane */
};

/* An operation that is being lowered, at the builder's place. */
struct ptx_operation {
    struct unit *unit;
    struct ptx_lanes lanes;
    LLVMValueRef lane; /* i32: the thread's own */
};

/* masks.c — member masks, carried by the control flow.
 *
 * Where all lanes that the warp still has come together the mask names all 32. Otherwise it is a value: a
 * divergent branch votes on who goes where, a block that all lanes of one above come to has that one's, and
 * the mask of a loop's round is that of who stayed after the last. */
struct ptx_masks {
    struct unit *unit;
    const struct divergence *d;
    LLVMValueRef full;      /* the constant */
    bool unknown;           /* a requested mask is not known */
    LLVMValueRef existing;  /* the lanes the warp began with; NULL: not requested yet */
    LLVMValueRef *of_block; /* by place; NULL: not created yet */
    LLVMValueRef *of_edge;  /* two for each place: of its branch's successors */
};

enum mask_source {
    MASK_FULL,
    MASK_FROM_ABOVE, /* that of divergence_place_above() */
    MASK_OF_ROUNDS,  /* a divergent loop's header */
    MASK_OF_EDGE,    /* from the one predecessor */
    MASK_UNKNOWN     /* lanes come from several blocks, and some that went another way do not */
};
/* *from: for MASK_FROM_ABOVE and MASK_OF_EDGE, the block it comes from. */
enum mask_source ptx_mask_source(const struct divergence *d, int place, int *from);

/* Requires: no requested block, and no source of its mask, is MASK_UNKNOWN (meet.c). */
void ptx_masks_start(struct ptx_masks *m, struct divergence *d);
struct ptx_lanes ptx_lanes_at(struct ptx_masks *m, int place);

/* meet.c — after ptx_lanes_part, changes of the control flow such that the masks of all blocks with
 * simdgroup operations are known. */
smelt_status ptx_lanes_meet(struct unit *unit, struct divergence *d);

/* ends.c — lanes that end while others go on do so where they are, by an instruction of their own: at the
 * function's last return they might be held until the others come. Blocks must still be those of `d`. */
void ptx_end_lanes(const struct divergence *d);
/* ends.c — divergence_find, and then changes of the control flow such that lanes which end while others come
 * to a barrier have their own way there: where such ways join they, too, might be held. */
smelt_status ptx_lanes_part(struct unit *unit, struct divergence *d);

/* A call of an LLVM intrinsic that is not overloaded. */
LLVMValueRef ptx_intrinsic(struct unit *unit, const char *name, LLVMValueRef *arguments, unsigned count);

/* i32: the thread's lane, which lower.c gives its value. */
LLVMValueRef ptx_lane(struct unit *unit);

/* exchange.c — values of 32 or 64 bits, or floats, from other lanes. */

/* Which of the mask's lanes say yes, in the hardware's order, as masks are. */
LLVMValueRef ptx_vote(struct unit *unit, LLVMValueRef mask, LLVMValueRef vote);

/* From the lane `source`, which must be active. */
LLVMValueRef ptx_take(struct ptx_operation *o, LLVMValueRef value, LLVMValueRef source);
/* i1: is lane `index`, any number, active? NULL: it is, whatever the number. */
LLVMValueRef ptx_is_active(struct ptx_operation *o, LLVMValueRef index);
LLVMValueRef ptx_shuffle(struct ptx_operation *o, LLVMValueRef value, LLVMValueRef index);
LLVMValueRef ptx_ballot(struct ptx_operation *o, LLVMValueRef vote);

/* collective.c — reductions and scans over groups of `width` lanes, a power of two. */
LLVMValueRef ptx_reduce(struct ptx_operation *o, enum simd_operation operation, unsigned width,
                        LLVMValueRef value);
LLVMValueRef ptx_scan(struct ptx_operation *o, enum simd_operation operation, bool exclusive, unsigned width,
                      LLVMValueRef value);

#endif
