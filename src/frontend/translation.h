/* One source on its way to clang: as the user wrote it, preprocessed if it has directives, rewritten. */
#ifndef SMELT_FRONTEND_TRANSLATION_H
#define SMELT_FRONTEND_TRANSLATION_H

#include "frontend/prelude.h"
#include "source/program.h"

/* A text of the user and its name in messages. */
struct named_text {
    const char *name, *text;
};

#define TRANSLATION_MAX_TEXTS 4

struct translation_request {
    const char *text; /* Metal text; #line directives name the pieces */
    size_t length;
    enum prelude prelude;
    smelt_math_mode math;
    int metal_version;                              /* as __METAL_VERSION__; 0: the usual one */
    const char *const *include_paths;               /* ended by NULL; may be NULL */
    const char *const *macros;                      /* "NAME" or "NAME=TEXT"; likewise */
    struct named_text texts[TRANSLATION_MAX_TEXTS]; /* the pieces as the user wrote them, for messages */
};

struct translation {
    struct text source; /* the program's source: the text, preprocessed if necessary */
    struct program program;
    enum prelude prelude;
    smelt_math_mode math;
    int metal_version;
    int64_t nanoseconds;       /* it took to make this */
    const char **search_paths; /* for #include, in order; ended by NULL */
    struct named_text texts[TRANSLATION_MAX_TEXTS];
    struct arena arena; /* the strings above */
};

#define METAL_VERSION_USUAL 320
#define METAL_VERSION_TENSORS 410 /* of sources that use Metal 4's tensors */
/* INVALID_ARGUMENT for an invalid version (as __METAL_VERSION__); 0 means the default. */
smelt_status metal_version_check(const char *what, int version);
/* INVALID_ARGUMENT for a macro that is neither "NAME" nor "NAME=TEXT" of one line. */
smelt_status translation_check_macros(const char *what, const char *const *macros);

/* Preprocesses (with a cache: see translation.c) and rewrites. COMPILE with diagnostics. */
smelt_status translation_create(const struct translation_request *request, struct translation *translation);
void translation_free(struct translation *translation);

/* The entry of a host name, or NULL. */
const struct entry *translation_entry(const struct translation *translation, const char *host_name);

#endif
