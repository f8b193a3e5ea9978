/* The prelude's text, compiled into the library, and its precompiled image in the cache. */
#ifndef SMELT_FRONTEND_PRELUDE_H
#define SMELT_FRONTEND_PRELUDE_H

#include "frontend/clang.h"

/* The text before a source: Metal's library alone for whole files, which may define helpers under MLX's
 * names; with MLX's helpers for kernel bodies; either in C++23, for sources whose methods have their objects
 * as parameters (source/overload.c); and in C++23 with Metal 4's tensors, for sources that use them. */
enum prelude {
    PRELUDE_METAL,
    PRELUDE_MLX,
    PRELUDE_METAL_OBJECTS,
    PRELUDE_MLX_OBJECTS,
    PRELUDE_METAL_TENSORS,
    PRELUDE_MLX_TENSORS
};
#define PRELUDE_COUNT 6

static inline bool prelude_is_cpp23(enum prelude prelude) {
    return prelude >= PRELUDE_METAL_OBJECTS;
}

static inline bool prelude_has_mlx(enum prelude prelude) {
    return prelude == PRELUDE_MLX || prelude == PRELUDE_MLX_OBJECTS || prelude == PRELUDE_MLX_TENSORS;
}

/* All of prelude/ in one text each, includes resolved (generated at build time). */
extern const char *const prelude_texts[PRELUDE_COUNT];
/* The macros users see, for the preprocessor. */
extern const char prelude_macros[];

/* Headers that sources include as <smelt/NAME>, in the language of sources. Behind them are an empty text,
 * which all of Metal's own headers are, and NULL. */
#define PRELUDE_HEADERS 2
extern const char *const prelude_headers[PRELUDE_HEADERS + 2];
extern const char *const prelude_header_names[PRELUDE_HEADERS];

/* A hash of a prelude's text. */
struct hash prelude_hash(enum prelude prelude);

/* The path of the precompiled prelude for this clang and mode: installed with smelt-cc1, or in the cache,
 * where it is compiled if it is missing or damaged; "" without either. Its contents are checked once per
 * process, or now if `suspected`: after clang failed. */
smelt_status prelude_precompiled(const struct clang *clang, enum prelude prelude, smelt_math_mode math,
                                 bool suspected, char path[4096]);

/* True if the image exists and is intact. */
bool prelude_is_whole(const char *path);

/* The name, near libsmelt, of the image that an installation of smelt-cc1 has of the prelude; NULL: of this
 * mode there is none. */
const char *prelude_installed_name(enum prelude prelude, smelt_math_mode math);

/* Writes such an image: a step of the build (precompile/). */
smelt_status prelude_write_installed(enum prelude prelude, smelt_math_mode math, const char *path);

#endif
