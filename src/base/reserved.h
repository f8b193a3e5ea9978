/* The words at the end of each public structure, reserved for later fields: zero until then. */
#ifndef SMELT_BASE_RESERVED_H
#define SMELT_BASE_RESERVED_H

#include "base/error.h"

/* Refuses `structure`, a pointer to the public `type`, if one of its reserved words is not zero: the caller
 * uses a field that this library lacks, or did not initialise the structure. */
#define reserved_check(type, structure) \
    reserved_check_words(#type, (structure)->reserved, sizeof(structure)->reserved)

/* The error for the first word that is not zero. */
smelt_status reserved_refuse(const char *type, const uint64_t *words, size_t bytes);

/* Inline: a launch of a function checks 32 structures. */
static inline smelt_status reserved_check_words(const char *type, const uint64_t *words, size_t bytes) {
    uint64_t all = 0;
    for (size_t i = 0; i < bytes / sizeof *words; i++) all |= words[i];
    return all ? reserved_refuse(type, words, bytes) : SMELT_OK;
}

#endif
