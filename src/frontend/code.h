/* From an entry's bitcode, or from clang's input, to code for one shape of launch: from the disk cache, or
 * through the compiler. */
#ifndef SMELT_FRONTEND_CODE_H
#define SMELT_FRONTEND_CODE_H

#include "base/file.h"
#include "base/hash.h"
#include "abi/compiler.h"
#include "frontend/compile_whole.h"
#include "frontend/once.h"

struct code_options {
    const char *name;                /* the kernel's name in messages */
    const smelt_constant *constants; /* ended by SMELT_NO_DTYPE; may be NULL */
    struct code_shape shape;
    const struct known_values *values; /* the code is for these alone; NULL: for all */
    const char *target;                /* the target: "sm_90a"; NULL: a CPU */
    enum compile_effort effort;        /* of code_recall and code_make; zero: the best */
    const char *after; /* for code_show: the pass whose IR is stage `ir`; NULL: the last of all engines */
};

/* `key` names the bitcode: the hash of its inputs, or its own. `cpu` in LLVM's terms; NULL: this machine's
 * own. */

/* The code, if the cache has it: the best, or else what the effort allows. */
bool code_recall(struct hash key, const struct code_options *options, const char *cpu, struct image *image);

/* The code, if it is installed with smelt (installed.h). The key does not depend on the compiler. */
bool code_recall_installed(struct hash key, const struct code_options *options, const char *cpu,
                           struct image *image);

/* Where COMPILE_RECALL finds nothing. */
smelt_status code_fail_recall(const struct code_options *options);

/* For the step of the build that collects codes: stores one to be installed, unless it is quick code
 * or for given values. */
void code_collect(struct hash key, const struct code_options *options, const char *cpu,
                  const struct image *image);

/* Before the code is generated: *mine is NULL if it is in the cache meanwhile, or another thread has just
 * generated it, and `image` is valid. Otherwise code_end must follow. Failures as once_begin. */
smelt_status code_begin(struct hash key, const struct code_options *options, const char *cpu,
                        struct once **mine, struct image *image);
void code_end(struct once *mine, smelt_status status, const struct image *image);

/* Both of them around code_make. *ready: no compiler ran. */
smelt_status code_make_once(struct bytes bitcode, struct hash key, const struct code_options *options,
                            const char *cpu, struct image *image, bool *ready);

/* Generates it, and keeps it in the cache; image->quick says which it is. COMPILE, LIMIT, NO_COMPILER,
 * UNSUPPORTED; INVALID_ARGUMENT for a function constant without a value; INTERNAL if this is not bitcode. */
smelt_status code_make(struct bytes bitcode, struct hash key, const struct code_options *options,
                       const char *cpu, struct image *image);

/* The same from clang's input, where compile_whole_is_possible: compile_whole_run, and code_take for its
 * result, where clang succeeded. */
smelt_status code_run_whole(const struct clang *clang, const struct clang_request *source,
                            const struct code_options *options, const char *cpu, struct compile_whole *whole);
smelt_status code_take(struct compile_whole *whole, struct hash key, const struct code_options *options,
                       const char *cpu, struct image *image);

/* The text of a stage after `rewritten`. *text is heap memory. */
smelt_status code_show(struct bytes bitcode, const struct code_options *options, const char *cpu,
                       smelt_stage stage, char **text);

/* The function constants the entry reads when those of `options` have values, and whether it has a barrier.
 * *constants is heap memory. */
smelt_status code_constants(struct bytes bitcode, const struct code_options *options,
                            struct constant_use **constants, int *count, bool *has_barrier);

#endif
