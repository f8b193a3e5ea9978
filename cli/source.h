/* Reading what SOURCE names. */
#ifndef SMELT_CLI_SOURCE_H
#define SMELT_CLI_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

/* The file's contents (`-`: standard input's), in heap memory with a zero behind. *package_size: the bytes of
 * a package (SMELT_PACKAGE_MAGIC), or 0 for text; NULL: only text will do. Complains about everything else.
 */
bool source_read(const char *path, char **contents, size_t *package_size);

/* Whether a regular file is a stored graph (SMELT_GRAPH_MAGIC). */
bool source_is_graph(const char *path);

/* Its name in messages. */
const char *source_label(const char *path);

#endif
