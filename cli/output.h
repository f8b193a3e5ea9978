/* Files of outputs. */
#ifndef SMELT_CLI_OUTPUT_H
#define SMELT_CLI_OUTPUT_H

#include "smelt/smelt.h"

/* Writes an array on the host to a .npy file, or to a picture if the name is one's. Returns an exit status,
 * after a sentence on standard error if it is not EXIT_OK. */
int output_write(const smelt_array *array, const char *file);

#endif
