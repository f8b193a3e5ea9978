/* Which of a warp's lanes runs which thread of a simdgroup.
 *
 * As a rule, thread n runs on lane n. Kernels that multiply fragments on tensor cores have them in the
 * fragments' order: then Metal's layout of 16 × 16 elements (lane bits 4 2 1 are the row, 3 and 0 four
 * columns) is that of the tensor cores (4 3 2 and 1 0), and elements move between neither lanes nor
 * registers. Only kernels whose warps are whole do.
 *
 * Positions, lanes and votes that a kernel sees are in Metal's order, and so are the numbers of lanes in
 * struct ptx_operation. Masks of warp instructions are in the hardware's. */
#ifndef SMELT_COMPILER_PTX_LANES_H
#define SMELT_COMPILER_PTX_LANES_H

#include "compiler/pass.h"

/* The module's lanes are in the fragments' order from now on. Before any number of a lane is used. */
void ptx_order_lanes(struct unit *unit);
bool ptx_lanes_ordered(const struct unit *unit);

/* The lane that runs thread `lane` of a simdgroup; either may be a mask of the bits of its number. */
LLVMValueRef ptx_hardware_lane(struct unit *unit, LLVMValueRef lane);
unsigned ptx_hardware_bits(const struct unit *unit, unsigned lane);
/* Whether `lane` is the lane's own number with some bits flipped, as reductions and simd_shuffle_xor need it.
 */
bool ptx_flips_own(LLVMValueRef lane, uint64_t *flipped);
/* The number of the thread that runs as number `thread` of the hardware's threads of a group. */
LLVMValueRef ptx_metal_thread(struct unit *unit, LLVMValueRef thread);
/* A vote: bit n becomes that of thread n. */
LLVMValueRef ptx_metal_vote(struct unit *unit, LLVMValueRef vote);

#endif
