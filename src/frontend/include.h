/* Checks the files that a source includes, before clang opens them. */
#ifndef SMELT_FRONTEND_INCLUDE_H
#define SMELT_FRONTEND_INCLUDE_H

#include "base/error.h"

/* Follows the #include and #embed lines of `text`, called `label` in messages, through the folders (ended by
 * NULL) as clang will. COMPILE with the line of one that names a pipe or socket, on which clang would wait
 * for ever. Names from macros, and missing files, are left to clang. */
smelt_status includes_check(const char *label, const char *text, const char *const *folders);

#endif
