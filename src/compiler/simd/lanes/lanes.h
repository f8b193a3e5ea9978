/* Reductions and scans over the lanes of chunks, for simdgroup operations and atomics. The bits are those of
 * device/cpu/simdgroup.c; of several NaNs it is not said which one comes out. */
#ifndef SMELT_COMPILER_SIMD_LANES_H
#define SMELT_COMPILER_SIMD_LANES_H

#include "compiler/simd/simd.h"

/* The layout for scan_lanes: chunks of `width` lanes, a power of two, are one group. */
struct scan {
    enum simd_operation operation; /* without SIMD_EXCLUSIVE */
    bool exclusive;
    int width;
    LLVMValueRef const *masks; /* of the chunks; entries NULL: all lanes are on */
};

/* a operation b, of scalars or vectors; b is from the later lane. */
LLVMValueRef lanes_combine(struct simd *s, enum simd_operation operation, LLVMValueRef a, LLVMValueRef b);
/* The chunk with the neutral value in inactive lanes; mask NULL: all are active. */
LLVMValueRef lanes_keep_active(struct simd *s, enum simd_operation operation, LLVMValueRef vector,
                               LLVMValueRef mask);
/* One scalar of all lanes of `count` chunks, a power of two: a tree of neighbours. */
LLVMValueRef lanes_reduce(struct simd *s, enum simd_operation operation, LLVMValueRef const *chunks,
                          int count);
/* The results of groups of `count` chunks each as one vector; both numbers are powers of two. The groups
 * share the steps of the tree. */
LLVMValueRef lanes_reduce_each(struct simd *s, enum simd_operation operation, LLVMValueRef const *chunks,
                               int count, int groups);
/* In each lane the result over its group of `width` lanes of the chunk. */
LLVMValueRef lanes_reduce_groups(struct simd *s, enum simd_operation operation, LLVMValueRef vector,
                                 int width);
/* In place. The chunks went through keep_active. Floating-point results are those of the lanes in order. */
void lanes_scan(struct simd *s, const struct scan *scan, LLVMValueRef *chunks, int count);
/* A shuffle of one vector, or two of the same type (b may be NULL). Index -1: anything. */
LLVMValueRef lanes_shuffle(struct simd *s, LLVMValueRef a, LLVMValueRef b, const int *indexes, int count);
/* Two vectors of one type side by side, and one of them again. */
LLVMValueRef lanes_join(struct simd *s, LLVMValueRef first, LLVMValueRef second);
LLVMValueRef lanes_half(struct simd *s, LLVMValueRef vector, bool second);
/* A chunk of the lanes of `count` chunks, a power of two, that stand in `indexes`; only chunks that are
 * needed are joined. */
LLVMValueRef lanes_gather(struct simd *s, LLVMValueRef const *chunks, int count, const int *indexes);

/* known.c — the value of an integer expression in the lane of a simdgroup with this number, where that is the
 * same in every simdgroup. */
bool known_in_lane(struct simd *s, LLVMValueRef value, int lane, uint64_t *out);
/* matrix.c — one half of the elements of a product of 8×8 matrices; the gang has whole simdgroups. */
void emit_matrix_product(struct simd *s, LLVMValueRef call);

#endif
