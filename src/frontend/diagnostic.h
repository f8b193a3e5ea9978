/* clang's messages, mapped to the user's text: file:line:column, the line, a caret. */
#ifndef SMELT_FRONTEND_DIAGNOSTIC_H
#define SMELT_FRONTEND_DIAGNOSTIC_H

#include "frontend/translation.h"

/* Converts clang's messages about the translation's text:
 *   my.body:3:17: error: use of undeclared identifier 'foo'
 *       out[elem] = foo(tmp);
 *                   ^
 * Messages located in the prelude move to the user's line that led there. */
void diagnostics_describe(const struct translation *translation, const char *messages, struct text *out);

/* The warnings among them that are about the user's text, each followed by the name of its kind,
 * " [-Wparentheses]", except those that comments ask to ignore. */
void diagnostics_warn(const struct translation *translation, const char *messages, struct text *out);

/* Adds a warning of our own in the same form, unless a comment asks to ignore it. file: one of
 * translation->texts. */
void diagnostics_add_warning(const struct translation *translation, const char *file, int line, int column,
                             const char *message, struct text *out);

/* Adds a warning for each code in such a comment (below) of translation->texts that no finding has. */
void diagnostics_warn_of_codes(const struct translation *translation, struct text *out);

/* Whether a comment of the user's text asks to ignore findings of this code at a line,
 *   // smelt: ignore SM003, SM008: why
 * at the end of the line, or on a line of its own above. */
bool diagnostics_ignored(const struct translation *translation, const char *file, int line, const char *code);

/* The same form for a message of our own about a byte of translation->source. */
void diagnostics_add(const struct translation *translation, uint32_t position, const char *message,
                     struct text *out);

/* The column in the user's line for a column of the rewritten text's, as debug locations have it; 0: it
 * cannot be told. */
int diagnostics_column(const struct translation *translation, const char *file, int line, int column);

/* A line of the user's text, without its end, is added to `out`; false: there is none. */
bool diagnostics_line(const struct translation *translation, const char *file, int line, struct text *out);

#endif
