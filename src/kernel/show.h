/* Showing a kernel: the code of a launch that is not run, on a device that need not be present. */
#ifndef SMELT_KERNEL_SHOW_H
#define SMELT_KERNEL_SHOW_H

#include "kernel/dispatch.h"

/* As device_find, but a missing "cuda" or "cuda:N" is a GPU that code can be generated for. */
smelt_status device_to_show(const char *name, const struct device **device);

struct shape_desc {
    const int64_t *grid;  /* three, threads; 0: one full group */
    const int64_t *group; /* three, threads; 0: 256 */
    bool clamp;           /* body form: groups are no larger than the grid */
    bool barrier_hint;
    const char *target; /* of a GPU; NULL: the device's */
    const char *after;  /* a pass; NULL: none is named */
};

/* What the full groups of the launch, which has no sizes yet, are compiled for: options' shape and target.
 * INVALID_ARGUMENT for a stage that the device lacks, and for an invalid target. */
smelt_status shape_for_stage(struct launch *launch, const struct shape_desc *desc, smelt_stage stage,
                             struct code_options *options);

#endif
