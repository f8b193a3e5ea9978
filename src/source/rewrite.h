/* Rewrites Metal's keywords to the C++ dialect of prelude/smelt_dialect.h. */
#ifndef SMELT_SOURCE_REWRITE_H
#define SMELT_SOURCE_REWRITE_H

#include "base/text.h"
#include "source/structure.h"

/* Writes the rewritten text; positions[i] is where token i's replacement starts in it. *objects: it is in
 * C++23, with objects as parameters. */
smelt_status rewrite(const struct tokens *tokens, const struct structure *structure, struct arena *arena,
                     struct text *out, uint32_t *positions, bool *objects);

/* Whether the rewriter can pass every directive through: #line, #pragma, #include of Metal's headers. */
bool directives_are_plain(const struct tokens *tokens);

#endif
