/* Which code a launch on an NVIDIA GPU needs. */
#ifndef SMELT_CUDA_SHAPE_H
#define SMELT_CUDA_SHAPE_H

#include "kernel/device.h"

/* One code for a launch, whose groups are all of one launch of the hardware:
 *
 *  groups of a multiple of 32 threads   code for exactly this size
 *  one-dimensional groups               code for any such size, up to the next power of two of threads
 *  others                               code for any size, likewise
 *
 * masked where the grid has groups that are cut off; folded where it has more groups than the hardware's. */
void cuda_shape(const struct launch *launch, bool barrier_hint, struct code_shape *shape);

/* Blocks of a hardware grid in each dimension. */
#define CUDA_MOST_BLOCKS_X 2147483647u
#define CUDA_MOST_BLOCKS 65535u
/* A folded grid has rows of so many blocks. */
#define CUDA_FOLDED_ROW (1u << 30)

/* What LLVM makes PTX for on a device of this compute capability (90 for 9.0): "sm_90a"; NULL: it is too old.
 * Newer devices than LLVM 19 knows run sm_90's PTX. */
const char *cuda_target(int capability);

/* choose.c — the same, or the lower target that SMELT_CUDA_TARGET names. */
const char *cuda_target_chosen(int capability);

/* A name a user may give ("sm_90a"), as LLVM writes it; NULL: none that code can be made for. */
const char *cuda_target_named(const char *name);

/* The names there are, one at a time: NULL past the last. */
const char *cuda_target_at(int index);

/* LLVM's features for a target: the version of PTX it is written in. */
const char *cuda_target_features(const char *target);

/* Whether PTX for `target` runs on a device whose own is `here` (cuda_target); *rank: of two that do, the
 * higher one's uses more of the device. */
bool cuda_target_runs(const char *target, const char *here, int *rank);

#endif
