/* The memory that an object has, for the tests of a gang's accesses (extents.c). `original`: the start or the
 * extent that the call of a test names, in the code of one thread. */
#ifndef SMELT_COMPILER_SIMD_EXTENTS_H
#define SMELT_COMPILER_SIMD_EXTENTS_H

#include "compiler/simd/simd.h"

/* The least n with bytes <= 1 << n. */
int extent_log2(uint64_t bytes);

/* i64: the first address of the object, and how many bytes it has. */
LLVMValueRef extent_start(struct simd *s, LLVMValueRef original);
LLVMValueRef extent_bytes(struct simd *s, LLVMValueRef original);

/* i64: at how many addresses from the start on the object has `bytes` bytes, … */
LLVMValueRef extent_count(struct simd *s, LLVMValueRef original, uint64_t bytes);
/* … or fewer, if that is simpler; and whether these are all. */
LLVMValueRef extent_safe_count(struct simd *s, LLVMValueRef original, uint64_t bytes);
bool extent_safe_is_exact(LLVMValueRef original, uint64_t bytes);

/* Whether an argument's struct buffer_extent has the bounds of accesses of so many bytes. */
bool extent_is_counted(LLVMValueRef original, uint64_t bytes);
/* i64, requires extent_is_counted: at how many elements of `scale` bytes, a power of two, from the argument's
 * address on the object has `bytes` bytes, or fewer. */
LLVMValueRef extent_bound(struct simd *s, LLVMValueRef original, int64_t scale, uint64_t bytes);

#endif
