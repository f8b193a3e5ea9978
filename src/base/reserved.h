/* The words at the end of each public structure, reserved for later fields: zero until then. */
#ifndef SMELT_BASE_RESERVED_H
#define SMELT_BASE_RESERVED_H

#include "base/error.h"

/* Refuses `structure`, a pointer to the public `type`, if one of its reserved words is not zero: the caller
 * uses a field that this library lacks, or did not initialise the structure. */
#define reserved_check(type, structure) \
    reserved_check_words(#type, (structure)->reserved, sizeof(structure)->reserved)

smelt_status reserved_check_words(const char *type, const uint64_t *words, size_t bytes);

#endif
