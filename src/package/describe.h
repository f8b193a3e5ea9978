/* Descriptions of packages. */
#ifndef SMELT_PACKAGE_DESCRIBE_H
#define SMELT_PACKAGE_DESCRIBE_H

#include "package/package.h"

/* "threadgroups of 64 x 2 x 1" … */
void describe_shape(const struct code_shape *shape, struct text *out);

/* The whole contents, or only the entry with this index, in lines. */
void describe_package(const struct package *package, int entry, struct text *out);

#endif
