/* What is printed of an array: shape, least and greatest value, mean, first values. */
#ifndef SMELT_CLI_SUMMARY_H
#define SMELT_CLI_SUMMARY_H

#include "smelt/smelt.h"

#include <stdio.h>

/* One line to `out`: "out float16 4x16: min … max … mean …: v v v …". */
void summary_print(FILE *out, const char *name, const smelt_array *array);

/* The same as members of a JSON object. */
void summary_print_json(FILE *out, const char *name, const smelt_array *array);

#endif
