/* The NVIDIA GPU targets, in LLVM's terms, and which code runs where. */
#ifndef SMELT_FRONTEND_GPU_TARGET_H
#define SMELT_FRONTEND_GPU_TARGET_H

#include <stdbool.h>

/* The target for a device of this compute capability (90 for 9.0): "sm_90a"; NULL: it is too old. Devices
 * newer than LLVM 19 run sm_90's PTX. */
const char *gpu_target_of(int capability);

/* A user's target name ("sm_90a"), in LLVM's spelling; NULL: not a supported target. */
const char *gpu_target_named(const char *name);

/* The valid names, one at a time: NULL past the last. */
const char *gpu_target_at(int index);

/* LLVM's features for a target: the version of PTX it is written in. */
const char *gpu_target_features(const char *target);

/* Whether PTX for `target` runs on a device whose own is `here` (gpu_target_of); *rank: of two that do, the
 * higher one's uses more of the device. */
bool gpu_target_runs(const char *target, const char *here, int *rank);

#endif
