/* The kernels of a text and the instantiations of its templates, as their declarations describe them. */
#ifndef SMELT_SOURCE_SITES_H
#define SMELT_SOURCE_SITES_H

#include "source/declaration.h"

/* Adds a function that is a kernel, or of another stage; false: it is neither. path: its namespace. */
bool sites_add_kernel(struct finder *f, const struct declaration *d, const char *path);

/* Adds the explicit instantiation from `start` to the ; at `end`, if it is that of a kernel: the last name<…>
 * before an optional parameter list. */
void sites_add_instantiation(struct finder *f, uint32_t start, uint32_t end, const char *path);

/* Kernels that share their name with another function: a kernel or a helper. */
void sites_note_overloads(struct finder *f);

#endif
