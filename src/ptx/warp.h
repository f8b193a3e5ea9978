/* Simdgroup operations on warps: what the files that lower them share. */
#ifndef SMELT_PTX_WARP_H
#define SMELT_PTX_WARP_H

#include "cpu/context.h"
#include "ptx/ptx.h"

/* The lanes that come to a place together. */
struct ptx_lanes {
    /* i32, the member mask of warp instructions there. It may also name lanes that are missing or have
     * returned: the hardware waits for none of them. */
    LLVMValueRef mask;
    LLVMValueRef active; /* i32: a bit for each lane that is there; NULL: all 32 are */
    bool from_first;     /* the active lanes are those below some lane */
};

/* An operation that is being lowered, at the builder's place. */
struct ptx_operation {
    struct unit *unit;
    struct ptx_lanes lanes;
    LLVMValueRef lane; /* i32: the thread's own */
};

/* A call of an LLVM intrinsic that is not overloaded. */
LLVMValueRef ptx_intrinsic(struct unit *unit, const char *name, LLVMValueRef *arguments, unsigned count);

/* i32: the thread's lane, which lower.c gives its value. */
LLVMValueRef ptx_lane(struct unit *unit);

/* exchange.c — values of 32 or 64 bits, or floats, from other lanes. */

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
