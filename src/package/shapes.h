/* The codes of an entry in a package for a target: one that serves every launch, and others that are faster
 * for some. docs/packages.md states the cost of this choice. */
#ifndef SMELT_PACKAGE_SHAPES_H
#define SMELT_PACKAGE_SHAPES_H

#include "package/build.h"
#include "package/package.h"

/* In addition to the first; a GPU's are compiled with and without polls of the stop flag. */
#define MAX_SHAPES (2 * (8 + SMELT_MAX_BUILD_THREADGROUPS))

/* The one kind of grid that packages have coarsened code for (struct code_shape): long, of one dimension. */
#define PACKAGE_COARSE (COARSE_LINE | 1u)

/* All of an entry's codes for a target. */
#define MOST_CODES (6 * (SMELT_MAX_BUILD_THREADGROUPS + 1) + MAX_SHAPES + 1)

struct shapes {
    struct code_shape items[MAX_SHAPES];
    int count;
};

/* The first: on a CPU it serves every launch, on a GPU all but those with a time-out or a folded grid. */
extern const struct code_shape shape_any_on_cpu, shape_any_on_gpu;

/* The others, which depend on the first (image): on barriers, limits of the entry, and what its arguments
 * point to. */
void shapes_for_cpu(const struct package_request *request, const struct package_entry *entry,
                    struct shapes *shapes);
void shapes_for_gpu(const smelt_build_desc *desc, const struct package_entry *entry,
                    const struct image *image, struct shapes *shapes);

/* Kernels that do not compile for threadgroups of any size, on a GPU. The first code for one size: its
 * launches have whole groups. And all of them, of which it is the first. */
struct code_shape shapes_whole_groups(const uint32_t size[3]);
void shapes_for_size(const struct package_entry *entry, const struct image *image, const uint32_t size[3],
                     struct shapes *shapes);

#endif
