/* The file system that clang sees while it preprocesses a source. */
#ifndef SMELT_FRONTEND_OVERLAY_H
#define SMELT_FRONTEND_OVERLAY_H

#include "base/error.h"
#include "base/text.h"

/* A file system overlay in clang's form. It has a folder with empty files under the names of Metal's headers,
 * for #include in users' headers; smelt's own headers, which the compiler reads from descriptors; the source
 * itself, which is standard input: what it includes is looked for in the folders named, not in the process's.
 * And it has the folders of `folders` (ended by NULL) with all that is below them; nothing else is there for
 * #include, #embed and __has_include. A symbolic link below a folder is followed. */
smelt_status overlay_create(const char *const *folders, struct text *overlay);

#define OVERLAY_HEADER_FOLDER "/smelt/headers"
#define OVERLAY_SOURCE_NAME "source"

/* The folder's path from the root, without . and .. as the words stand: what clang makes of it, too. Not of
 * links. */
void overlay_path(const char *folder, struct text *path);

/* Whether a source can include a file of that name. */
bool overlay_holds(const char *const *folders, const char *file);

#endif
