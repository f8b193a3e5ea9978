/* Which codes a package holds of an entry for a target: one that serves every launch, others that are faster
 * where they serve. docs/packages.md has what the choice costs. */
#ifndef SMELT_PACKAGE_SHAPES_H
#define SMELT_PACKAGE_SHAPES_H

#include "package/package.h"

/* Beside the first; a GPU's are made with and without looks at the stop flag. */
#define MAX_SHAPES (2 * (7 + SMELT_MAX_BUILD_THREADGROUPS))

struct shapes {
    struct code_shape items[MAX_SHAPES];
    int count;
};

/* The first: on a CPU it serves every launch, on a GPU all but those with a time-out or a folded grid. */
extern const struct code_shape shape_any_on_cpu, shape_any_on_gpu;

/* The others, known once there is the first (image): whether there are barriers, limits of the entry, what
 * its arguments point to. */
void shapes_for_cpu(const smelt_build_desc *desc, const struct package_entry *entry, struct shapes *shapes);
void shapes_for_gpu(const smelt_build_desc *desc, const struct package_entry *entry,
                    const struct image *image, struct shapes *shapes);

#endif
