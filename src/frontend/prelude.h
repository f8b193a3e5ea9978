/* The prelude's text, compiled into the library, and its precompiled image in the cache. */
#ifndef SMELT_FRONTEND_PRELUDE_H
#define SMELT_FRONTEND_PRELUDE_H

#include "frontend/clang.h"

/* The text before a source: Metal's library alone for whole files, which may define helpers under MLX's
 * names; with MLX's helpers for kernel bodies. */
enum prelude { PRELUDE_METAL, PRELUDE_MLX };
#define PRELUDE_COUNT 2

/* All of prelude/ in one text each, includes resolved (generated at build time). */
extern const char *const prelude_texts[PRELUDE_COUNT];
/* The macros users see, for the preprocessor. */
extern const char prelude_macros[];

/* A hash of a prelude's text. */
struct hash prelude_hash(enum prelude prelude);

/* The path of the precompiled prelude for this clang and mode, compiled if it is missing or damaged in the
 * cache; "" without a cache. Its contents are checked once per process, or now if `suspected`: after clang
 * failed. */
smelt_status prelude_precompiled(const struct clang *clang, enum prelude prelude, smelt_math_mode math,
                                 bool suspected, char path[4096]);

/* True if the image exists and is intact. */
bool prelude_is_whole(const char *path);

#endif
