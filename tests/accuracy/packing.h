/* Vectors packed into integers and back: errors in steps of the integers, and in ULP. */
#ifndef SMELT_TESTS_ACCURACY_PACKING_H
#define SMELT_TESTS_ACCURACY_PACKING_H

#include "../prelude/support.h"
#include "arguments.h"

/* Fills the table; errors above the bars are failures. */
void measure_packing(const struct engines *engines, enum density density, struct body *table);
extern const char *const packing_rows[]; /* ended by NULL */

#endif
