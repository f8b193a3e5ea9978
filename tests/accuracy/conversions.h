/* Conversions between integers and floating point: every result must be exact, or the exact one rounded once.
 */
#ifndef SMELT_TESTS_ACCURACY_CONVERSIONS_H
#define SMELT_TESTS_ACCURACY_CONVERSIONS_H

#include "../prelude/support.h"
#include "arguments.h"

/* Wrong results are failures. Two tables: to floating point, and to integers. */
void measure_conversions(const struct engines *engines, enum density density, struct body *to_real,
                         struct body *to_integer);
extern const char *const conversion_rows[]; /* of the first table, ended by NULL */
extern const char *const truncation_rows[]; /* of the second */

#endif
