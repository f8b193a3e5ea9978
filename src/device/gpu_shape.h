/* Which code a launch on an NVIDIA GPU needs. */
#ifndef SMELT_DEVICE_GPU_SHAPE_H
#define SMELT_DEVICE_GPU_SHAPE_H

#include "device/device.h"

/* One code for a launch, whose groups are all of one launch of the hardware:
 *
 *  groups of a multiple of 32 threads   code for exactly this size
 *  one-dimensional groups               code for any such size, up to the next power of two of threads
 *  others                               code for any size, likewise
 *
 * masked where the grid has groups that are cut off; folded where it has more groups than the hardware's. */
void gpu_shape(const struct launch *launch, bool barrier_hint, struct code_shape *shape);

/* Blocks of a hardware grid in each dimension. */
#define GPU_MOST_BLOCKS_X 2147483647u
#define GPU_MOST_BLOCKS 65535u
/* A folded grid has rows of so many blocks. */
#define GPU_FOLDED_ROW (1u << 30)

#endif
