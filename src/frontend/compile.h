/* From a translation and the name of an entry to a compiled image: from the disk cache, or through clang and
 * the compiler library. */
#ifndef SMELT_FRONTEND_COMPILE_H
#define SMELT_FRONTEND_COMPILE_H

#include "frontend/code.h"
#include "frontend/translation.h"

/* Whether the program has barriers; may be true for an entry that calls none. */
bool compile_has_barrier(const struct translation *translation);

/* *cache_hit: no compiler ran. COMPILE with diagnostics, LIMIT, TIMEOUT, NO_COMPILER, UNSUPPORTED. */
smelt_status compile_entry(const struct translation *translation, const struct entry *entry,
                           const struct code_options *options, struct image *image, bool *cache_hit);

/* Clang's output for an entry, before function constants have values. The same for every shape and CPU. */
struct entry_bitcode {
    struct text bytes; /* the caller frees them */
    struct hash key;   /* its name in the cache, and part of the names of its codes */
    bool cached;       /* clang did not run for it now */
};
smelt_status compile_bitcode(const struct translation *translation, const struct entry *entry,
                             struct entry_bitcode *bitcode);

/* Call this after the compiler has read the bitcode, with its result: what it cannot read leaves the cache.
 */
void compile_drop_unreadable(const struct entry_bitcode *bitcode, smelt_status status);

/* The text of a later stage than the source. *text is heap memory. */
smelt_status compile_show(const struct translation *translation, const struct entry *entry,
                          const struct code_options *options, smelt_stage stage, char **text);

#endif
