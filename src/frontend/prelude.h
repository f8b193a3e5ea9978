/* The prelude's text, compiled into the library, and its precompiled image in the cache. */
#ifndef SMELT_FRONTEND_PRELUDE_H
#define SMELT_FRONTEND_PRELUDE_H

#include "frontend/clang.h"

/* All of prelude/ in one text, includes resolved (made at build time). */
extern const char prelude_text[];
/* The macros users see, for the preprocessor. */
extern const char prelude_macros[];

/* A hash of the prelude's text. */
struct hash prelude_hash(void);

/* The path of the precompiled prelude for this clang and mode, made if it is not in the cache; "" when there is no
 * cache to keep it in. */
smelt_status prelude_precompiled(const struct clang *clang, smelt_math_mode math, char path[4096]);

/* A folder of empty files under the names of Metal's headers, for #include inside users' headers; "" as above. */
smelt_status prelude_stub_folder(char path[4096]);

#endif
