/* Simdgroup operations in LLVM's terms, as the engines that write them out as instructions share them. */
#ifndef SMELT_COMPILER_COMBINE_H
#define SMELT_COMPILER_COMBINE_H

#include "compiler/pass.h"
#include "abi/simdgroup.h"

/* The intrinsic's operation; false: it is not a simdgroup operation. */
bool simdgroup_kind(enum intrinsic intrinsic, enum simd_kind *kind);

/* Of a reduction or scan: the operation, with SIMD_EXCLUSIVE where it is, and the width, a power of two up
 * to 32. False if they are not such constants. */
bool simdgroup_arguments(LLVMValueRef call, uint64_t *operation, uint64_t *width);

/* a operation b, of scalars or vectors, built at the builder's place; b is from the later lane. The bits are
 * those of device/cpu/simdgroup.c: as C's fmin and fmax, NaN gives way to a number; of two zeros the second
 * is taken. */
LLVMValueRef simdgroup_combine(LLVMBuilderRef builder, enum simd_operation operation, LLVMValueRef a,
                               LLVMValueRef b);

/* The operation that combines the operands of several atomic updates of one address into one; additions and
 * subtractions: SIMD_SUM. SIMD_EXCLUSIVE: there is none. */
enum simd_operation simdgroup_of_updates(LLVMAtomicRMWBinOp operation);

#endif
