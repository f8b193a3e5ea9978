/* Tests of accesses (compiler/bounds) in the code of CPUs, and the parts that ptx/memory/inside.c shares. */
#ifndef SMELT_COMPILER_CPU_INSIDE_H
#define SMELT_COMPILER_CPU_INSIDE_H

#include "compiler/bounds/bounds.h"

/* i64: how many addresses from the start of `extent` bytes on have `bytes` bytes there; at the builder's
 * place.
 */
LLVMValueRef inside_count(struct unit *unit, LLVMValueRef extent, LLVMValueRef bytes);

/* A branch to `rare` or `usual`; the first is hardly ever taken. */
void inside_branch(struct unit *unit, LLVMValueRef condition, LLVMBasicBlockRef rare,
                   LLVMBasicBlockRef usual);

/* Ends the launch, and the builder's block: the lowest access of `sites` is at `address` (i64). */
void inside_fail(struct unit *unit, LLVMValueRef sites, LLVMValueRef start, LLVMValueRef extent,
                 LLVMValueRef address);

/* The starts and extents of arguments. */
static inline bool inside_is_extent(enum intrinsic intrinsic) {
    return intrinsic == INTRINSIC_BUFFER_START || intrinsic == INTRINSIC_BUFFER_EXTENT ||
           intrinsic == INTRINSIC_THREADGROUP_START || intrinsic == INTRINSIC_THREADGROUP_EXTENT;
}
/* … i64, at the builder's place. group: the struct group_context *. */
LLVMValueRef inside_extent(struct unit *unit, LLVMValueRef group, enum intrinsic intrinsic, uint64_t slot);

/* The table of the arguments' extents, and a field of an argument's struct buffer_extent: i64. */
LLVMValueRef inside_table(struct unit *unit, LLVMValueRef group);
LLVMValueRef inside_buffer(struct unit *unit, LLVMValueRef table, uint64_t slot, size_t field);

/* i64, at the builder's place: an address as a number of the generic address space. */
LLVMValueRef inside_number(struct unit *unit, LLVMValueRef address);
/* In the code of one thread: a call of `leaves` becomes comparisons. */
void inside_lower_leaves(struct unit *unit, LLVMValueRef call);
/* i1, at the builder's place: whether a call of `inside` finds an access outside. *address: of the lowest
 * access, i64. */
LLVMValueRef inside_misses(struct unit *unit, LLVMValueRef call, LLVMValueRef *address);

/* For the scalar engine: the tests of a function become comparisons and branches. The extents of arguments
 * are not lowered. */
void inside_lower(struct unit *unit, LLVMValueRef function);

#endif
