/* Whole files: read, replace, and the folders they need. */
#ifndef SMELT_BASE_FILE_H
#define SMELT_BASE_FILE_H

#include "base/error.h"
#include "base/text.h"

/* Reads a file into `contents` (freed by the caller), also an open descriptor (/dev/stdin, /dev/fd/N), which
 * may be a pipe, and a device that ends. Rejects a pipe or socket by name, on which a reader may wait for
 * ever. SMELT_ERROR_IO names the path and the reason. */
smelt_status file_read(const char *path, struct text *contents);

/* One piece of a file to be written. */
struct bytes {
    const void *data;
    size_t size;
};

/* Writes the pieces one after another. A regular or new file is written without a name in its folder and
 * named when it is complete, so that readers see the old contents or the new, and a process that is killed
 * leaves nothing behind; where the file system has no nameless files, under a temporary name
 * (PATH.tmp.PROCESS.NUMBER). A pipe or device is written in place, and so is an open file named as
 * /dev/stdout or /dev/fd/N; a pipe by name needs a reader, which may come a few seconds later.
 * SMELT_ERROR_IO names the path and why. */
smelt_status file_write(const char *path, const struct bytes *pieces, int count);

/* Returns a certain failure of a later file_write, before the work that leads to it. */
smelt_status file_check_writable(const char *path);

/* Creates a folder and its parents with mode 0700. */
smelt_status file_make_folder(const char *path);

#endif
