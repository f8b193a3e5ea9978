/* Which of an entry's codes a machine and a launch may use. */
#ifndef SMELT_PACKAGE_SELECT_H
#define SMELT_PACKAGE_SELECT_H

#include "package/package.h"

/* The target whose code a device runs: of those it can run, the one with the highest requirements; -1: none,
 * and `why` names what each lacks here. `device`: a GPU's target ("sm_90a"); NULL: this machine's CPU. */
int package_target_here(const struct package *package, const char *device, struct text *why);

/* Whether code of shape `made` serves a launch that needs shape `wanted`. */
bool shape_serves(const struct code_shape *made, const struct code_shape *wanted);

/* Whether it is as fast, or nearly so that compiling another is not worth the time: docs/packages.md has
 * figures. */
bool shape_serves_well(const struct code_shape *made, const struct code_shape *wanted);

/* Whether there is coarsened code of the target: for other grids, and without it, the others serve as well as
 * any. */
bool package_has_coarse(const struct package_entry *entry, int target);

/* The entry's best code of the target for a launch, or NULL. */
const struct package_code *package_find_code(const struct package_entry *entry, int target,
                                             const struct code_shape *wanted);

#endif
