/* What checked runs look for on request. */
#ifndef SMELT_KERNEL_ALSO_H
#define SMELT_KERNEL_ALSO_H

#include "base/error.h"

#include <stdint.h>

/* Bits of enum check_also (abi/check.h) for a list of words, separated by commas: `also` of a descriptor
 * (NULL: none) and the environment variable SMELT_CHECK_ALSO. An unknown word is INVALID_ARGUMENT in the
 * first, and causes a warning in the second. what: the kernel's name. */
smelt_status also_parse(const char *what, const char *also, uint32_t *bits);

#endif
