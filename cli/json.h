/* Values of JSON. */
#ifndef SMELT_CLI_JSON_H
#define SMELT_CLI_JSON_H

#include <stdio.h>

/* A string with its quotes; bytes that are not UTF-8 become U+FFFD. NULL is null. */
void json_print_string(FILE *out, const char *text);

/* A number; NaN and infinities, which JSON lacks, become null. */
void json_print_number(FILE *out, double value);

#endif
