/* The findings of a checked run, in terms of the user's text. */
#ifndef SMELT_KERNEL_FOUND_H
#define SMELT_KERNEL_FOUND_H

#include "frontend/translation.h"

/* After a run of a kernel with this text that returned `status`, which is the result: the columns of its
 * findings become the user's. NULL: there is no text, and columns are not known. */
smelt_status found_place(const struct translation *translation, smelt_status status);

#endif
