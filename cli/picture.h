/* Arrays written as PNG images. */
#ifndef SMELT_CLI_PICTURE_H
#define SMELT_CLI_PICTURE_H

#include "smelt/smelt.h"

/* Whether `file` is to be an image: it ends in .png. */
bool picture_is_named(const char *file);

/* Whether arrays of this dtype and shape are images: HxW, HxWx1, HxWx3 or HxWx4 of uint8, or of floats from 0
 * to 1. Complains about others; `what` begins the complaint. */
bool picture_check(const char *what, smelt_dtype dtype, const smelt_shape *shape);

/* Writes the host's array, which picture_check accepts: uint8 as it is, floats clamped to [0, 1] (NaN is 0)
 * and rounded to 8 bits. A regular file is replaced whole or not at all. Returns an exit status, after a
 * complaint where it is not EXIT_OK. */
int picture_write(const smelt_array *array, const char *file);

#endif
