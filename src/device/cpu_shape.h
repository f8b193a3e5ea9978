/* Which codes a launch needs. */
#ifndef SMELT_DEVICE_CPU_SHAPE_H
#define SMELT_DEVICE_CPU_SHAPE_H

#include "device/device.h"

/* A grid has full groups, or groups cut off at its edge, or both. Groups of different kind run different
 * codes, unless the shapes come out equal. */
struct launch_shapes {
    bool has_full, has_edge;
    struct code_shape full, edge; /* all 0 where there is no such group */
};

/* Groups of one thread would leave all other lanes of a gang idle. A launch with such groups looks whether
 * its code allows neighbouring groups to be joined, and then becomes a launch of larger groups. False: the
 * launch has other groups, or too few. */
bool launch_join(const struct launch *launch, struct launch *joined);

/* Codes of the SIMD engine for a launch. With T threads per full group:
 *
 *  full groups, T a multiple of 32
 *      with barriers       code for exactly this size: gangs can span simdgroups
 *      one-dimensional     code for any such size: {0, 1, 1}
 *      x a multiple of 32  code in which a simdgroup stays in its row
 *      x 1, 2, 4, 8 or 16  code for exactly this size: a simdgroup is some whole rows
 *      otherwise           code for any size
 *  all others              masked code for any size, or for any one-dimensional one
 *
 * Groups of several rows, of at least 12 threads each, have gangs that lie in rows where the kernel lets them
 * (code_shape.by_rows), unless whole gangs fill the rows, or whole rows a gang. Groups at the edge whose rows
 * are all multiples of 32 threads run code for such rows, without masks.
 *
 * barrier_hint: the kernel's text has a barrier; known sizes are then worth a code each. */
void launch_shapes(const struct launch *launch, bool barrier_hint, struct launch_shapes *shapes);

#endif
