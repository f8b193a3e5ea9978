/* From an entry's bitcode to code for one shape of launch: from the disk cache, or through the compiler
 * library. clang is not needed. */
#ifndef SMELT_FRONTEND_CODE_H
#define SMELT_FRONTEND_CODE_H

#include "base/file.h"
#include "base/hash.h"
#include "abi/compiler.h"

struct code_options {
    const char *name;                /* the kernel's name in messages */
    const smelt_constant *constants; /* ended by SMELT_NO_DTYPE; may be NULL */
    struct code_shape shape;
    const char *target; /* the target: "sm_90a"; NULL: a CPU */
    const char *after;  /* for code_show: the pass whose IR is stage `ir`; NULL: the last of all engines */
};

/* `key` names the bitcode: the hash of its inputs, or its own. `cpu` in LLVM's terms; NULL: this machine's
 * own. */

/* The code, if the cache has it. */
bool code_recall(struct hash key, const struct code_options *options, const char *cpu, struct image *image);

/* Generates it, and keeps it in the cache. COMPILE, LIMIT, NO_COMPILER, UNSUPPORTED; INVALID_ARGUMENT for a
 * function constant without a value; INTERNAL if this is not bitcode. */
smelt_status code_make(struct bytes bitcode, struct hash key, const struct code_options *options,
                       const char *cpu, struct image *image);

/* The text of a stage after `rewritten`. *text is heap memory. */
smelt_status code_show(struct bytes bitcode, const struct code_options *options, const char *cpu,
                       smelt_stage stage, char **text);

/* The function constants the entry reads when those of `options` have values, and whether it has a barrier.
 * *constants is heap memory. */
smelt_status code_constants(struct bytes bitcode, const struct code_options *options,
                            struct constant_use **constants, int *count, bool *has_barrier);

#endif
