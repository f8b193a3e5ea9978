/* From a translation and the name of an entry to a compiled image: from the disk cache, or through clang and
 * the compiler library. */
#ifndef SMELT_FRONTEND_COMPILE_H
#define SMELT_FRONTEND_COMPILE_H

#include "frontend/translation.h"
#include "ir/image.h"

struct compile_options {
    const char *name;                /* what messages call the kernel */
    const smelt_constant *constants; /* ended by SMELT_NO_DTYPE; may be NULL */
    struct code_shape shape;
};

/* Whether the program has barriers; of an entry that calls none it may say so too. */
bool compile_has_barrier(const struct translation *translation);

/* *cache_hit: no compiler ran. COMPILE with diagnostics, LIMIT, TIMEOUT, NO_COMPILER, UNSUPPORTED. */
smelt_status compile_entry(const struct translation *translation, const struct entry *entry,
                           const struct compile_options *options, struct image *image, bool *cache_hit);

/* The text of a later stage than the source. *text is heap memory. */
smelt_status compile_show(const struct translation *translation, const struct entry *entry,
                          const struct compile_options *options, smelt_stage stage, char **text);

#endif
