/* The NVIDIA GPUs that code can be generated for, as LLVM calls them, and which runs where. */
#ifndef SMELT_FRONTEND_GPU_TARGET_H
#define SMELT_FRONTEND_GPU_TARGET_H

#include <stdbool.h>

/* What LLVM makes PTX for on a device of this compute capability (90 for 9.0): "sm_90a"; NULL: it is too old.
 * Newer devices than LLVM 19 knows run sm_90's PTX. */
const char *gpu_target_of(int capability);

/* A name a user may give ("sm_90a"), as LLVM writes it; NULL: none that code can be made for. */
const char *gpu_target_named(const char *name);

/* The names there are, one at a time: NULL past the last. */
const char *gpu_target_at(int index);

/* LLVM's features for a target: the version of PTX it is written in. */
const char *gpu_target_features(const char *target);

/* Whether PTX for `target` runs on a device whose own is `here` (gpu_target_of); *rank: of two that do, the
 * higher one's uses more of the device. */
bool gpu_target_runs(const char *target, const char *here, int *rank);

#endif
