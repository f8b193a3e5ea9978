/* The geometric functions: their errors, in ULP of the terms that were summed. */
#ifndef SMELT_TESTS_ACCURACY_GEOMETRY_H
#define SMELT_TESTS_ACCURACY_GEOMETRY_H

#include "../prelude/support.h"
#include "arguments.h"

/* Fills the table; errors above the bar are failures. */
void measure_geometry(const struct engines *engines, enum density density, struct body *table);
extern const char *const geometry_rows[]; /* ended by NULL */

#endif
