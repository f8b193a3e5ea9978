/* clang 19 as a child process: found, identified, run within limits. */
#ifndef SMELT_FRONTEND_CLANG_H
#define SMELT_FRONTEND_CLANG_H

#include "base/hash.h"
#include "base/process.h"

/* The compiler that will be used. */
struct clang {
    char path[4096];
    struct hash identity; /* of path, size and modification time */
};

/* $SMELT_CLANG, else smelt-cc1 (src/cc1) near libsmelt, else clang-19, else clang if its major version is 19.
 * NO_COMPILER names what was searched for, or the version found. Searched once per process and environment.
 */
smelt_status clang_find(struct clang *clang);

/* The clang whose results to look up in the cache: clang_find's, or else the one that compiled into this
 * cache last (clang_note_use), of which only the identity is valid. NO_COMPILER as clang_find if there is
 * neither. */
smelt_status clang_find_or_recall(struct clang *clang);

/* The first line of its version: "Debian clang version 19.1.7"; "" if it cannot be run. */
void clang_version(const struct clang *clang, char line[256]);

/* smelt-cc1, where this build has it; otherwise `path` is where it would be. */
bool clang_find_own(struct clang *clang);

/* smelt-cc1, if it is there and of exactly the same version: the prelude that it precompiles is read faster,
 * and `clang` can read it. */
bool clang_find_maker(const struct clang *clang, struct clang *maker);

/* Records that it has compiled something. */
void clang_note_use(const struct clang *clang);

enum clang_action {
    CLANG_PREPROCESS,
    CLANG_PRECOMPILE,
    CLANG_COMPILE,
    CLANG_WARN /* compiles, with warnings among the messages */
};

struct clang_request {
    enum clang_action action;
    const char *name; /* of the kernel, for displays; may be NULL */
    smelt_math_mode math;
    bool cpp23;                       /* the prelude is in this standard */
    const char *precompiled;          /* path of the prelude's image, or NULL */
    const char *const *include_paths; /* ended by NULL; may be NULL */
    const char *header_overlay;       /* a file system overlay in clang's form, or NULL, and … */
    const char *header_folder;        /* … the folder in it to search after the include paths, and … */
    const char *source_path;          /* … the name in it of the text itself */
    const char *text;
    size_t length;
};

/* Runs clang over the text. *ok: it succeeded, and `output` is the result; otherwise `messages` holds its
 * messages. TIMEOUT and LIMIT if it had to be stopped, COMPILE if it crashed (60 seconds and 4 GiB; less by
 * SMELT_CLANG_SECONDS and SMELT_CLANG_MEMORY). */
smelt_status clang_run(const struct clang *clang, const struct clang_request *request, struct text *output,
                       struct text *messages, bool *ok);

/* ---- Parts of clang_run, for compile_whole.h. */

/* dialect, math, two an include path, and those of the action. */
#define CLANG_MAX_ARGUMENTS 128

/* Its argv. The strings are the request's or constant. */
void clang_list_arguments(const struct clang *clang, const struct clang_request *request,
                          const char *arguments[CLANG_MAX_ARGUMENTS]);
/* The process with its input and limits. */
struct process_request clang_process(const struct clang_request *request, const char *const *arguments);
/* OK: it ended with 0 or 1, as with and without a result. Otherwise the error: it was stopped, or crashed. */
smelt_status clang_judge(const struct process_result *result);

/* ---- */

/* The limits of the compiler, clang and then LLVM, for one source: processor time, and address space. */
long clang_limit_seconds(void);
size_t clang_limit_bytes(void);

/* Whether the process ended because an allocation of clang's, LLVM's or the system's loader failed. */
bool clang_lacked_memory(const struct process_result *result);

/* The arguments that determine the output, as one string for cache keys. */
void clang_add_flags(smelt_math_mode math, bool cpp23, struct text *flags);

#endif
